package counters

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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
	return nil, errChanging
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

// attributes are those of a message, or of one of its attributes.
type attributes struct {
	list []netlink.Attribute
	of   *message
}

type message struct {
	order binary.ByteOrder // of its numbers
	err   error            // the first fault
}

// decode reads the attributes that follow a message's header of so many bytes.
func decode(b []byte, header int, order binary.ByteOrder) attributes {
	m := &message{order: order}
	if len(b) < header {
		m.err = errors.New("a message is cut short")
		return attributes{of: m}
	}
	return m.attributes(b[header:])
}

func (m *message) attributes(b []byte) attributes {
	list, err := netlink.UnmarshalAttributes(b)
	m.err = cmp.Or(m.err, err)
	return attributes{list, m}
}

// data is an attribute's; nil if it is not there.
func (a attributes) data(kind uint16) []byte {
	const typeMask = 0x3fff // NLA_TYPE_MASK
	for _, one := range a.list {
		if one.Type&typeMask == kind {
			return one.Data
		}
	}
	return nil
}

func (a attributes) has(kind uint16) bool { return a.data(kind) != nil }

func (a attributes) nested(kind uint16) attributes { return a.of.attributes(a.data(kind)) }

func (a attributes) text(kind uint16) string { return unix.ByteSliceToString(a.data(kind)) }

// number is 0 if it is not there.
func (a attributes) number(kind uint16) uint64 {
	switch b := a.data(kind); len(b) {
	case 0:
		return 0
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(a.of.order.Uint16(b))
	case 4:
		return uint64(a.of.order.Uint32(b))
	case 8:
		return a.of.order.Uint64(b)
	}
	a.of.err = cmp.Or(a.of.err, errors.New("a number is of an odd width"))
	return 0
}

// native32 is the u32 at an offset of a struct, 0 if the struct ends before.
func native32(b []byte, offset int) uint32 {
	if len(b) < offset+4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b[offset:])
}

// decodeLink reads a message of type RTM_NEWLINK.
func decodeLink(b []byte) (link, error) {
	a := decode(b, unix.SizeofIfInfomsg, binary.NativeEndian) // struct ifinfomsg
	flags := native32(b, 8)
	l := link{
		index: int(int32(native32(b, 4))), up: flags&unix.IFF_UP != 0, loopback: flags&unix.IFF_LOOPBACK != 0,
		name: a.text(unix.IFLA_IFNAME), kind: a.nested(unix.IFLA_LINKINFO).text(unix.IFLA_INFO_KIND),
		address: string(a.data(unix.IFLA_ADDRESS)), txQueue: uint32(a.number(unix.IFLA_TXQLEN)),
		mtu: int(a.number(unix.IFLA_MTU)), master: int(a.number(unix.IFLA_MASTER)),
		xdp: xdpProgram(a.nested(unix.IFLA_XDP)), silent: flags&unix.IFF_UP != 0 && flags&unix.IFF_LOWER_UP == 0,
	}
	if info := a.nested(unix.IFLA_LINKINFO); info.text(unix.IFLA_INFO_SLAVE_KIND) == "bridge" {
		port := info.nested(unix.IFLA_INFO_SLAVE_DATA)
		l.port = portStates[min(int(port.number(unix.IFLA_BRPORT_STATE)), len(portStates)-1)]
		l.isolated = port.number(unix.IFLA_BRPORT_ISOLATED) != 0
	}
	if b := a.data(unix.IFLA_CARRIER_DOWN_COUNT); len(b) == 4 {
		n := native32(b, 0)
		l.downs = &n
	}
	fields := a.data(unix.IFLA_STATS64)
	for i := range min(len(fields)/8, len(linkCounters)) {
		l.stats = append(l.stats, binary.NativeEndian.Uint64(fields[8*i:]))
	}
	if a.of.err == nil && (l.name == "" || l.index <= 0) {
		return l, errors.New("a link has no name")
	}
	return l, a.of.err
}

// portStates are those of a bridge's port (include/uapi/linux/if_bridge.h).
var portStates = []string{"disabled", "listening", "learning", portForwards, "blocking"}

// xdpProgram is which program an interface has, as "native 17".
func xdpProgram(a attributes) string {
	modes := []string{"", "native", "generic", "offloaded", "several"} // XDP_ATTACHED_*
	mode, number := a.number(unix.IFLA_XDP_ATTACHED), a.number(unix.IFLA_XDP_PROG_ID)
	switch {
	case mode == 0 || mode >= uint64(len(modes)):
		return ""
	case number == 0:
		return modes[mode]
	}
	return fmt.Sprintf("%s %d", modes[mode], number)
}

// decodeQdisc reads a message of type RTM_NEWQDISC.
func decodeQdisc(b []byte) (qdisc, error) {
	a := decode(b, 20, binary.NativeEndian) // struct tcmsg
	told := a.nested(unix.TCA_STATS2)
	s := told.data(3) // TCA_STATS_QUEUE: struct gnet_stats_queue
	q := qdisc{
		link: int(int32(native32(b, 4))), handle: native32(b, 8), parent: native32(b, 12), kind: a.text(unix.TCA_KIND),
		queued: native32(s, 0), drops: native32(s, 8), requeues: native32(s, 12), overlimits: native32(s, 16),
	}
	q.decodeOptions(a)
	q.decodeOwn(a.of, told.data(4)) // TCA_STATS_APP
	if a.of.err == nil && (q.kind == "" || q.link <= 0) {
		return q, errors.New("a qdisc has no kind")
	}
	return q, a.of.err
}

// tick is the unit in nanoseconds of the time that a bucket lasts at its rate: include/net/pkt_sched.h, PSCHED_SHIFT.
const tick = 64

// bucket is how many bytes pass at a rate in so many ticks.
func bucket(bytesPerSecond uint64, ticks uint32) uint64 {
	return uint64(math.Round(float64(bytesPerSecond) * float64(ticks) * tick / 1e9))
}

// decodeOptions reads how much the qdisc holds and the rate that it shapes to, where it says so plainly
// (include/uapi/linux/pkt_sched.h). The rates of classes are not among them. A narrow rate is all ones where a wide
// one tells.
func (q *qdisc) decodeOptions(a attributes) {
	options := a.data(unix.TCA_OPTIONS)
	nested := func(header int) attributes { return a.of.attributes(options[min(header, len(options)):]) }
	switch q.kind {
	case "pfifo", "pfifo_head_drop":
		q.limitPackets = native32(options, 0) // struct tc_fifo_qopt
	case "netem":
		q.limitPackets = native32(options, 4)
		o := nested(24) // struct tc_netem_qopt
		q.loses = native32(options, 8) > 0 || o.has(5)
		q.rate = cmp.Or(o.number(8), uint64(native32(o.data(6), 0))) // struct tc_netem_rate
	case "tbf":
		o := nested(0)
		parameters := o.data(1) // struct tc_tbf_qopt begins with a tc_ratespec
		q.rate = cmp.Or(o.number(4), uint64(native32(parameters, 8)))
		q.limitBytes, q.burst = native32(parameters, 24), bucket(q.rate, native32(parameters, 28))
	case "bfifo":
		q.limitBytes = native32(options, 0)
	case "red":
		q.limitBytes = native32(nested(0).data(1), 0) // struct tc_red_qopt
	case "sfq":
		q.limitPackets = native32(options, 8) // struct tc_sfq_qopt
	case "cake":
		q.rate = nested(0).number(2)
	case "fq":
		q.limitPackets, q.limitFlow = uint32(nested(0).number(1)), uint32(nested(0).number(2))
	case "fq_pie":
		q.limitPackets = uint32(nested(0).number(1))
	case "codel", "fq_codel":
		q.limitPackets = uint32(nested(0).number(2))
	}
}

// decodeOwn reads what a kind of qdisc counts beside what all do.
func (q *qdisc) decodeOwn(m *message, b []byte) {
	if len(b) == 0 {
		return
	}
	switch q.kind {
	case "codel":
		q.full(native32(b, 20)) // struct tc_codel_xstats
	case "fq_codel":
		q.full(native32(b, 8)) // struct tc_fq_codel_xstats
	case "red":
		q.early = native32(b, 0) // struct tc_red_xstats
	case "fq":
		if horizonDrops := b[min(88, len(b)):]; len(horizonDrops) >= 8 { // struct tc_fq_qd_stats
			q.late = uint32(binary.NativeEndian.Uint64(horizonDrops))
		}
	case "cake":
		own := m.attributes(b) // TCA_CAKE_STATS_...
		q.memory(own.number(4), own.number(3))
	}
}
