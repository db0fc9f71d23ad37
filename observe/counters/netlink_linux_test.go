package counters

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"

	"pelt/model"
	"pelt/test/golden"
)

// attr writes a netlink attribute; join nests several.
func attr(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func str(s string) []byte { return append([]byte(s), 0) }

func u32(v ...uint32) (b []byte) {
	for _, n := range v {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	return b
}

func be32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
func be64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// linkMessage writes an RTM_NEWLINK with so many statistics, each its index.
func linkMessage(fields int) []byte {
	var stats []byte
	for i := range fields {
		stats = binary.NativeEndian.AppendUint64(stats, uint64(i))
	}
	const nested = 0x8000
	return join(u32(0, 7, 1, 0),
		attr(3, str("eth0.100")), attr(4, u32(1500)), attr(13, u32(1000)), attr(1, []byte{2, 0, 0, 0, 0, 1}),
		attr(10, u32(3)), attr(18|nested, attr(1, str("vlan"))), attr(23, stats),
		attr(43|nested, join(attr(2, []byte{1}), attr(4, u32(17)))))
}

func TestParseLink(t *testing.T) {
	for _, fields := range []int{23, 24, 25, 27} { // of Linux 4.5, 4.6, 5.19, and one to come
		l, err := decodeLink(linkMessage(fields))
		if err != nil || l.index != 7 || l.name != "eth0.100" || l.kind != "vlan" || !l.up || l.loopback ||
			l.txQueue != 1000 || l.master != 3 || l.xdp != "native 17" {
			t.Fatalf("%d fields: %+v", fields, l)
		}
		s := Snapshot{links: map[int]link{}}
		s.addLink(l)
		got := map[string]uint64{}
		for _, r := range s.readings {
			if got[r.name] = r.value; r.link != l.index {
				t.Errorf("%s is of interface %d, want %d", r.name, r.link, l.index)
			}
		}
		want := map[string]uint64{"rx_packets": 0, "tx_packets": 1, "rx_errors": 4, "rx_dropped": 6, "tx_dropped": 7,
			"rx_fifo_errors":   14,
			"rx_missed_errors": 15, "rx_nohandler": 23, "rx_otherhost_dropped": 24}
		for name, v := range want {
			n, there := got["dev.eth0.100."+name]
			if there != (int(v) < fields) || there && n != v {
				t.Errorf("%d fields: %s is %d (%v), want %d", fields, name, n, there, v)
			}
		}
	}
	port := func(state byte) []byte {
		const nested = 0x8000
		return join(linkMessage(23), attr(18|nested, join(attr(4, str("bridge")),
			attr(5|nested, join(attr(1, []byte{state}), attr(33, []byte{1}))))))
	}
	for state, want := range []string{"disabled", "listening", "learning", "forwarding", "blocking"} {
		message := bytes.Replace(port(byte(state)), attr(18|0x8000, attr(1, str("vlan"))), nil, 1)
		if l, err := decodeLink(message); err != nil || l.port != want || !l.isolated || !l.silent {
			t.Errorf("state %d: %+v, %v", state, l, err)
		}
	}
	l, err := decodeLink(join(linkMessage(23), attr(48, u32(3))))
	s := Snapshot{links: map[int]link{}}
	s.addLink(l)
	down := func(r reading) bool { return r.name == "dev.eth0.100."+model.CarrierDown && r.value == 3 }
	if err != nil || !slices.ContainsFunc(s.readings, down) {
		t.Errorf("%+v, %v; want one that was down 3 times", s.readings, err)
	}
	if _, err := decodeLink(u32(0, 7, 1, 0)); err == nil {
		t.Error("a link without a name was taken")
	}
}

// What a tunnel refuses is no damaged frame, nor a full ring: one counter tells of it. What a bond counts so is its
// ports'.
func TestCardErrors(t *testing.T) {
	kind := func(name string) []byte { return attr(18|0x8000, attr(1, str(name))) }
	for name, want := range map[string]map[string]uint64{"wireguard": {"rx_refused": 10 + 11 + 12 + 13 + 14 + 15},
		"bond": {}, "vlan": {"rx_length_errors": 10, "rx_over_errors": 11, "rx_crc_errors": 12, "rx_frame_errors": 13,
			"rx_fifo_errors": 14, "rx_missed_errors": 15}} {
		l, err := decodeLink(bytes.Replace(linkMessage(23), kind("vlan"), kind(name), 1))
		s := Snapshot{links: map[int]link{}}
		s.addLink(l)
		got := map[string]uint64{}
		for _, c := range Diff(Snapshot{}, Snapshot{Taken: time.Unix(1, 0), readings: zeroed(s.readings)}, Snapshot{},
			Snapshot{Taken: time.Unix(2, 0), readings: s.readings, links: s.links}, 0) {
			name := strings.TrimPrefix(c.Name, "dev.eth0.100.")
			if name == "rx_refused" || slices.Contains(cardErrors, name) {
				got[name] = c.Whole
			}
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
	}
}

// zeroed are readings of the same counters before they moved.
func zeroed(readings []reading) []reading {
	before := slices.Clone(readings)
	for i := range before {
		before[i].value = 0
	}
	return before
}

// qdiscMessage writes an RTM_NEWQDISC.
func qdiscMessage(link, handle, parent uint32, kind string, options []byte, qlen, drops, requeues,
	overlimits uint32, own ...byte) []byte {
	return join(u32(0, link, handle, parent, 0), attr(1, str(kind)), attr(2, options),
		attr(7, join(attr(1, make([]byte, 12)), attr(3, u32(qlen, 99, drops, requeues, overlimits)), attr(4, own))))
}

// TestQdiscs: what is read of each message stands in the golden file.
func TestQdiscs(t *testing.T) {
	tbf := func(rate uint32, more ...[]byte) []byte {
		return join(attr(1, join(u32(0, 0, rate), make([]byte, 12), u32(3000, 9375, 0))), join(more...))
	}
	var out strings.Builder
	for _, b := range [][]byte{
		qdiscMessage(7, 0x10000, rootHandle, "tbf", tbf(0), 1, 2, 3, 4),
		qdiscMessage(7, 0x10000, rootHandle, "tbf", tbf(6250000), 0, 0, 0, 0),
		qdiscMessage(7, 0x10000, rootHandle, "tbf", // above 34 Gbit/s
			tbf(0xffffffff, attr(4, u32(5_000_000_000&0xffffffff, 5_000_000_000>>32))), 0, 0, 0, 0),
		qdiscMessage(7, 0x80010000, rootHandle, "netem",
			join(u32(0, 1000, 0, 0, 0, 0), attr(6, u32(125000, 0, 0, 0))), 0, 0, 0, 0),
		qdiscMessage(7, 0, rootHandle, "cake", attr(2, u32(125000, 0)), 0, 0, 0, 0),
		qdiscMessage(7, 0x80010000, 0x10001, "pfifo", u32(100), 0, 5, 0, 0),
		qdiscMessage(7, 0, rootHandle, "fq_codel", join(attr(1, u32(5000)), attr(2, u32(10240))), 0, 0, 0, 0),
		qdiscMessage(7, 0, rootHandle, "fq", join(attr(1, u32(10000)), attr(2, u32(100))), 0, 0, 0, 0),
		qdiscMessage(7, 0x20000, 0x10001, "fq", nil, 0, 8, 0, 0, join(make([]byte, 88), u32(6, 0, 7, 0))...),
		qdiscMessage(7, 0x20000, 0x10001, "fq", nil, 0, 8, 0, 0, make([]byte, 88)...), // before Linux 5.8
		qdiscMessage(7, 0, rootHandle, "netem", u32(5000, 1000), 0, 0, 0, 0),
		qdiscMessage(7, 0, rootHandle, "netem", u32(0, 1000, 1<<30, 0, 0, 0), 0, 0, 0, 0),
		qdiscMessage(7, 0, rootHandle, "netem", // as Gilbert and Elliott have it
			join(u32(0, 1000, 0, 0, 0, 0), attr(5, attr(2, u32(1, 2, 3, 4)))), 0, 0, 0, 0),
		qdiscMessage(7, 0xffff0000, ingressHandle, "clsact", nil, 0, 8, 0, 0),
		qdiscMessage(7, 0x20000, 0x10001, "fq_codel", nil, 0, 8, 0, 0, u32(0, 1514, 3, 0, 9)...),
		qdiscMessage(7, 0x20000, 0x10001, "fq_codel", nil, 0, 8, 0, 0), // a kernel that does not tell
		qdiscMessage(7, 0x20000, 0x10001, "codel", nil, 0, 8, 0, 0, u32(0, 0, 0, 0, 0, 5)...),
		qdiscMessage(7, 0x20000, 0x10001, "red", attr(1, u32(3000, 1000, 2000)), 0, 8, 0, 0, u32(6, 2)...),
		qdiscMessage(7, 0x20000, 0x10001, "sfq", u32(1514, 0, 127), 0, 8, 0, 0),
		qdiscMessage(7, 0x20000, 0x10001, "bfifo", u32(3000), 0, 8, 0, 0),
		qdiscMessage(7, 0, rootHandle, "cake", nil, 0, 8, 0, 0, join(attr(3, u32(4<<20)), attr(4, u32(1<<20)))...),
		qdiscMessage(7, 0, rootHandle, "cake", nil, 0, 8, 0, 0, join(attr(3, u32(4<<20)), attr(4, u32(5<<20)))...),
	} {
		q, err := decodeQdisc(b)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&out, "%s %+v\n", q.name(), q)
	}
	golden.File(t, "testdata/qdiscs.txt", out.String())
}

func TestQueues(t *testing.T) {
	at := func(queues ...qdisc) (s Snapshot) {
		s.links = map[int]link{7: {index: 7, name: "eth0"}}
		for _, q := range queues {
			s.addQdisc(q)
		}
		return s
	}
	tbf := qdisc{link: 7, handle: 0x10000, parent: rootHandle, kind: "tbf", rate: 125000}
	full, other := tbf, tbf
	full.queued, other.queued, other.handle = 9, 5, 0x20000
	want := model.Queue{Interface: "eth0", Kind: "tbf", Handle: "1:", RateBPS: 1e6, QueuedPackets: 9}
	if got := Queues(Snapshot{}, at(full), at(tbf)); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := Queues(Snapshot{}, at(other), at(tbf)); len(got) != 1 || got[0].QueuedPackets != 0 {
		t.Errorf("got %+v, want none queued: the queue was made anew", got)
	}
	if got := Queues(Snapshot{}, Snapshot{}, at(qdisc{link: 7, handle: 0xffff0000, parent: ingressHandle, kind: "clsact"},
		qdisc{link: 7, parent: rootHandle, kind: "noqueue"})); got != nil {
		t.Errorf("got %+v, want no queue: one is at the input, the other is none", got)
	}
}

// Of queues inside of another one those are told that dropped packets since the trial began.
func TestQueuesInside(t *testing.T) {
	at := func(codel, early uint32) (s Snapshot) {
		s.links = map[int]link{7: {index: 7, name: "eth0", txQueue: 1000}}
		s.addQdiscs([]qdisc{{link: 7, handle: 0x10000, parent: rootHandle, kind: "htb", drops: codel},
			{link: 7, handle: 0x20000, parent: 0x10001, kind: "fq_codel", drops: codel, early: early, limitPackets: 200},
			{link: 7, handle: 0x30000, parent: 0x10002, kind: "pfifo_fast", drops: 5}})
		return s
	}
	htb := model.Queue{Interface: "eth0", Kind: "htb", Handle: "1:", Dropped: 10, EarlyDropped: 4}
	codel := model.Queue{Interface: "eth0", Kind: "fq_codel", Handle: "2:", Inside: true, Dropped: 10, EarlyDropped: 4,
		LimitPackets: 200}
	if got := Queues(at(100, 3), Snapshot{}, at(110, 7)); !slices.Equal(got, []model.Queue{htb, codel}) {
		t.Errorf("got %+v", got)
	}
	if got := Queues(at(9, 3), Snapshot{}, at(8, 7)); len(got) != 1 || got[0].Dropped != 0 {
		t.Errorf("got %+v of a queue that was made anew", got)
	}
}

// TestActions decodes what Linux 6.1 answers where two policers are, and redirects.
func TestActions(t *testing.T) {
	police := func(number uint16, index, rate, ticks, drops uint32, more ...byte) []byte {
		parameters := join(u32(index, 2, 0, ticks, 2000), u32(0, 0, rate), make([]byte, 24))
		return attr(number, join(attr(1, str("police")), attr(4, join(attr(3, u32(0, 0, drops, 0, 0)))),
			attr(2, join(attr(1, parameters), more))))
	}
	mirred := func(number uint16, index, way, overlimits uint32) []byte {
		return attr(number, join(attr(1, str("mirred")), attr(4, join(attr(3, u32(0, 0, 0, 0, overlimits)))),
			attr(2, attr(2, u32(index, 0, 4, 1, 1, way, 9)))))
	}
	answer := join(u32(0), attr(1, join(police(1, 7, 2_500_000, 102400, 12), mirred(2, 5, 1, 14), mirred(4, 6, 2, 15),
		police(3, 8, 0xffffffff, 32768, 13, attr(8, u32(5_000_000_000&0xffffffff, 1))...))), attr(3, u32(3)))
	got, err := decodeActions(answer)
	want := []action{{"police", 7, 12, 2_500_000, 16384}, {"mirred", 5, 14, 0, 0},
		{"police", 8, 13, 5_000_000_000, 10_485_760}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestQdiscsAreCountedOnce(t *testing.T) {
	root := func(kind string, handle, drops uint32) qdisc {
		return qdisc{link: 7, kind: kind, handle: handle, parent: rootHandle, drops: drops}
	}
	child := func(parent, drops uint32) qdisc {
		return qdisc{link: 7, kind: "pfifo", handle: 0x20000, parent: parent, drops: drops}
	}
	for _, c := range []struct {
		name string
		all  []qdisc
		want []uint32
	}{
		{"mq sums its children up", []qdisc{root("mq", 0, 30), child(1, 10), child(2, 20)}, []uint32{30}},
		{"one that does not", []qdisc{root("taprio", 0x10000, 0), child(0x10001, 10), child(0x10002, 20)},
			[]uint32{30}},
		{"tbf counts what its child refuses", []qdisc{root("tbf", 0x10000, 10), child(0x10001, 10)}, []uint32{10}},
		{"sums wrap", []qdisc{root("taprio", 0x10000, 0), child(0x10001, 0xffffffff), child(0x10002, 3)}, []uint32{2}},
		{"another device's", []qdisc{root("tbf", 0x10000, 1), {link: 8, parent: 0x10001, drops: 5}}, []uint32{1}},
		{"ingress beside the root", []qdisc{root("tbf", 0x10000, 1),
			{link: 7, kind: "clsact", handle: 0xffff0000, parent: ingressHandle, drops: 5}}, []uint32{1, 5}},
	} {
		var got []uint32
		for _, q := range tops(c.all) {
			got = append(got, q.drops)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Expressions of a rule.
func expression(name string, data ...[]byte) []byte {
	return attr(1, join(attr(1, str(name)), attr(2, join(data...))))
}

func counterExpression(packets uint64) []byte {
	return expression("counter", attr(1, be64(packets*100)), attr(2, be64(packets)))
}

func verdictExpression(code int32, chain string) []byte {
	verdict := attr(1, be32(uint32(code)))
	if chain != "" {
		verdict = join(verdict, attr(2, str(chain)))
	}
	return expression("immediate", attr(1, be32(0)), attr(2, attr(2, verdict)))
}

func ruleMessage(family uint8, chain string, handle uint64, expressions ...[]byte) []byte {
	return join([]byte{family, 0, 0, 0}, attr(1, str("filter")), attr(2, str(chain)), attr(3, be64(handle)),
		attr(4, join(expressions...)))
}

func chainMessage(family uint8, name string, parts ...[]byte) []byte {
	return join([]byte{family, 0, 0, 0}, attr(1, str("filter")), attr(3, str(name)), join(parts...))
}

// TestRulesAndChains: what is read of each message stands in the golden file.
func TestRulesAndChains(t *testing.T) {
	var out strings.Builder
	tell := func(decoded any, err error) {
		if fmt.Fprintf(&out, "%+v\n", decoded); err != nil {
			t.Error(err)
		}
	}
	drop, accept := verdictExpression(0, ""), verdictExpression(1, "")
	match, counter := expression("cmp", attr(1, be32(1))), counterExpression(5)
	number := expression("immediate", attr(1, be32(1)), attr(2, attr(1, be32(0)))) // into a register that is no verdict
	target := func(name string) []byte { return expression("target", attr(1, str(name))) }
	for _, c := range []struct {
		name        string
		expressions [][]byte
	}{
		{"counter drop", [][]byte{match, counter, drop}},
		{"counter reject", [][]byte{match, counter, expression("reject", attr(1, be32(0)))}},
		{"counter log drop", [][]byte{counter, expression("log"), drop}},
		{"iptables-nft's REJECT", [][]byte{counter, target("REJECT")}},
		{"iptables-nft's LOG", [][]byte{counter, target("LOG")}},
		{"drop with an errno", [][]byte{counter, verdictExpression(13<<16, "")}},
		{"counter accept", [][]byte{counter, accept}},
		{"drop without a counter", [][]byte{match, drop}},
		{"counter before the match", [][]byte{counter, match, drop}},
		{"counter, limit, drop", [][]byte{counter, expression("limit"), drop}},
		{"counter and a number", [][]byte{counter, number}},
		{"a program's queue", [][]byte{match, counter, expression("queue", attr(1, []byte{0, 5}))}},
		{"that may be without a program", [][]byte{counter, expression("queue", attr(1, []byte{0, 5}), attr(3, []byte{0, 1}))}},
		{"one of two queues", [][]byte{counter, expression("queue", attr(1, []byte{0, 5}), attr(2, []byte{0, 2}))}},
		{"jump", [][]byte{match, counter, verdictExpression(-3, "user")}},
		{"goto", [][]byte{verdictExpression(-4, "user")}},
		{"return", [][]byte{counter, verdictExpression(-5, "")}},
		{"a set", [][]byte{counter, expression("lookup", attr(1, str("hosts"))), drop}},
		{"a map to verdicts", [][]byte{expression("lookup", attr(1, str("ports")), attr(3, be32(0)))}},
		{"nothing", nil},
	} {
		fmt.Fprintf(&out, "%s: ", c.name)
		tell(decodeRule(ruleMessage(1, "input", 9, c.expressions...)))
	}
	hooked := func(n uint32) []byte { return attr(4, join(attr(1, be32(n)), attr(2, be32(0)))) }
	policy := join(attr(5, be32(0)), attr(8, join(attr(1, be64(10)), attr(2, be64(3)))))
	for _, b := range [][]byte{
		chainMessage(1, "in", hooked(1), policy), chainMessage(2, "OUTPUT", hooked(3), attr(5, be32(1))),
		chainMessage(5, "x", hooked(1)), chainMessage(3, "x", hooked(1)), chainMessage(7, "x", hooked(77)),
		chainMessage(10, "user"),
	} {
		tell(decodeChain(b))
	}
	key := func(name string) chainKey { return chainKey{"inet", "filter", name} }
	from := hooks(
		[]chain{{chainKey: key("input"), hook: "input"}, {chainKey: key("OUT"), hook: "output"},
			{chainKey: key("alone")}},
		[]rule{
			{chainKey: key("input"), jumps: "a"}, {chainKey: key("input"), jumps: "both"},
			{chainKey: key("a"), jumps: "b"}, {chainKey: key("OUT"), jumps: "both"},
			{chainKey: key("b"), jumps: "a"}, // the kernel refuses loops; whoever answers in its place may not
		})
	fmt.Fprintf(&out, "chains and the hooks that they are reached from: %v\n", from)
	golden.File(t, "testdata/rules.txt", out.String())
}

// Whatever the kernel may answer, each decoder takes it or refuses it.
func FuzzMessages(f *testing.F) {
	for _, b := range [][]byte{
		linkMessage(25), qdiscMessage(7, 0x10000, rootHandle, "tbf", attr(1, make([]byte, 36)), 1, 2, 3, 4),
		qdiscMessage(7, 0, rootHandle, "fq_codel", attr(2, u32(10240)), 0, 0, 0, 0),
		ruleMessage(1, "input", 9, counterExpression(5), verdictExpression(0, "")),
		chainMessage(1, "in", attr(4, attr(1, be32(1))), attr(5, be32(0))), join([]byte{0, 0, 0, 1},
			attr(10, be32(3)), attr(9, be32(2))),
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := Snapshot{links: map[int]link{}}
		if l, err := decodeLink(b); err == nil {
			if s.addLink(l); l.name == "" || l.index <= 0 || len(l.stats) > len(linkCounters) {
				t.Errorf("took %+v", l)
			}
		}
		if q, err := decodeQdisc(b); err == nil {
			s.links[q.link] = link{index: q.link, name: "eth0"}
			for _, q := range tops([]qdisc{q, q}) {
				s.addQdisc(q)
			}
		}
		if r, err := decodeRule(b); err == nil && (r.chain == "" || r.table == "") {
			t.Errorf("took %+v", r)
		}
		if c, err := decodeChain(b); err == nil && c.chain == "" {
			t.Errorf("took %+v", c)
		}
		tracked := Snapshot{}
		_ = tracked.decodeConntrack(b)
		for _, r := range tracked.readings {
			if r.value > 1<<32-1 {
				t.Errorf("%s is %d", r.name, r.value)
			}
		}
	})
}

func FuzzDriverNames(f *testing.F) {
	f.Add("rx_drops rx0_drops [0]: rx_discards")
	f.Fuzz(func(t *testing.T, text string) {
		names := strings.Split(text, " ")
		if kept := driverLosses(names); len(kept) > len(names) {
			t.Errorf("kept %q of %q", kept, names)
		}
		for _, name := range names {
			if strings.ContainsAny(component(name), ". \n\x00") {
				t.Errorf("%q became %q", name, component(name))
			}
		}
	})
}

// A list that is never the same from its begin to its end is told to change, not to be of another form.
func TestListThatKeepsChanging(t *testing.T) {
	var s Snapshot
	c := nltest.Dial(func(asked []netlink.Message) ([]netlink.Message, error) {
		answer := asked[0]
		answer.Header.Flags |= netlink.DumpInterrupted
		return []netlink.Message{answer}, nil
	})
	defer c.Close()
	s.lacks("conntrack", s.askConntrack(c))
	if got := fmt.Sprint(s.Unread); got != "[unread: conntrack: kept-changing]" {
		t.Error(got)
	}
}

func TestKnobNames(t *testing.T) {
	if got := sysctlPath(sysctlName("net.ipv4.conf.IF.rp_filter",
		"eth0.100")); got != "/proc/sys/net/ipv4/conf/eth0.100/rp_filter" {
		t.Errorf("path %s", got)
	}
	for _, c := range []struct {
		l              link
		index, address string
		want           bool
	}{
		{link{index: 7, address: "\x02\x00\x00\x00\x00\xfe"}, "7", "02:00:00:00:00:fe", true},
		{link{index: 7, address: "\x02\x00\x00\x00\x00\xfe"}, "8", "02:00:00:00:00:fe", false},
		{link{index: 7, address: "\x02\x00\x00\x00\x00\xfe"}, "7", "02:00:00:00:00:ff", false},
		{link{index: 7, address: "\x02"}, "", "", false},
		{link{index: 1, loopback: true, address: "\x00"}, "1", "00", false},
	} {
		if got := sameDevice(c.l, c.index, c.address); got != c.want {
			t.Errorf("%+v and %s %s: %v", c.l, c.index, c.address, got)
		}
	}
}
