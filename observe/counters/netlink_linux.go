package counters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// answerWithin bounds the wait for all answers of one socket; the kernel answers at once.
const answerWithin = 5 * time.Second

// dial opens a socket of the calling thread's namespace.
func dial(family int) (*netlink.Conn, error) {
	c, err := netlink.Dial(family, nil)
	if err != nil {
		return nil, plain(err)
	}
	if err := c.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// plain is an error without the layers that only name the library's steps.
func plain(err error) error {
	var op *netlink.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// maxDumps is how often a listing that changed meanwhile is asked for.
const maxDumps = 5

// dump asks for a listing and returns the messages of the wanted type.
func dump(c *netlink.Conn, request, reply uint16, body []byte) (payloads [][]byte, err error) {
	for range maxDumps {
		header := netlink.Header{Type: netlink.HeaderType(request), Flags: netlink.Request | netlink.Dump}
		messages, err := c.Execute(netlink.Message{Header: header, Data: body})
		if err != nil {
			return nil, plain(err)
		}
		payloads = payloads[:0]
		whole := true
		for _, m := range messages {
			whole = whole && m.Header.Flags&netlink.DumpInterrupted == 0
			if m.Header.Type == netlink.HeaderType(reply) {
				payloads = append(payloads, m.Data)
			}
		}
		if whole {
			return payloads, nil
		}
	}
	return nil, errors.New("the list kept changing while it was read")
}

// list decodes a listing. A message that cannot be decoded spoils it: what is not understood may be what counts.
func list[T any](c *netlink.Conn, request, reply uint16, body []byte, decode func([]byte) (T, error)) ([]T, error) {
	payloads, err := dump(c, request, reply, body)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(payloads))
	for i, b := range payloads {
		if out[i], err = decode(b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func listLinks(c *netlink.Conn) ([]link, error) {
	const skipStats = 1 << 3 // RTEXT_FILTER_SKIP_STATS: those of IPv6, which are slow to add up
	request := netlink.NewAttributeEncoder()
	request.Uint32(unix.IFLA_EXT_MASK, skipStats)
	mask, err := request.Encode()
	if err != nil {
		return nil, err
	}
	body := append(make([]byte, unix.SizeofIfInfomsg), mask...)
	return list(c, unix.RTM_GETLINK, unix.RTM_NEWLINK, body, decodeLink)
}

func listQdiscs(c *netlink.Conn) ([]qdisc, error) {
	return list(c, unix.RTM_GETQDISC, unix.RTM_NEWQDISC, make([]byte, 20), decodeQdisc) // struct tcmsg
}

var errShort = errors.New("a message is cut short")

// decode goes through the attributes that follow a message's header of so many bytes.
func decode(b []byte, header int, order binary.ByteOrder, each func(*netlink.AttributeDecoder)) error {
	if len(b) < header {
		return errShort
	}
	attributes, err := netlink.NewAttributeDecoder(b[header:])
	if err != nil {
		return err
	}
	attributes.ByteOrder = order
	return walk(each)(attributes)
}

// walk makes what decodes one attribute decode all of a nested one.
func walk(each func(*netlink.AttributeDecoder)) func(*netlink.AttributeDecoder) error {
	return func(attributes *netlink.AttributeDecoder) error {
		for attributes.Next() {
			each(attributes)
		}
		return attributes.Err()
	}
}

// dataOf is an attribute's data; it belongs to the message.
func dataOf(attribute *netlink.AttributeDecoder) (data []byte) {
	attribute.Do(func(b []byte) error {
		data = b
		return nil
	})
	return data
}

// native32 is the u32 at an offset of a struct, 0 if the struct ends before.
func native32(b []byte, offset int) uint32 {
	if len(b) < offset+4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b[offset:])
}

// decodeLink reads a message of type RTM_NEWLINK.
func decodeLink(b []byte) (l link, err error) {
	l.index = int(int32(native32(b, 4))) // struct ifinfomsg
	flags := native32(b, 8)
	l.up, l.loopback = flags&unix.IFF_UP != 0, flags&unix.IFF_LOOPBACK != 0
	err = decode(b, unix.SizeofIfInfomsg, binary.NativeEndian, func(a *netlink.AttributeDecoder) {
		switch a.Type() {
		case unix.IFLA_ADDRESS:
			l.address = string(dataOf(a))
		case unix.IFLA_IFNAME:
			l.name = a.String()
		case unix.IFLA_MTU:
			l.mtu = a.Uint32()
		case unix.IFLA_TXQLEN:
			l.txQueue = a.Uint32()
		case unix.IFLA_LINKINFO:
			a.Nested(walk(func(a *netlink.AttributeDecoder) {
				if a.Type() == unix.IFLA_INFO_KIND {
					l.kind = a.String()
				}
			}))
		case unix.IFLA_STATS64:
			fields := dataOf(a)
			l.stats = make([]uint64, min(len(fields)/8, len(linkCounters)))
			for i := range l.stats {
				l.stats[i] = binary.NativeEndian.Uint64(fields[8*i:])
			}
		case unix.IFLA_XDP:
			a.Nested(l.decodeXDP)
		}
	})
	if err == nil && (l.name == "" || l.index <= 0) {
		err = errors.New("a link has no name")
	}
	return l, err
}

// decodeXDP notes which program an interface has, as "native 17".
func (l *link) decodeXDP(a *netlink.AttributeDecoder) error {
	modes := []string{"", "native", "generic", "offloaded", "several"} // XDP_ATTACHED_*
	number := uint32(0)
	for a.Next() {
		switch a.Type() {
		case unix.IFLA_XDP_ATTACHED:
			if mode := int(a.Uint8()); mode < len(modes) {
				l.xdp = modes[mode]
			}
		case unix.IFLA_XDP_PROG_ID:
			number = a.Uint32()
		}
	}
	if l.xdp != "" && number > 0 {
		l.xdp = fmt.Sprintf("%s %d", l.xdp, number)
	}
	return a.Err()
}

// top reports whether nothing stands above the qdisc.
func (q qdisc) top() bool { return q.parent == rootHandle || q.parent == ingressHandle }

// decodeQdisc reads a message of type RTM_NEWQDISC.
func decodeQdisc(b []byte) (q qdisc, err error) {
	const (
		header = 20 // struct tcmsg
		queue  = 3  // TCA_STATS_QUEUE: struct gnet_stats_queue
	)
	q.link, q.handle, q.parent = int(int32(native32(b, 4))), native32(b, 8), native32(b, 12)
	var parameters []byte
	err = decode(b, header, binary.NativeEndian, func(a *netlink.AttributeDecoder) {
		switch a.Type() {
		case unix.TCA_KIND:
			q.kind = a.String()
		case unix.TCA_OPTIONS:
			parameters = dataOf(a)
		case unix.TCA_STATS2:
			a.Nested(walk(func(a *netlink.AttributeDecoder) {
				if a.Type() == queue {
					s := dataOf(a)
					q.queued, q.drops = native32(s, 0), native32(s, 8)
					q.requeues, q.overlimits = native32(s, 12), native32(s, 16)
				}
			}))
		}
	})
	if err != nil {
		return q, err
	}
	if q.kind == "" || q.link <= 0 {
		return q, errors.New("a qdisc has no kind")
	}
	return q, q.decodeParameters(parameters)
}

// decodeParameters reads how much the qdisc holds and the rate that it shapes to, where it says so plainly
// (include/uapi/linux/pkt_sched.h). The rates of classes are not among them.
func (q *qdisc) decodeParameters(b []byte) error {
	const netemHeader = 24 // struct tc_netem_qopt, before the attributes
	switch q.kind {
	case "pfifo", "pfifo_head_drop":
		q.limitPackets = native32(b, 0) // struct tc_fifo_qopt
		return nil
	case "netem":
		q.limitPackets = native32(b, 4)
		b = b[min(netemHeader, len(b)):]
	case "tbf", "cake", "fq", "codel", "fq_codel", "fq_pie":
	default:
		return nil
	}
	type parameter struct {
		kind      string
		attribute uint16
	}
	narrow := func(rate uint32) { // all ones where the wide one tells
		if q.rate == 0 {
			q.rate = uint64(rate)
		}
	}
	return decode(b, 0, binary.NativeEndian, func(a *netlink.AttributeDecoder) {
		switch (parameter{q.kind, a.Type()}) {
		case parameter{"tbf", 1}: // struct tc_tbf_qopt, which begins with a struct tc_ratespec
			narrow(native32(dataOf(a), 8))
		case parameter{"netem", 6}: // struct tc_netem_rate
			narrow(native32(dataOf(a), 0))
		case parameter{"tbf", 4}, parameter{"netem", 8}, parameter{"cake", 2}:
			q.rate = a.Uint64()
		case parameter{"fq", 1}, parameter{"fq_pie", 1}, parameter{"codel", 2}, parameter{"fq_codel", 2}:
			q.limitPackets = a.Uint32()
		case parameter{"fq", 2}:
			q.limitFlow = a.Uint32()
		}
	})
}

// tops keeps what stands directly at a device and counts its children in: mq
// sums them up itself, most classful ones count what their children refused, and
// the others show less than their children do. So the larger one is the whole.
func tops(all []qdisc) (kept []qdisc) {
	type owner struct {
		link  int
		major uint32
	}
	sums := map[owner]qdisc{} // of the children; sums wrap as their parts do
	for _, q := range all {
		if !q.top() {
			o := owner{q.link, q.parent >> 16}
			sum := sums[o]
			sum.drops, sum.requeues = sum.drops+q.drops, sum.requeues+q.requeues
			sum.overlimits, sum.queued = sum.overlimits+q.overlimits, sum.queued+q.queued
			sums[o] = sum
		}
	}
	for _, q := range all {
		if q.top() {
			sum := sums[owner{q.link, q.handle >> 16}]
			q.drops, q.requeues = max(q.drops, sum.drops), max(q.requeues, sum.requeues)
			q.overlimits, q.queued = max(q.overlimits, sum.overlimits), max(q.queued, sum.queued)
			kept = append(kept, q)
		}
	}
	return kept
}
