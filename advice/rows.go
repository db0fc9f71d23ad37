package advice

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// row is one setting: for which lines it counts, and what it should be.
type row struct {
	causes string               // rows of the ledger's table of causes, by name
	when   func(*question) bool // nil: always
	knob   string               // DEV stands for the line's interface
	// want returns the least value that is enough, and how it was reckoned; "" if that is not known.
	want    func(q *question, present uint64) (value uint64, formula string)
	step    uint64 // a new value is a multiple of it; 0: any
	words   string // of a setting that is a word: the present ones to change, and to which: "a b -> c"
	ofCard  bool   // the card bounds it, and says how
	note    string // what a change costs
	enough  string // why the present value is not the limit; "": it holds what the formula says
	instead string // what to do then; "": nothing is said then
}

const (
	moreCores = "the processor is: give the receiver a core of its own away from the one that takes the " +
		"interrupts, or spread the flow over more --streams"
	moreQueues = "the core that empties it is: more receive queues (ethtool -L), and --streams to fill them"
	anyProgram = "lets every program of this host ask for as much"
	burstsOnly = "a longer queue delays, and helps against bursts only: " +
		"if the link is slower than the flow, ask for less --rate"
	cardChannels = "the link goes down for a moment; helps if there are cores to empty them, " +
		"and if the card tells the streams apart (ethtool -N DEV rx-flow-hash udp4 sdfn)"
	waiting       = "helps only if the neighbour answers in that time"
	keptMemory    = "costs kernel memory; another program's unfinished fragments may hold it, each for up to 30 s"
	noNeighbour   = "no neighbour answers: is the next hop there?"
	bufferPortion = 64 << 10
)

// rows is the table, in the order of the printed advice. Kernel text behind it:
// Documentation/admin-guide/sysctl/net.rst, networking/scaling.rst and napi.rst.
var rows = [...]row{
	// The kernel accounts twice what SO_RCVBUF asks, and net.core.rmem_max bounds what is asked.
	{causes: "SOCKET_RCVBUFF", when: mayAsk, knob: bufferKnob, want: socketBuffer, instead: moreCores,
		note: "net.core.rmem_max allows it; another program asks with SO_RCVBUF for half, which the kernel doubles; " +
			"a fuller buffer delays packets"},
	{causes: "SOCKET_RCVBUFF", when: mayNotAsk, knob: "net.core.rmem_max", want: half(socketBuffer),
		step: bufferPortion, instead: moreCores, note: anyProgram + "; a fuller buffer delays packets"},
	// udp_mem[0] is the limit that acts, for UDP has no pressure state (kernel commit 69dfccbc1186).
	{causes: "PROTO_MEM", knob: "net.ipv4.udp_mem", want: memoryPages,
		note:    "holds for all sockets of the kernel; set in the first namespace",
		instead: "look for a memory limit of the receiver's control group, or other programs' sockets"},
	{causes: "CPU_BACKLOG", knob: "net.core.netdev_max_backlog", want: burst, step: 1000,
		note: "holds for all namespaces and cores of the host; set in the first namespace. " +
			"A fuller backlog delays packets",
		instead: "the core that empties it is: fewer rules on the way, or more receive queues (RSS, rps_cpus) and " +
			"--streams to fill them"},
	{causes: model.CauseRingMissed, knob: "DEV.rx_ring", want: ring, ofCard: true, instead: moreQueues,
		note: "the link goes down for a moment; a larger ring costs cache and delay"},
	{causes: model.CauseRingMissed, knob: "DEV.channels_combined", want: channels, ofCard: true, note: cardChannels},
	{causes: model.CauseRingMissed, when: func(q *question) bool { return q.of("DEV.channels_combined") == 0 },
		knob: "DEV.channels_rx", want: channels, ofCard: true, note: cardChannels},
	// Only where the softirq ran out of turns while the ring ran over.
	{causes: model.CauseRingMissed, when: func(q *question) bool { return q.moved("time_squeeze") },
		knob: "net.core.netdev_budget", want: budget,
		note: "holds for the whole host; takes time from programs on the same core"},
	{causes: model.CauseRingFull, when: received, knob: "DEV.threaded", words: "1 -> 0", want: because(
		"the thread that empties this ring did not keep up; in a softirq it needs no turn of the scheduler")},
	// An fq bounds what one socket may have in it, and all together (net/sched/sch_fq.c, fq_enqueue).
	{causes: queues, when: queuedIn("fq"), knob: "DEV.qdisc_flow_limit_packets", want: burstOfSocket, note: burstsOnly},
	{causes: queues, when: queuedIn("fq", "pfifo"), knob: "DEV.qdisc_limit_packets", want: burst, note: burstsOnly},
	{causes: queues, when: queuedIn("pfifo_fast"), knob: "DEV.txqueuelen", want: burst, note: burstsOnly},
	{causes: queues, when: queuedIn(), knob: "DEV.txqueuelen", want: because("nothing"),
		enough:  "the link or its shaper takes fewer packets than the flow offers",
		instead: "ask for less --rate, or count this loss as the sender's, not the path's"},
	// It must hold what waits in the queue twice over, or the program hears EAGAIN before the queue is full.
	{causes: "EAGAIN", knob: "net.core.wmem_max", want: half(sendBuffer), step: bufferPortion, note: anyProgram,
		instead: "the way out is slower than the flow: ask for less --rate"},
	{causes: "NEIGH_QUEUEFULL", when: unresolved(4), knob: "net.ipv4.neigh.DEV.unres_qlen_bytes", want: burstBytes,
		step: 4096, note: waiting, instead: noNeighbour},
	{causes: "NEIGH_QUEUEFULL", when: unresolved(6), knob: "net.ipv6.neigh.DEV.unres_qlen_bytes", want: burstBytes,
		step: 4096, note: waiting, instead: noNeighbour},
	// Above it IP begins no datagram until others are whole, or 30 s old (net/ipv4/inet_fragment.c, inet_frag_find).
	{causes: "FRAG_MEMORY", when: fragments(4), knob: "net.ipv4.ipfrag_high_thresh", want: unfinished,
		note: keptMemory},
	{causes: "FRAG_MEMORY", when: fragments(6), knob: "net.ipv6.ip6frag_high_thresh", want: unfinished,
		note: keptMemory},
	// 2 accepts a source that some other interface leads to.
	{causes: "IP_RPFILTER", knob: "net.ipv4.conf.DEV.rp_filter", want: looseFilter,
		note: "accepts more forged source addresses", enough: "it is loose already",
		instead: "this host has no route to the sender's address at all"},
	// Packets of new connections are dropped when the table is full.
	{causes: "CONNTRACK_FULL NETFILTER_DROP", when: func(q *question) bool { return q.moved("conntrack.") },
		knob: "net.netfilter.nf_conntrack_max", want: connections,
		note: "costs kernel memory for each; or do not track the test's port (nft notrack in a raw prerouting chain)"},
	{causes: "SOCKET_RCVBUFF CPU_BACKLOG " + model.CauseRingMissed + " " + model.CauseRingFull,
		when: received, knob: "cpu.governor", words: "powersave ondemand conservative schedutil -> performance",
		want: because("what empties this queue ran too late or too slowly, and the cores clock down when they are idle"),
		note: "costs power and heat"},
}

// advise judges a row's setting. ok is false if it is not known, or nothing is to be said.
func (r *row) advise(q *question) (a model.Advice, ok bool) {
	if a.Knob, ok = q.named(r.knob); !ok {
		return a, false
	}
	a.Present, a.Note = q.knob(a.Knob), r.note
	if from, to, word := strings.Cut(r.words, " -> "); word {
		_, a.Why = r.want(q, 0)
		a.Value = to
		return a, slices.Contains(strings.Fields(from), a.Present)
	}
	numbers, ok := parseAll(a.Present)
	most, bounded := q.number(a.Knob + "_max")
	// only a sysctl has several
	if !ok || r.ofCard && !bounded || len(numbers) > 1 && !strings.HasPrefix(r.knob, "net.") {
		return a, false
	}
	value, formula := r.want(q, numbers[0])
	if formula == "" {
		return a, false
	}
	wanted := value
	if r.ofCard {
		value = min(value, most)
	}
	a.Present, a.Why = join(numbers), formula
	switch {
	case numbers[0] < value:
		value = roundUp(value, max(r.step, 1))
		for i, n := range numbers {
			numbers[i] = max(n, value)
		}
		a.Value = join(numbers)
		return a, true
	case r.enough != "":
		a.Why = r.enough
	case numbers[0] < wanted:
		a.Why = "it is as large as the card allows (" + formula + " wanted)"
	default:
		a.Why = "it already holds " + formula
	}
	a.Note = r.instead
	return a, r.instead != ""
}

// received reports whether the line is of packets that came to its host, not of those that it sent.
func received(q *question) bool { return q.line.Layer != model.LayerSenderDevice }

// mayAsk reports whether a program would be granted the buffer that its sockets need, or has it.
func mayAsk(q *question) bool {
	return q.BufferBytes > 0 &&
		(uint64(q.BufferBytes) >= q.buffer() || 2*q.of("net.core.rmem_max") >= q.buffer())
}

func mayNotAsk(q *question) bool { return !mayAsk(q) }

// unresolved reports whether packets of a family waited for a neighbour.
func unresolved(family int) func(*question) bool {
	return func(q *question) bool { return q.moved("ndisc_cache.") == (family == 6) }
}

// fragments reports whether the packets were fragments of a family.
func fragments(family int) func(*question) bool {
	return func(q *question) bool {
		return (q.moved("Ip6.") || strings.HasPrefix(q.line.Function, "ipv6_")) == (family == 6)
	}
}

// queues are the causes of a queue that dropped.
const queues = "QDISC_DROP QDISC_CONGESTED"

// queuedIn reports whether the line's queue is of one of these kinds, none being any.
func queuedIn(kinds ...string) func(*question) bool {
	return func(q *question) bool {
		kind := q.knob(q.device() + ".qdisc")
		if kind == "mq" && q.knob("net.core.default_qdisc") == "pfifo_fast" {
			kind = "pfifo_fast" // mq's children take the length over
		}
		if q.RatePPS == 0 || kind == "" || strings.HasSuffix(q.line.Cause, "FLOW_LIMIT") && kind != "fq" {
			return false // an fq below mq has limits that are not known
		}
		return len(kinds) == 0 || slices.Contains(kinds, kind)
	}
}

// commands are how a setting is set, by the end of its name: %[1]s is its interface, %[2]s the value, %[3]s the kind
// of the interface's queue. All others are sysctls.
var commands = []struct{ suffix, format string }{
	{".rx_ring", "ethtool -G %[1]s rx %[2]s"},
	{".channels_combined", "ethtool -L %[1]s combined %[2]s"},
	{".channels_rx", "ethtool -L %[1]s rx %[2]s"},
	{".threaded", "echo %[2]s > /sys/class/net/%[1]s/threaded"},
	{".txqueuelen", "ip link set dev %[1]s txqueuelen %[2]s"},
	{".qdisc_limit_packets", "tc qdisc change dev %[1]s root %[3]s limit %[2]s"},
	{".qdisc_flow_limit_packets", "tc qdisc change dev %[1]s root %[3]s flow_limit %[2]s"},
	{"cpu.governor", "cpupower frequency-set -g %[2]s"},
	{bufferKnob, "pelt curve HOST --receive-buffer %[2]s"},
}

// command sets a knob. Each of its parts was checked: it is a number, a known word, or the name of an interface.
func (q *question) command(knob, value string) string {
	for _, c := range commands {
		if dev, ok := strings.CutSuffix(knob, c.suffix); ok {
			return fmt.Sprintf(strings.ReplaceAll(c.format, "%[3]s", q.knob(dev+".qdisc")), dev, value)
		}
	}
	if strings.Contains(value, " ") {
		value = "'" + value + "'"
	}
	return "sysctl -w " + knob + "=" + value
}

// want is what a setting should be; see row.
type want = func(q *question, present uint64) (value uint64, formula string)

func because(why string) want {
	return func(*question, uint64) (uint64, string) { return 0, why }
}

// budget is twice the kernel's default. More is of no use: net.core.netdev_budget_usecs, 2 ms, ends a softirq first.
func budget(*question, uint64) (uint64, string) {
	return 600, "softnet.time_squeeze rose with it: twice the kernel's 300 packets for one softirq"
}

// half is of a buffer that programs ask for: the kernel grants twice as much.
func half(of want) want {
	return func(q *question, present uint64) (uint64, string) {
		value, formula := of(q, present)
		if formula != "" {
			formula += ", half of which a program asks for"
		}
		return (value + 1) / 2, formula
	}
}

func stall() string { return unit.FormatNanos(stallS * 1e9) }

// rate is the rate of each of so many equal parts of the flow.
func (q *question) rate(parts uint64) string { return unit.FormatPPS(q.RatePPS / float64(parts)) }

func socketBuffer(q *question, _ uint64) (uint64, string) {
	need := q.buffer()
	if need == 0 {
		return 0, ""
	}
	size, source := q.truesize()
	return need, fmt.Sprintf("%s a socket x %s x %d B (%s) = %s B",
		q.rate(uint64(q.Streams)), stall(), size, source, unit.FormatCount(need))
}

// memoryPages holds all buffers of the receiving sockets and a quarter more.
func memoryPages(q *question, _ uint64) (uint64, string) {
	page := q.of("page_size_bytes")
	each, from := q.buffer(), "the buffer that this rate needs"
	if q.BufferBytes > 0 {
		each, from = uint64(q.BufferBytes), "the granted buffer"
	}
	if page < 1024 || each == 0 {
		return 0, "" // a page has 4 KiB, 16 KiB or 64 KiB
	}
	need := ceil(1.25 * float64(each) * float64(q.Streams) / float64(page))
	return need, fmt.Sprintf("1.25 x %d sockets x %s B (%s) / %d B = %s pages, "+
		"and the first figure is the one that acts",
		q.Streams, unit.FormatCount(each), from, page, unit.FormatCount(need))
}

// burst is the packets that come in a stall.
func burst(q *question, _ uint64) (uint64, string) { return q.burst(1) }

func burstOfSocket(q *question, _ uint64) (uint64, string) { return q.burst(uint64(q.Streams)) }

func (q *question) burst(parts uint64) (packets uint64, formula string) {
	if q.RatePPS == 0 {
		return 0, ""
	}
	packets = ceil(q.RatePPS / float64(parts) * stallS)
	each := ""
	if parts > 1 {
		each = " a socket"
	}
	return packets, fmt.Sprintf("%s%s x %s = %s packets", q.rate(parts), each, stall(), unit.FormatCount(packets))
}

func burstBytes(q *question, _ uint64) (uint64, string) {
	if q.RatePPS == 0 {
		return 0, ""
	}
	size, source := q.truesize()
	return ceil(q.RatePPS * stallS * float64(size)), fmt.Sprintf("%s x %s x %d B (%s)", q.rate(1), stall(), size,
		source)
}

// ring is the next power of two above the packets of one queue that come between an interrupt and the poll.
func ring(q *question, _ uint64) (uint64, string) {
	const pollS = 0.001
	if q.RatePPS == 0 {
		return 0, ""
	}
	queues := max(q.of("DEV.channels_combined"), q.of("DEV.channels_rx"), 1)
	queues = min(queues, uint64(q.Streams)) // one 5-tuple goes to one queue
	need := ceil(q.RatePPS / float64(queues) * pollS)
	return powerOfTwo(need), fmt.Sprintf("%s a queue x 1 ms = %s packets", q.rate(queues), unit.FormatCount(need))
}

// channels are as many receive queues as the streams could fill. One 5-tuple goes to one queue, so one stream gains
// nothing (Documentation/networking/scaling.rst).
func channels(q *question, present uint64) (uint64, string) {
	if present == 0 {
		return 0, ""
	}
	return uint64(q.Streams), fmt.Sprintf("%d streams share %d queues", q.Streams, present)
}

func sendBuffer(q *question, _ uint64) (uint64, string) {
	packets := q.of("DEV.qdisc_limit_packets")
	if packets == 0 {
		packets = q.of("DEV.txqueuelen")
	}
	if packets == 0 {
		return 0, ""
	}
	size, source := q.truesize()
	need := ceil(2 * float64(packets) * float64(size))
	return need, fmt.Sprintf("2 x %s packets of queue x %d B (%s) = %s B",
		unit.FormatCount(packets), size, source, unit.FormatCount(need))
}

// looseFilter is 2, unless the kernel takes the greater setting of all interfaces already.
func looseFilter(q *question, present uint64) (uint64, string) {
	const why = "the way back to the sender leads through another interface; 2 accepts any that leads there"
	if q.of("net.ipv4.conf.all.rp_filter") >= 2 {
		return present, why
	}
	return 2, why
}

// unfinished holds a datagram of each stream. What other programs leave unfinished is not known: it is to hold twice as
// much as it did, and no less than where the kernel begins (IPFRAG_HIGH_THRESH in include/net/ip.h, and of IPv6).
func unfinished(q *question, present uint64) (uint64, string) {
	const kernels = 4 << 20
	if present > math.MaxInt32 {
		return 0, ""
	}
	size, source := q.truesize()
	need := ceil(float64(q.Streams) * float64(size))
	switch most := max(need, kernels, 2*present); most {
	case need:
		return need, fmt.Sprintf("%d streams x a datagram of %d B (%s)", q.Streams, size, source)
	case kernels:
		return kernels, fmt.Sprintf("%s B had no room for more fragments: the kernel's own limit",
			unit.FormatCount(present))
	}
	return 2 * present, fmt.Sprintf("%s B had no room for more fragments: twice as many", unit.FormatCount(present))
}

func connections(q *question, present uint64) (uint64, string) {
	used := q.of("net.netfilter.nf_conntrack_count")
	if float64(used) < 0.9*float64(present) || present > math.MaxInt32 {
		return 0, ""
	}
	return 2 * present, fmt.Sprintf("%s of %s connections tracked: twice as many", unit.FormatCount(used),
		unit.FormatCount(present))
}
