package counters

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Attributes of tc's actions (include/uapi/linux/pkt_cls.h, rtnetlink.h).
const (
	actionTable = 1 // TCA_ACT_TAB

	actionKind       = 1
	actionOptions    = 2
	actionStatistics = 4

	policeParameters = 1 // TCA_POLICE_TBF: struct tc_police
	policeRate64     = 8
)

const policeKind = "police"

// askPolicers adds the policers of the namespace, where an input has a place for them. A kernel without tc's actions
// answers with an error, and has none.
func (s *Snapshot) askPolicers(c *netlink.Conn, qdiscs []qdisc) {
	if !slices.ContainsFunc(qdiscs, func(q qdisc) bool { return q.parent == ingressHandle }) {
		return
	}
	e := netlink.NewAttributeEncoder()
	e.Nested(actionTable, func(table *netlink.AttributeEncoder) error {
		table.Nested(1, func(first *netlink.AttributeEncoder) error {
			first.String(actionKind, policeKind)
			return nil
		})
		return nil
	})
	wanted, err := e.Encode()
	if err != nil {
		return
	}
	const header = 4 // struct tcamsg
	request := append(make([]byte, header), wanted...)
	lists, err := list(c, unix.RTM_GETACTION, unix.RTM_GETACTION, request, decodePolicers)
	if err != nil {
		return
	}
	for _, p := range slices.Concat(lists...) {
		s.addPolicer(p)
	}
}

// decodePolicers reads a listing of actions.
func decodePolicers(b []byte) (all []policer, err error) {
	a := decode(b, 4, binary.NativeEndian) // struct tcamsg
	for _, one := range a.nested(actionTable).list {
		action := a.of.attributes(one.Data)
		if action.text(actionKind) != policeKind {
			continue
		}
		options, counted := action.nested(actionOptions), action.nested(actionStatistics).data(3) // TCA_STATS_QUEUE
		parameters := options.data(policeParameters)
		p := policer{index: native32(parameters, 0), drops: native32(counted, 8),
			rate: cmp.Or(options.number(policeRate64), uint64(native32(parameters, 28)))}
		p.burst = bucket(p.rate, native32(parameters, 12))
		all = append(all, p)
	}
	return all, a.of.err
}
