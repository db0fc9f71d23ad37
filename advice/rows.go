package advice

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// row is one line of the table: when it applies, and what it advises: settings with their present values, what they
// should be, and why. Without a value the present one is not the limit, and the note says what to do instead.
type row struct {
	applies func(*question) bool
	advise  func(*question) []model.Advice
}

// rows is the table, in the order of the printed advice. Kernel text behind it:
// Documentation/admin-guide/sysctl/net.rst, networking/scaling.rst and napi.rst.
var rows = [...]row{
	{at(model.LayerReceiverBuffer), receiveBuffer},
	{at(model.LayerReceiverMemory), udpMemory},
	{backlogged, backlog},
	{ringMissed, ring},
	{ringMissed, channels},
	{func(q *question) bool { return ringMissed(q) && q.moved("time_squeeze") }, budget},
	{ringFull, threaded},
	{queued, queueLength},
	{wouldBlock, sendBuffer},
	{unresolved, neighbour},
	{func(q *question) bool { return q.line.Cause == "IP_RPFILTER" }, reversePath},
	{untracked, conntrack},
	{emptiedLate, governor},
}

func at(layer string) func(*question) bool {
	return func(q *question) bool { return q.line.Layer == layer }
}

func backlogged(q *question) bool { return q.cause(model.LayerReceiverBacklog, "CPU_BACKLOG") }
func ringMissed(q *question) bool { return q.cause(model.LayerReceiverRing, model.CauseRingMissed) }
func ringFull(q *question) bool   { return q.cause(model.LayerReceiverRing, model.CauseRingFull) }
func wouldBlock(q *question) bool { return at(model.LayerSendCall)(q) && q.line.Cause == "EAGAIN" }
func unresolved(q *question) bool { return strings.HasPrefix(q.line.Cause, "NEIGH_QUEUEFULL") }
func untracked(q *question) bool  { return q.line.Cause == "NETFILTER_DROP" && q.moved("conntrack.") }

// emptiedLate reports whether the line is of a queue that was emptied too late.
func emptiedLate(q *question) bool {
	return at(model.LayerReceiverBuffer)(q) || backlogged(q) || ringMissed(q) || ringFull(q)
}

// queued reports whether the line is of a queue that was full, not of a rule.
func queued(q *question) bool {
	return at(model.LayerSenderQdisc)(q) && q.line.Cause != "TC_EGRESS" ||
		at(model.LayerNetwork)(q) && strings.HasPrefix(q.line.Cause, "QDISC_")
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

// because begins the reason of every piece of advice: the counter that moved.
func (q *question) because() string {
	for _, e := range q.line.Evidence {
		if e.Delta > e.Excess && e.Role != "contradicts" {
			return fmt.Sprintf("%s +%s", e.Counter, unit.FormatCount(e.Delta-e.Excess))
		}
	}
	return unit.FormatCount(q.line.Packets) + " packets"
}

func (q *question) stall() string { return unit.FormatNanos(q.StallS * 1e9) }

// rate is the rate of each of so many equal parts of the flow.
func (q *question) rate(parts uint64) string { return unit.FormatPPS(q.RatePPS / float64(parts)) }

// atLeast raises a setting to a value, unless it is enough already.
func (q *question) atLeast(knob string, enough, value uint64, formula, note, instead string) []model.Advice {
	present, ok := q.number(knob)
	switch {
	case !ok:
		return nil
	case present >= enough:
		return []model.Advice{{Knob: knob, Present: text(present), Why: "it already holds " + formula, Note: instead}}
	}
	return []model.Advice{{Knob: knob, Present: text(present), Value: text(value), Why: formula, Note: note}}
}

const moreCores = "the processor is: give the receiver a core of its own away from the one that takes the " +
	"interrupts, or spread the flow over more --streams"

// receiveBuffer: rcvbuf >= pps x stall x truesize for each socket. The kernel
// accounts twice what SO_RCVBUF asks, and net.core.rmem_max bounds what is asked.
func receiveBuffer(q *question) []model.Advice {
	need, granted := q.buffer(), uint64(q.BufferBytes)
	present, known := q.number("net.core.rmem_max")
	if need == 0 || granted < need && !known {
		return nil
	}
	size, source := q.truesize()
	formula := fmt.Sprintf("%s a socket x %s x %d B (%s) = %s B",
		q.rate(uint64(q.Streams)), q.stall(), size, source, unit.FormatCount(need))
	delays := "a fuller buffer delays packets by up to " + q.stall()
	ask := (need + 1) / 2 // the kernel grants twice what a program asks
	switch {
	case granted >= need:
		held := unit.FormatNanos(float64(granted) / float64(need) * q.StallS * 1e9)
		why := "it already holds " + held + " of this rate"
		return []model.Advice{{Knob: bufferKnob, Present: text(granted), Why: why, Note: moreCores}}
	case present >= ask && granted > 0:
		return []model.Advice{{Knob: bufferKnob, Present: text(granted), Value: text(need), Why: formula,
			Note: "net.core.rmem_max allows it; another program asks with SO_RCVBUF for half, which the kernel " +
				"doubles; " + delays}}
	}
	return q.atLeast("net.core.rmem_max", ask, roundUp(ask, 64<<10), formula+", half of which a program asks for",
		"lets every program of this host ask for as much; "+delays, moreCores)
}

// udpMemory: udp_mem[0] is the limit that acts, for UDP has no pressure state
// (kernel commit 69dfccbc1186); it must hold all buffers and a quarter more.
func udpMemory(q *question) []model.Advice {
	const knob = "net.ipv4.udp_mem"
	var limits []uint64
	for _, f := range strings.Fields(q.knob(knob)) {
		n, ok := parse(f)
		if !ok {
			return nil
		}
		limits = append(limits, n)
	}
	page, ok := q.number("page_size_bytes")
	if !ok || page < 1024 || len(limits) != 3 {
		return nil // a page has 4 KiB, 16 KiB or 64 KiB
	}
	each, from := q.buffer(), "the buffer that this rate needs"
	if q.BufferBytes > 0 {
		each, from = uint64(q.BufferBytes), "the granted buffer"
	}
	if each == 0 {
		return nil
	}
	need := ceil(1.25 * float64(each) * float64(q.Streams) / float64(page))
	formula := fmt.Sprintf("1.25 x %d sockets x %s B (%s) / %d B = %s pages",
		q.Streams, unit.FormatCount(each), from, page, unit.FormatCount(need))
	present := fmt.Sprintf("%d %d %d", limits[0], limits[1], limits[2])
	if limits[0] >= need {
		return []model.Advice{{Knob: knob, Present: present,
			Why:  "its first figure, the one that acts, already holds " + formula,
			Note: "look for a memory limit of the receiver's control group, or other programs' sockets"}}
	}
	value := fmt.Sprintf("%d %d %d", need, max(limits[1], need), max(limits[2], need))
	return []model.Advice{{Knob: knob, Present: present, Value: value,
		Why:  formula + "; the first figure is the one that acts",
		Note: "holds for all sockets of the kernel; set in the first namespace"}}
}

// backlog: packets that come while its core does something else.
func backlog(q *question) []model.Advice {
	burst, formula := q.burst(1)
	if q.RatePPS == 0 {
		return nil
	}
	value := roundUp(burst, 1000)
	return q.atLeast("net.core.netdev_max_backlog", value, value, formula,
		"holds for all namespaces and cores of the host; set in the first namespace. A fuller backlog delays packets",
		"the core that empties it is: fewer rules on the way, or more receive queues (RSS, rps_cpus) and --streams "+
			"to fill them")
}

// burst is how many packets of one of so many equal parts of the flow come in a stall.
func (q *question) burst(parts uint64) (packets uint64, formula string) {
	packets = ceil(q.RatePPS / float64(parts) * q.StallS)
	each := ""
	if parts > 1 {
		each = " a socket"
	}
	return packets, fmt.Sprintf("%s%s x %s = %s packets", q.rate(parts), each, q.stall(), unit.FormatCount(packets))
}

// ring: the next power of two above the packets of one queue that come between
// an interrupt and the poll.
func ring(q *question) []model.Advice {
	const pollS = 0.001
	dev := q.device()
	knob := dev + ".rx_ring"
	present, ok := q.number(knob)
	most, bounded := q.number(knob + "_max")
	if dev == "" || q.RatePPS == 0 || !ok || !bounded || present == 0 {
		return nil
	}
	queues := uint64(1)
	for _, name := range []string{".channels_rx", ".channels_combined"} {
		if n, ok := q.number(dev + name); ok && n > 0 {
			queues = n
		}
	}
	queues = min(queues, uint64(q.Streams)) // one 5-tuple goes to one queue
	need := ceil(q.RatePPS / float64(queues) * pollS)
	formula := fmt.Sprintf("%s a queue x 1 ms = %s packets", q.rate(queues), unit.FormatCount(need))
	instead := "the core that empties it is: more receive queues (ethtool -L), and --streams to fill them"
	if present >= most && need > present {
		why := "it is as large as the card allows (" + formula + " wanted)"
		return []model.Advice{{Knob: knob, Present: text(present), Why: why, Note: instead}}
	}
	value := min(powerOfTwo(need), most)
	return q.atLeast(knob, value, value, formula,
		"the link goes down for a moment; a larger ring costs cache and delay", instead)
}

// channels: more receive queues where the streams could fill them. One 5-tuple goes to one
// queue, so one stream gains nothing (Documentation/networking/scaling.rst).
func channels(q *question) []model.Advice {
	dev := q.device()
	for _, kind := range []string{"combined", "rx"} {
		knob := dev + ".channels_" + kind
		present, ok := q.number(knob)
		most, bounded := q.number(knob + "_max")
		if dev == "" || !ok || !bounded || present == 0 {
			continue
		}
		value := min(uint64(q.Streams), most)
		if value <= present {
			return nil
		}
		return []model.Advice{{Knob: knob, Present: text(present), Value: text(value),
			Why: fmt.Sprintf("%d streams share %d queues, and the card has up to %d", q.Streams, present, most),
			Note: "the link goes down for a moment; helps if there are cores to empty them, " +
				"and if the card tells the streams apart (ethtool -N DEV rx-flow-hash udp4 sdfn)"}}
	}
	return nil
}

// governor: cores that clock down when idle take their time when a burst comes.
func governor(q *question) []model.Advice {
	present := q.knob("cpu.governor")
	if !slices.Contains([]string{"powersave", "ondemand", "conservative", "schedutil"}, present) {
		return nil
	}
	return []model.Advice{{Knob: "cpu.governor", Present: present, Value: "performance", Note: "costs power and heat",
		Why: "what empties this queue ran too late or too slowly, and the cores clock down when they are idle"}}
}

// budget: only where the softirq ran out of turns while the ring ran over.
func budget(q *question) []model.Advice {
	const knob = "net.core.netdev_budget"
	present, _ := q.number(knob)
	if present == 0 {
		return nil
	}
	return q.atLeast(knob, 2*present, 2*present, "softnet.time_squeeze rose with it: twice the turns of one softirq",
		"holds for the whole host; takes time from programs on the same core", "")
}

// threaded: a virtual device's ring overran because a thread empties it.
func threaded(q *question) []model.Advice {
	dev := q.device()
	if dev == "" || q.knob(dev+".threaded") != "1" {
		return nil
	}
	return []model.Advice{{Knob: dev + ".threaded", Present: "1", Value: "0",
		Why: "the thread that empties this ring did not keep up; in a softirq it needs no turn of the scheduler"}}
}

// queueLength: a burst of the stall's length fits in. It helps against bursts
// only: a link slower than the flow fills any queue.
func queueLength(q *question) (list []model.Advice) {
	dev := q.device()
	length, ok := q.number(dev + ".txqueuelen")
	kind := q.knob(dev + ".qdisc") // which queue it is decides what bounds it
	if dev == "" || !ok || q.RatePPS == 0 || kind == "" {
		return nil
	}
	if strings.HasSuffix(q.line.Cause, "FLOW_LIMIT") && kind != "fq" {
		return nil // an fq below mq, whose limits are not known
	}
	raise := func(knob string, sockets uint64) {
		need, formula := q.burst(sockets)
		if present, known := q.number(dev + knob); known && present < need {
			list = append(list, model.Advice{
				Knob: dev + knob, Present: text(present), Value: text(need), Why: formula,
				Note: "a longer queue delays, and helps against bursts only: if the link is slower than the flow, " +
					"ask for less --rate",
			})
		}
	}
	switch {
	case kind == "fq": // it bounds what one socket may have in it, and all together (net/sched/sch_fq.c, fq_enqueue)
		raise(".qdisc_flow_limit_packets", uint64(q.Streams))
		raise(".qdisc_limit_packets", 1)
	case kind == "pfifo":
		raise(".qdisc_limit_packets", 1)
	case kind == "pfifo_fast" || kind == "mq" && q.knob("net.core.default_qdisc") == "pfifo_fast":
		raise(".txqueuelen", 1) // it takes the length over, as mq's children do where they are of that kind
	}
	if len(list) == 0 {
		list = []model.Advice{{Knob: dev + ".txqueuelen", Present: text(length),
			Why:  "the link or its shaper takes fewer packets than the flow offers",
			Note: "ask for less --rate, or count this loss as the sender's, not the path's"}}
	}
	return list
}

// sendBuffer: it must hold what waits in the queue twice over, or the program
// hears EAGAIN before the queue is full.
func sendBuffer(q *question) []model.Advice {
	dev := q.device()
	packets, known := q.number(dev + ".qdisc_limit_packets")
	if !known {
		packets, known = q.number(dev + ".txqueuelen")
	}
	if !known || dev == "" {
		return nil
	}
	size, source := q.truesize()
	need := ceil(2 * float64(packets) * float64(size))
	ask := (need + 1) / 2 // the kernel grants twice what a program asks
	formula := fmt.Sprintf("2 x %s packets of queue x %d B (%s) = %s B, half of which a program asks for",
		unit.FormatCount(packets), size, source, unit.FormatCount(need))
	return q.atLeast("net.core.wmem_max", ask, roundUp(ask, 64<<10), formula,
		"lets every program of this host ask for as much", "the way out is slower than the flow: ask for less --rate")
}

// neighbour: the packets that wait for one answer of a neighbour.
func neighbour(q *question) []model.Advice {
	dev := q.device()
	if dev == "" || q.RatePPS == 0 {
		return nil
	}
	family := "ipv4"
	if q.moved("ndisc_cache.") {
		family = "ipv6"
	}
	size, source := q.truesize()
	need := roundUp(ceil(q.RatePPS*q.StallS*float64(size)), 4096)
	return q.atLeast("net."+family+".neigh."+strings.ReplaceAll(dev, ".", "/")+".unres_qlen_bytes", need, need,
		fmt.Sprintf("%s x %s x %d B (%s)", q.rate(1), q.stall(), size, source),
		"helps only if the neighbour answers in that time", "no neighbour answers: is the next hop there?")
}

// reversePath: 2 accepts a source that some other interface leads to. The kernel
// takes the greater of the interface's and all's.
func reversePath(q *question) []model.Advice {
	dev := q.device()
	knob := "net.ipv4.conf." + strings.ReplaceAll(dev, ".", "/") + ".rp_filter"
	present, ok := q.number(knob)
	all, _ := q.number("net.ipv4.conf.all.rp_filter")
	if dev == "" || !ok {
		return nil
	}
	if loose := max(present, all); loose >= 2 {
		return []model.Advice{{Knob: knob, Present: text(loose), Why: "it is loose already",
			Note: "this host has no route to the sender's address at all"}}
	}
	return q.atLeast(knob, 2, 2,
		"the way back to the sender leads through another interface; 2 accepts any that leads there",
		"accepts more forged source addresses", "")
}

// conntrack: packets of new connections are dropped when its table is full.
func conntrack(q *question) []model.Advice {
	const knob = "net.netfilter.nf_conntrack_max"
	present, _ := q.number(knob)
	used, known := q.number("net.netfilter.nf_conntrack_count")
	if !known || present == 0 || float64(used) < 0.9*float64(present) || present > math.MaxInt32 {
		return nil
	}
	return q.atLeast(knob, 2*present, 2*present,
		fmt.Sprintf("%s of %s connections tracked: twice as many", unit.FormatCount(used), unit.FormatCount(present)),
		"costs kernel memory for each; or do not track the test's port (nft notrack in a raw prerouting chain)", "")
}
