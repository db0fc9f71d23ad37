package advice

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/model"
)

// row is one setting: for which lines it counts, and what it should be. Its texts are codes of reasons.
type row struct {
	causes string               // rows of the ledger's table of causes, by name
	when   func(*question) bool // nil: always
	knob   string               // DEV stands for the line's interface
	// want returns the least value that is enough, and how it was reckoned; nil if that is not known.
	want    func(q *question, present uint64) (value uint64, formula model.Doubts)
	step    uint64 // a new value is a multiple of it; 0: any
	words   string // of a setting that is a word: the present ones to change, and to which: "a b -> c"
	ofCard  bool   // the card bounds it, and says how
	note    string // what a change costs
	enough  string // why the present value is not the limit; "": it holds what the formula says
	instead string // what to do then; "": nothing is said then
}

const bufferPortion = 64 << 10

// rows is the table, in the order of the printed advice. Kernel text behind it:
// Documentation/admin-guide/sysctl/net.rst, networking/scaling.rst and napi.rst.
var rows = [...]row{
	// The kernel accounts twice what SO_RCVBUF asks, and net.core.rmem_max bounds what is asked.
	{causes: "SOCKET_RCVBUFF", when: mayAsk, knob: bufferKnob, want: socketBuffer, instead: model.NoteCores,
		note: model.NoteProgramHalf + " " + model.NoteBufferDelays},
	{causes: "SOCKET_RCVBUFF", when: mayNotAsk, knob: "net.core.rmem_max", want: half(socketBuffer),
		step: bufferPortion, instead: model.NoteCores, note: model.NoteAnyProgram + " " + model.NoteBufferDelays},
	// udp_mem[0] is the limit that acts, for UDP has no pressure state (kernel commit 69dfccbc1186).
	{causes: "PROTO_MEM", knob: "net.ipv4.udp_mem", want: memoryPages, note: model.NoteKernelSockets,
		instead: model.NoteGroupMemory},
	{causes: "CPU_BACKLOG", knob: "net.core.netdev_max_backlog", want: burst, step: 1000,
		note: model.NoteWholeHost + " " + model.NoteBufferDelays, instead: model.NoteFewerRules},
	{causes: model.CauseRingMissed, knob: "DEV.rx_ring", want: ring, ofCard: true, instead: model.NoteQueues,
		note: model.NoteRing},
	{causes: model.CauseRingMissed, knob: "DEV.channels_combined", want: channels, ofCard: true,
		note: model.NoteChannels},
	{causes: model.CauseRingMissed, when: func(q *question) bool { return q.of("DEV.channels_combined") == 0 },
		knob: "DEV.channels_rx", want: channels, ofCard: true, note: model.NoteChannels},
	// Only where the softirq ran out of turns while the ring ran over.
	{causes: model.CauseRingMissed, when: func(q *question) bool { return q.moved("time_squeeze") },
		knob: "net.core.netdev_budget", want: budget, note: model.NoteBudget},
	{causes: model.CauseRingFull, when: received, knob: "DEV.threaded", words: "1 -> 0",
		want: because(model.NeedSoftirq)},
	// An fq bounds what one socket may have in it, and all together (net/sched/sch_fq.c, fq_enqueue).
	{causes: queues, when: queuedIn("fq"), knob: "DEV.qdisc_flow_limit_packets", want: burstOfSocket,
		note: model.NoteBursts},
	{causes: queues, when: queuedIn("fq", "pfifo"), knob: "DEV.qdisc_limit_packets", want: burst,
		note: model.NoteBursts},
	{causes: queues, when: queuedIn("pfifo_fast"), knob: "DEV.txqueuelen", want: burst, note: model.NoteBursts},
	{causes: queues, when: queuedIn(), knob: "DEV.txqueuelen", want: because(model.LinkSlower),
		enough: model.LinkSlower, instead: model.NoteSendLess},
	// It must hold what waits in the queue twice over, or the program hears EAGAIN before the queue is full.
	{causes: "EAGAIN", knob: "net.core.wmem_max", want: half(sendBuffer), step: bufferPortion,
		note: model.NoteAnyProgram, instead: model.NoteWayOut},
	{causes: "NEIGH_QUEUEFULL", when: unresolved(4), knob: "net.ipv4.neigh.DEV.unres_qlen_bytes", want: burstBytes,
		step: 4096, note: model.NoteWaiting, instead: model.NoteNoNeighbour},
	{causes: "NEIGH_QUEUEFULL", when: unresolved(6), knob: "net.ipv6.neigh.DEV.unres_qlen_bytes", want: burstBytes,
		step: 4096, note: model.NoteWaiting, instead: model.NoteNoNeighbour},
	// Above it IP begins no datagram until others are whole, or 30 s old (net/ipv4/inet_fragment.c, inet_frag_find).
	{causes: "FRAG_MEMORY FRAG_FAILED", when: fragments(4), knob: "net.ipv4.ipfrag_high_thresh", want: unfinished,
		note: model.NoteKeptMemory},
	{causes: "FRAG_MEMORY FRAG_FAILED", when: fragments(6), knob: "net.ipv6.ip6frag_high_thresh", want: unfinished,
		note: model.NoteKeptMemory},
	// 2 accepts a source that some other interface leads to.
	{causes: "IP_RPFILTER", knob: "net.ipv4.conf.DEV.rp_filter", want: looseFilter,
		note: model.NoteForged, enough: model.LooseAlready, instead: model.NoteNoRoute},
	// Packets of new connections are dropped when the table is full.
	{causes: "CONNTRACK_FULL NETFILTER_HOOK NETFILTER_DROP", when: func(q *question) bool { return q.moved("conntrack.") },
		knob: "net.netfilter.nf_conntrack_max", want: connections, note: model.NoteTracked},
	{causes: "SOCKET_RCVBUFF CPU_BACKLOG " + model.CauseRingMissed + " " + model.CauseRingFull,
		when: received, knob: "cpu.governor", words: "powersave ondemand conservative schedutil -> performance",
		want: because(model.NeedAwake), note: model.NotePower},
}

// notes are reasons without figures, by their codes.
func notes(codes string) (list model.Doubts) {
	for code := range strings.FieldsSeq(codes) {
		list = append(list, model.Reason{Code: code})
	}
	return list
}

// advise judges a row's setting. ok is false if it is not known, or nothing is to be said.
func (r *row) advise(q *question) (a model.Advice, ok bool) {
	if a.Knob, ok = q.named(r.knob); !ok {
		return a, false
	}
	a.Present, a.Note = q.knob(a.Knob), notes(r.note)
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
	if formula == nil {
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
		a.Why = notes(r.enough)
	case numbers[0] < wanted:
		a.Why = append(a.Why, model.Reason{Code: model.CardMost})
	default:
		a.Why = append(a.Why, model.Reason{Code: model.HoldsAlready})
	}
	a.Note = notes(r.instead)
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
type want = func(q *question, present uint64) (value uint64, formula model.Doubts)

func because(code string) want {
	return func(*question, uint64) (uint64, model.Doubts) { return 0, notes(code) }
}

// figures are numbers by name.
type figures map[string]float64

func reckoned(code string, n figures) model.Doubts { return model.Doubts{{Code: code, Numbers: n}} }

// budget is twice the kernel's default. More is of no use: net.core.netdev_budget_usecs, 2 ms, ends a softirq first.
func budget(*question, uint64) (uint64, model.Doubts) { return 600, notes(model.NeedBudget) }

// half is of a buffer that programs ask for: the kernel grants twice as much.
func half(of want) want {
	return func(q *question, present uint64) (uint64, model.Doubts) {
		value, formula := of(q, present)
		if formula != nil {
			formula = append(formula, model.Reason{Code: model.NeedHalf})
		}
		return (value + 1) / 2, formula
	}
}

// waiting is how many packets of each of so many equal parts of the flow have to wait: those of a stall, or of a burst.
func (q *question) waiting(parts uint64) (packets float64, n figures) {
	each := q.RatePPS / float64(parts)
	packets, n = each*stallS, figures{"flow_pps": each, "stall_s": stallS}
	if burst := float64(q.BurstPackets); q.RatePPS > 0 && burst > packets {
		return burst, figures{"burst_packets": burst}
	}
	if parts > 1 {
		n["each"] = 1
	}
	return packets, n
}

func socketBuffer(q *question, _ uint64) (uint64, model.Doubts) {
	need := q.buffer()
	if need == 0 {
		return 0, nil
	}
	_, n := q.waiting(uint64(q.Streams))
	n["need_bytes"] = float64(need)
	return need, reckoned(model.NeedBuffer, q.size(n))
}

// size adds the memory of a queued datagram to figures, and whether it was measured.
func (q *question) size(n figures) figures {
	bytes, measured := q.truesize()
	if n["truesize_bytes"] = float64(bytes); measured {
		n["measured"] = 1
	}
	return n
}

// memoryPages holds all buffers of the receiving sockets and a quarter more.
func memoryPages(q *question, _ uint64) (uint64, model.Doubts) {
	page, each := q.of("page_size_bytes"), q.buffer()
	if q.BufferBytes > 0 {
		each = uint64(q.BufferBytes)
	}
	if page < 1024 || each == 0 {
		return 0, nil // a page has 4 KiB, 16 KiB or 64 KiB
	}
	need := ceil(1.25 * float64(each) * float64(q.Streams) / float64(page))
	n := figures{"sockets": float64(q.Streams), "buffer_bytes": float64(each), "page_bytes": float64(page),
		"pages": float64(need)}
	if q.BufferBytes > 0 {
		n["granted"] = 1
	}
	return need, reckoned(model.NeedPages, n)
}

// burst is the packets that come in a stall.
func burst(q *question, _ uint64) (uint64, model.Doubts) { return q.burst(1) }

func burstOfSocket(q *question, _ uint64) (uint64, model.Doubts) { return q.burst(uint64(q.Streams)) }

func (q *question) burst(parts uint64) (packets uint64, formula model.Doubts) {
	if q.RatePPS == 0 {
		return 0, nil
	}
	many, n := q.waiting(parts)
	packets = ceil(many)
	n["packets"] = float64(packets)
	return packets, reckoned(model.NeedBurst, n)
}

func burstBytes(q *question, _ uint64) (uint64, model.Doubts) {
	if q.RatePPS == 0 {
		return 0, nil
	}
	size, _ := q.truesize()
	need := ceil(q.RatePPS * stallS * float64(size))
	return need, reckoned(model.NeedBurstBytes, q.size(figures{"flow_pps": q.RatePPS, "stall_s": stallS,
		"need_bytes": float64(need)}))
}

// ring is the next power of two above the packets of one queue that come between an interrupt and the poll.
func ring(q *question, _ uint64) (uint64, model.Doubts) {
	const pollS = 0.001
	if q.RatePPS == 0 {
		return 0, nil
	}
	queues := max(q.of("DEV.channels_combined"), q.of("DEV.channels_rx"), 1)
	queues = min(queues, uint64(q.Streams)) // one 5-tuple goes to one queue
	need := ceil(q.RatePPS / float64(queues) * pollS)
	return powerOfTwo(need), reckoned(model.NeedRing, figures{"flow_pps": q.RatePPS / float64(queues), "stall_s": pollS,
		"packets": float64(need)})
}

// channels are as many receive queues as the streams could fill. One 5-tuple goes to one queue, so one stream gains
// nothing (Documentation/networking/scaling.rst).
func channels(q *question, present uint64) (uint64, model.Doubts) {
	if present == 0 {
		return 0, nil
	}
	return uint64(q.Streams), reckoned(model.NeedQueues, figures{"streams": float64(q.Streams),
		"queues": float64(present)})
}

func sendBuffer(q *question, _ uint64) (uint64, model.Doubts) {
	packets := q.of("DEV.qdisc_limit_packets")
	if packets == 0 {
		packets = q.of("DEV.txqueuelen")
	}
	if packets == 0 {
		return 0, nil
	}
	size, _ := q.truesize()
	need := ceil(2 * float64(packets) * float64(size))
	return need, reckoned(model.NeedSendBuffer, q.size(figures{"packets": float64(packets),
		"need_bytes": float64(need)}))
}

// looseFilter is 2, unless the kernel takes the greater setting of all interfaces already.
func looseFilter(q *question, present uint64) (uint64, model.Doubts) {
	why := notes(model.NeedLooseFilter)
	if q.of("net.ipv4.conf.all.rp_filter") >= 2 {
		return present, why
	}
	return 2, why
}

// unfinished holds a datagram of each stream. What other programs leave unfinished is not known: it is to hold twice as
// much as it did, and no less than where the kernel begins (IPFRAG_HIGH_THRESH in include/net/ip.h, and of IPv6).
func unfinished(q *question, present uint64) (uint64, model.Doubts) {
	const kernels = 4 << 20
	if present > math.MaxInt32 {
		return 0, nil
	}
	size, _ := q.truesize()
	need := ceil(float64(q.Streams) * float64(size))
	switch most := max(need, kernels, 2*present); most {
	case need:
		return need, reckoned(model.NeedDatagrams, q.size(figures{"streams": float64(q.Streams)}))
	case kernels:
		return kernels, reckoned(model.NeedKernels, figures{"present_bytes": float64(present)})
	}
	return 2 * present, reckoned(model.NeedTwice, figures{"present_bytes": float64(present)})
}

func connections(q *question, present uint64) (uint64, model.Doubts) {
	used := q.of("net.netfilter.nf_conntrack_count")
	if float64(used) < 0.9*float64(present) || present > math.MaxInt32 {
		return 0, nil
	}
	return 2 * present, reckoned(model.NeedConnections, figures{"used": float64(used), "most": float64(present)})
}
