package counters

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"pelt/model"
)

// Attributes of tc's actions (include/uapi/linux/pkt_cls.h, rtnetlink.h, tc_act/tc_mirred.h).
const (
	actionTable = 1 // TCA_ACT_TAB

	actionKind       = 1
	actionOptions    = 2
	actionStatistics = 4

	policeParameters = 1 // TCA_POLICE_TBF: struct tc_police
	policeRate64     = 8
	mirredParameters = 2 // TCA_MIRRED_PARMS: struct tc_mirred

	egressRedirect  = 1 // TCA_EGRESS_REDIR
	ingressRedirect = 3 // TCA_INGRESS_REDIR
)

// askActions adds the actions of the namespace that lose packets, where an input or a queue has a place for them. A
// kernel without such actions answers with an error, and has none.
func (s *Snapshot) askActions(c *netlink.Conn, qdiscs []qdisc) {
	mayAct := func(q qdisc) bool { return q.parent == ingressHandle || slices.Contains(model.ClassfulQueues, q.kind) }
	if !slices.ContainsFunc(qdiscs, mayAct) {
		return
	}
	for _, kind := range []string{policeKind, mirredKind} {
		e := netlink.NewAttributeEncoder()
		e.Nested(actionTable, func(table *netlink.AttributeEncoder) error {
			table.Nested(1, func(first *netlink.AttributeEncoder) error {
				first.String(actionKind, kind)
				return nil
			})
			return nil
		})
		wanted, err := e.Encode()
		if err != nil {
			continue
		}
		const header = 4 // struct tcamsg
		request := append(make([]byte, header), wanted...)
		lists, err := list(c, unix.RTM_GETACTION, unix.RTM_GETACTION, request, decodeActions)
		if err != nil {
			continue
		}
		for _, a := range slices.Concat(lists...) {
			s.addAction(a)
		}
	}
}

// decodeActions reads a listing of actions.
func decodeActions(b []byte) (all []action, err error) {
	message := decode(b, 4, binary.NativeEndian) // struct tcamsg
	for _, one := range message.nested(actionTable).list {
		attributes := message.of.attributes(one.Data)
		a := action{kind: attributes.text(actionKind)}
		options := attributes.nested(actionOptions)
		counted := attributes.nested(actionStatistics).data(3) // TCA_STATS_QUEUE: struct gnet_stats_queue
		switch a.kind {
		case policeKind:
			parameters := options.data(policeParameters)
			a.index, a.lost = native32(parameters, 0), native32(counted, 8)
			a.rate = cmp.Or(options.number(policeRate64), uint64(native32(parameters, 28)))
			a.burst = bucket(a.rate, native32(parameters, 12))
		case mirredKind:
			parameters := options.data(mirredParameters)
			a.index, a.lost = native32(parameters, 0), native32(counted, 16)
			if way := native32(parameters, 20); way != egressRedirect && way != ingressRedirect {
				continue // a mirror's packets go on
			}
		default:
			continue
		}
		all = append(all, a)
	}
	return all, message.of.err
}
