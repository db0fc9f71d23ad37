package counters

import (
	"encoding/binary"
	"fmt"
)

// parseLink reads a message of type RTM_NEWLINK: struct ifinfomsg and attributes
// (include/uapi/linux/if_link.h). ok is false if it names no interface.
func parseLink(b []byte) (l link, ok bool) {
	const (
		infoLength = 16
		flagUp     = 0x1
		flagLoop   = 0x8
		address    = 1
		name       = 3
		mtu        = 4
		txQueue    = 13
		linkInfo   = 18
		kind       = 1
		stats64    = 23
		xdp        = 43
	)
	if len(b) < infoLength {
		return link{}, false
	}
	l.index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	flags := binary.NativeEndian.Uint32(b[8:])
	l.up, l.loopback = flags&flagUp != 0, flags&flagLoop != 0
	for kindOf, v := range attributes(b[infoLength:]) {
		switch kindOf {
		case address:
			l.address = string(v)
		case name:
			l.name = text(v)
		case mtu:
			l.mtu = native32(v)
		case txQueue:
			l.txQueue = native32(v)
		case linkInfo:
			for inner, v := range attributes(v) {
				if inner == kind {
					l.kind = text(v)
				}
			}
		case stats64:
			l.stats = make([]uint64, min(len(v)/8, len(linkCounters)))
			for i := range l.stats {
				l.stats[i] = binary.NativeEndian.Uint64(v[8*i:])
			}
		case xdp:
			l.xdp = parseXDP(v)
		}
	}
	return l, l.name != "" && l.index > 0
}

// parseXDP says which program an interface has, as "native 17"; "" without one.
func parseXDP(b []byte) string {
	const (
		attached = 2
		program  = 4
	)
	modes := []string{"", "native", "generic", "offloaded", "several"} // XDP_ATTACHED_*
	mode, number := "", uint32(0)
	for kind, v := range attributes(b) {
		switch {
		case kind == attached && len(v) > 0 && int(v[0]) < len(modes):
			mode = modes[v[0]]
		case kind == program:
			number = native32(v)
		}
	}
	switch {
	case mode == "":
		return ""
	case number == 0:
		return mode
	}
	return fmt.Sprintf("%s %d", mode, number)
}

// qdisc is one queueing discipline.
type qdisc struct {
	link           int
	handle, parent uint32
	kind           string
	queued         uint32 // packets in it
	drops          uint32
	requeues       uint32
	overlimits     uint32
	limitPackets   uint32 // 0 unknown
	limitBytes     uint32
	limitFlow      uint32 // packets of one socket, fq's
}

// Handles of include/uapi/linux/pkt_sched.h.
const (
	rootHandle    = 0xffffffff
	ingressHandle = 0xfffffff1 // also clsact
)

// top reports whether nothing stands above the qdisc.
func (q qdisc) top() bool { return q.parent == rootHandle || q.parent == ingressHandle }

// parseQdisc reads a message of type RTM_NEWQDISC: struct tcmsg and attributes.
func parseQdisc(b []byte) (q qdisc, ok bool) {
	const (
		tcLength = 20
		kind     = 1
		options  = 2
		stats2   = 7
		queue    = 3 // TCA_STATS_QUEUE: struct gnet_stats_queue
	)
	if len(b) < tcLength {
		return qdisc{}, false
	}
	q.link = int(int32(binary.NativeEndian.Uint32(b[4:])))
	q.handle, q.parent = native32(b[8:]), native32(b[12:])
	var parameters []byte
	for kindOf, v := range attributes(b[tcLength:]) {
		switch kindOf {
		case kind:
			q.kind = text(v)
		case options:
			parameters = v
		case stats2:
			for inner, v := range attributes(v) {
				if inner == queue && len(v) >= 20 {
					q.queued = native32(v)
					q.drops = native32(v[8:])
					q.requeues = native32(v[12:])
					q.overlimits = native32(v[16:])
				}
			}
		}
	}
	q.limit(parameters)
	return q, q.kind != "" && q.link > 0
}

// limit reads how much the qdisc holds out of its parameters, where they say so plainly.
func (q *qdisc) limit(parameters []byte) {
	find := func(wanted uint16) (found []byte) {
		for kind, v := range attributes(parameters) {
			if kind == wanted {
				found = v
			}
		}
		return found
	}
	switch q.kind {
	case "pfifo", "pfifo_head_drop":
		q.limitPackets = native32(parameters) // struct tc_fifo_qopt
	case "bfifo":
		q.limitBytes = native32(parameters)
	case "tbf": // TCA_TBF_PARMS: struct tc_tbf_qopt, two struct tc_ratespec of 12 bytes before the limit
		if v := find(1); len(v) >= 28 {
			q.limitBytes = native32(v[24:])
		}
	case "netem": // struct tc_netem_qopt
		if len(parameters) >= 8 {
			q.limitPackets = native32(parameters[4:])
		}
	case "fq": // TCA_FQ_PLIMIT, TCA_FQ_FLOW_PLIMIT
		q.limitPackets, q.limitFlow = native32(find(1)), native32(find(2))
	case "codel", "fq_codel", "fq_pie": // TCA_CODEL_LIMIT and the like
		limits := map[string]uint16{"codel": 2, "fq_codel": 2, "fq_pie": 1}
		q.limitPackets = native32(find(limits[q.kind]))
	}
}

// name is the qdisc as tc writes it: kind and handle.
func (q qdisc) name() string { return fmt.Sprintf("%s.%x:", q.kind, q.handle>>16) }

// tops keeps what stands directly at a device and counts its children in: mq
// sums them up itself, most classful ones count what their children refused, and
// the others show less than their children do. So the larger one is the whole.
func tops(all []qdisc) []qdisc {
	type owner struct {
		link  int
		major uint32
	}
	children := map[owner]qdiscSum{}
	for _, q := range all {
		if !q.top() {
			o := owner{q.link, q.parent >> 16}
			children[o] = children[o].plus(q)
		}
	}
	var kept []qdisc
	for _, q := range all {
		if !q.top() {
			continue
		}
		sum := children[owner{q.link, q.handle >> 16}]
		// Sums wrap as their parts do.
		q.drops = uint32(max(uint64(q.drops), sum.drops))
		q.requeues = uint32(max(uint64(q.requeues), sum.requeues))
		q.overlimits = uint32(max(uint64(q.overlimits), sum.overlimits))
		q.queued = uint32(max(uint64(q.queued), sum.queued))
		kept = append(kept, q)
	}
	return kept
}

type qdiscSum struct{ drops, requeues, overlimits, queued uint64 }

func (s qdiscSum) plus(q qdisc) qdiscSum {
	s.drops += uint64(q.drops)
	s.requeues += uint64(q.requeues)
	s.overlimits += uint64(q.overlimits)
	s.queued += uint64(q.queued)
	return s
}
