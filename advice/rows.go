package advice

import (
	"fmt"
	"math"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// row is one line of the table: when it applies, and what it advises.
type row struct {
	id      string
	applies func(*question) bool
	advise  func(*question) []model.Advice
}

// rows is the table, in the order of the printed advice. Kernel text behind it:
// Documentation/admin-guide/sysctl/net.rst, networking/scaling.rst and napi.rst.
var rows = [...]row{
	{"receive-buffer", func(q *question) bool { return q.line.Layer == model.LayerReceiverBuffer }, receiveBuffer},
	{"udp-memory", func(q *question) bool { return q.line.Layer == model.LayerReceiverMemory }, udpMemory},
	{"backlog", func(q *question) bool { return q.cause(model.LayerReceiverBacklog, "CPU_BACKLOG") }, backlog},
	{"rx-ring", func(q *question) bool { return q.cause(model.LayerReceiverRing, model.CauseRingMissed) }, ring},
	{"rx-channels", func(q *question) bool { return q.cause(model.LayerReceiverRing, model.CauseRingMissed) }, channels},
	{"netdev-budget", func(q *question) bool {
		return q.cause(model.LayerReceiverRing, model.CauseRingMissed) && q.moved("time_squeeze")
	}, budget},
	{"threaded-napi", func(q *question) bool { return q.cause(model.LayerReceiverRing, model.CauseRingFull) }, threaded},
	{"queue-length", func(q *question) bool { return q.queued() }, queueLength},
	{"send-buffer", func(q *question) bool { return q.line.Layer == model.LayerSendCall && q.line.Cause == "EAGAIN" }, sendBuffer},
	{"neighbour-queue", func(q *question) bool { return strings.HasPrefix(q.line.Cause, "NEIGH_QUEUEFULL") }, neighbour},
	{"reverse-path", func(q *question) bool { return q.line.Cause == "IP_RPFILTER" }, reversePath},
	{"conntrack-table", func(q *question) bool { return q.line.Cause == "NETFILTER_DROP" && q.moved("conntrack.") }, conntrack},
	{"governor", func(q *question) bool { return q.tooLate() }, governor},
}

// queued tells whether the line is of a queue that was full, not of a rule.
func (q *question) queued() bool {
	return q.line.Layer == model.LayerSenderQdisc && q.line.Cause != "TC_EGRESS" ||
		q.line.Layer == model.LayerNetwork && strings.HasPrefix(q.line.Cause, "QDISC_")
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

// sysctl advises one setting of sysctl(8).
func (q *question) sysctl(name, present, value, why, note string) []model.Advice {
	return []model.Advice{{Knob: name, Present: present, Value: value, Why: q.because() + ": " + why, Note: note,
		Command: "sysctl -w " + setting(name, value), Undo: "sysctl -w " + setting(name, present)}}
}

func setting(name, value string) string {
	if strings.Contains(value, " ") {
		return name + "='" + value + "'"
	}
	return name + "=" + value
}

// notTheLimit says that a setting is large enough, and what to do instead.
func (q *question) notTheLimit(knob, present, why, instead string) []model.Advice {
	return []model.Advice{{Knob: knob, Present: present, Value: present, Why: q.because() + ", but this is not the limit: " + why, Note: instead}}
}

const moreCores = "the processor is: give the receiver a core of its own away from the one that takes the interrupts, or spread the flow over more --streams"

// receiveBuffer: rcvbuf >= pps x stall x truesize for each socket. The kernel
// accounts twice what SO_RCVBUF asks, and net.core.rmem_max bounds what is asked.
func receiveBuffer(q *question) []model.Advice {
	need := q.buffer()
	if need == 0 {
		return nil
	}
	size, source := q.truesize()
	formula := fmt.Sprintf("%s a socket x %s x %d B (%s) = %s B", unit.FormatPPS(q.RatePPS/float64(q.Streams)), q.stall(), size, source, unit.FormatCount(need))
	if q.BufferBytes > 0 && uint64(q.BufferBytes) >= need {
		return q.notTheLimit("socket.receive_buffer", text(uint64(q.BufferBytes)), "it already holds "+
			unit.FormatNanos(float64(q.BufferBytes)/float64(need)*q.StallS*1e9)+" of this rate", moreCores)
	}
	value := roundUp((need+1)/2, 64<<10)
	present, known := q.number("net.core.rmem_max")
	switch {
	case !known:
		return nil
	case present >= (need+1)/2: // the kernel grants twice what a program asks
		if q.BufferBytes == 0 {
			return q.notTheLimit("net.core.rmem_max", text(present), "it allows the "+formula, moreCores)
		}
		return []model.Advice{{Knob: "socket.receive_buffer", Present: text(uint64(q.BufferBytes)), Value: text(need),
			Why:     q.because() + ": " + formula,
			Command: "pelt curve HOST --receive-buffer " + text(need), Undo: "pelt curve HOST --receive-buffer " + text(uint64(q.BufferBytes)),
			Note: "net.core.rmem_max allows it; another program asks with SO_RCVBUF for half, which the kernel doubles. A fuller buffer delays packets by up to " + q.stall()}}
	}
	return q.sysctl("net.core.rmem_max", text(present), text(value), formula+", half of which a program asks for",
		"lets every program of this host ask for as much; a fuller buffer delays packets by up to "+q.stall())
}

// udpMemory: udp_mem[0] is the limit that acts, for UDP has no pressure state
// (kernel commit 69dfccbc1186); it must hold all buffers and a quarter more.
func udpMemory(q *question) []model.Advice {
	var limits [3]uint64
	fields := strings.Fields(q.knob("net.ipv4.udp_mem"))
	if len(fields) != len(limits) {
		return nil
	}
	for i, f := range fields {
		n, ok := parse(f)
		if !ok {
			return nil
		}
		limits[i] = n
	}
	page, ok := q.number("page_size_bytes")
	if !ok || page < 1024 {
		return nil // 4 KiB, 16 KiB or 64 KiB
	}
	each, from := q.buffer(), "the buffer that this rate needs"
	if q.BufferBytes > 0 {
		each, from = uint64(q.BufferBytes), "the granted buffer"
	}
	if each == 0 {
		return nil
	}
	need := ceil(1.25 * float64(each) * float64(q.Streams) / float64(page))
	formula := fmt.Sprintf("1.25 x %d sockets x %s B (%s) / %d B = %s pages", q.Streams, unit.FormatCount(each), from, page, unit.FormatCount(need))
	present := fmt.Sprintf("%d %d %d", limits[0], limits[1], limits[2])
	if limits[0] >= need {
		return q.notTheLimit("net.ipv4.udp_mem", present, "its first figure, the one that acts, already holds "+formula,
			"look for a memory limit of the receiver's control group, or other programs' sockets")
	}
	value := fmt.Sprintf("%d %d %d", need, max(limits[1], need), max(limits[2], need))
	return q.sysctl("net.ipv4.udp_mem", present, value, formula+"; the first figure is the one that acts", "holds for all sockets of the kernel; set in the first namespace")
}

// backlog: packets that come while its core does something else.
func backlog(q *question) []model.Advice {
	present, ok := q.number("net.core.netdev_max_backlog")
	if !ok || q.RatePPS == 0 {
		return nil
	}
	value := roundUp(ceil(q.RatePPS*q.StallS), 1000)
	formula := fmt.Sprintf("%s x %s = %s packets", unit.FormatPPS(q.RatePPS), q.stall(), unit.FormatCount(ceil(q.RatePPS*q.StallS)))
	if present >= value {
		return q.notTheLimit("net.core.netdev_max_backlog", text(present), "it already holds "+formula,
			"the core that empties it is: fewer rules on the way, or more receive queues (RSS, rps_cpus) and --streams to fill them")
	}
	return q.sysctl("net.core.netdev_max_backlog", text(present), text(value), formula, "holds for all namespaces and cores of the host; set in the first namespace. A fuller backlog delays packets")
}

// ring: the next power of two above the packets of one queue that come between
// an interrupt and the poll.
func ring(q *question) []model.Advice {
	const pollS = 0.001
	dev := q.device()
	if dev == "" || q.RatePPS == 0 {
		return nil
	}
	present, ok := q.number(dev + ".rx_ring")
	most, bounded := q.number(dev + ".rx_ring_max")
	if !ok || !bounded || present == 0 {
		return nil
	}
	queues := uint64(1)
	for _, name := range []string{".channels_combined", ".channels_rx"} {
		if n, ok := q.number(dev + name); ok && n > 0 {
			queues = n
			break
		}
	}
	queues = min(queues, uint64(q.Streams)) // one 5-tuple goes to one queue
	need := ceil(q.RatePPS / float64(queues) * pollS)
	formula := fmt.Sprintf("%s a queue x 1 ms = %s packets", unit.FormatPPS(q.RatePPS/float64(queues)), unit.FormatCount(need))
	value := min(powerOfTwo(need), most)
	if value <= present {
		why := "it already holds " + formula
		if present >= most && need > present {
			why = "it is as large as the card allows (" + formula + " wanted)"
		}
		return q.notTheLimit(dev+".rx_ring", text(present), why, "the core that empties it is: more receive queues (ethtool -L), and --streams to fill them")
	}
	return []model.Advice{{Knob: dev + ".rx_ring", Present: text(present), Value: text(value), Why: q.because() + ": " + formula,
		Command: fmt.Sprintf("ethtool -G %s rx %d", dev, value), Undo: fmt.Sprintf("ethtool -G %s rx %d", dev, present),
		Note: "the link goes down for a moment; a larger ring costs cache and delay"}}
}

// budget: only where the softirq ran out of turns while the ring ran over.
func budget(q *question) []model.Advice {
	present, ok := q.number("net.core.netdev_budget")
	if !ok || present == 0 {
		return nil
	}
	return q.sysctl("net.core.netdev_budget", text(present), text(2*present), "softnet.time_squeeze rose with it: twice the turns of one softirq", "holds for the whole host; takes time from programs on the same core")
}

// threaded: a virtual device's ring overran because a thread empties it.
func threaded(q *question) []model.Advice {
	dev := q.device()
	if dev == "" || q.knob(dev+".threaded") != "1" {
		return nil
	}
	file := "/sys/class/net/" + dev + "/threaded"
	return []model.Advice{{Knob: dev + ".threaded", Present: "1", Value: "0", Why: q.because() + ": the thread that empties this ring did not keep up; in a softirq it needs no turn of the scheduler",
		Command: "echo 0 > " + file, Undo: "echo 1 > " + file}}
}

// queueLength: a burst of the stall's length fits in. It helps against bursts
// only: a link slower than the flow fills any queue.
func queueLength(q *question) []model.Advice {
	dev := q.device()
	present, ok := q.number(dev + ".txqueuelen")
	if dev == "" || !ok || q.RatePPS == 0 {
		return nil
	}
	kind := q.knob(dev + ".qdisc")
	if kind == "" {
		return nil // which queue it is decides what bounds it
	}
	need := ceil(q.RatePPS * q.StallS)
	formula := fmt.Sprintf("%s x %s = %s packets", unit.FormatPPS(q.RatePPS), q.stall(), unit.FormatCount(need))
	note := "a longer queue delays, and helps against bursts only: if the link is slower than the flow, ask for less --rate"
	if strings.HasSuffix(q.line.Cause, "FLOW_LIMIT") && kind != "fq" {
		return nil // an fq below mq, whose limits are not known
	}
	switch {
	case kind == "fq":
		if list := q.fairQueue(dev, need, note); list != nil {
			return list
		}
	case kind == "pfifo":
		if limit, known := q.number(dev + ".qdisc_limit_packets"); known && limit < need {
			return []model.Advice{q.queueLimit(dev, ".qdisc_limit_packets", "pfifo limit", limit, need, formula, note)}
		}
	case (kind == "pfifo_fast" || kind == "mq" && q.knob("net.core.default_qdisc") == "pfifo_fast") && present < need:
		// It takes the length over, as mq's children do where they are of that kind.
		return []model.Advice{{Knob: dev + ".txqueuelen", Present: text(present), Value: text(need), Why: q.because() + ": " + formula, Note: note,
			Command: fmt.Sprintf("ip link set dev %s txqueuelen %d", dev, need), Undo: fmt.Sprintf("ip link set dev %s txqueuelen %d", dev, present)}}
	}
	return q.notTheLimit(dev+".txqueuelen", text(present), "the link or its shaper takes fewer packets than the flow offers", "ask for less --rate, or count this loss as the sender's, not the path's")
}

// queueLimit advises a limit that the root qdisc has of its own; option is its kind and the limit's name.
func (q *question) queueLimit(dev, knob, option string, present, value uint64, formula, note string) model.Advice {
	return model.Advice{Knob: dev + knob, Present: text(present), Value: text(value), Why: q.because() + ": " + formula, Note: note,
		Command: fmt.Sprintf("tc qdisc change dev %s root %s %d", dev, option, value), Undo: fmt.Sprintf("tc qdisc change dev %s root %s %d", dev, option, present)}
}

// fairQueue: fq bounds what one socket may have in it, and all together
// (net/sched/sch_fq.c, fq_enqueue). The sockets of a flow take equal shares.
func (q *question) fairQueue(dev string, need uint64, note string) (list []model.Advice) {
	limit, limitKnown := q.number(dev + ".qdisc_limit_packets")
	flow, flowKnown := q.number(dev + ".qdisc_flow_limit_packets")
	advise := func(knob, option string, present, value uint64, formula string) {
		list = append(list, q.queueLimit(dev, knob, "fq "+option, present, value, formula, note))
	}
	each := ceil(q.RatePPS / float64(q.Streams) * q.StallS)
	if flowKnown && flow < each {
		advise(".qdisc_flow_limit_packets", "flow_limit", flow, each, fmt.Sprintf("%s a socket x %s = %s packets", unit.FormatPPS(q.RatePPS/float64(q.Streams)), q.stall(), unit.FormatCount(each)))
	}
	if limitKnown && limit < need {
		advise(".qdisc_limit_packets", "limit", limit, need, fmt.Sprintf("%s x %s = %s packets", unit.FormatPPS(q.RatePPS), q.stall(), unit.FormatCount(need)))
	}
	return list
}

// sendBuffer: it must hold what waits in the queue twice over, or the program
// hears EAGAIN before the queue is full.
func sendBuffer(q *question) []model.Advice {
	present, ok := q.number("net.core.wmem_max")
	dev := q.device()
	packets, known := q.number(dev + ".qdisc_limit_packets")
	if !known {
		packets, known = q.number(dev + ".txqueuelen")
	}
	if !ok || !known || dev == "" {
		return nil
	}
	size, source := q.truesize()
	need := ceil(2 * float64(packets) * float64(size))
	value := roundUp((need+1)/2, 64<<10)
	formula := fmt.Sprintf("2 x %s packets of queue x %d B (%s) = %s B", unit.FormatCount(packets), size, source, unit.FormatCount(need))
	if present >= (need+1)/2 {
		return q.notTheLimit("net.core.wmem_max", text(present), "it allows "+formula, "the way out is slower than the flow: ask for less --rate")
	}
	return q.sysctl("net.core.wmem_max", text(present), text(value), formula+", half of which a program asks for", "lets every program of this host ask for as much")
}

// neighbour: the packets that wait for one answer of a neighbour.
func neighbour(q *question) []model.Advice {
	dev := q.device()
	family := "ipv4"
	if q.moved("ndisc_cache.") {
		family = "ipv6"
	}
	name := "net." + family + ".neigh." + strings.ReplaceAll(dev, ".", "/") + ".unres_qlen_bytes"
	present, ok := q.number(name)
	if dev == "" || !ok || q.RatePPS == 0 {
		return nil
	}
	size, source := q.truesize()
	need := roundUp(ceil(q.RatePPS*q.StallS*float64(size)), 4096)
	formula := fmt.Sprintf("%s x %s x %d B (%s)", unit.FormatPPS(q.RatePPS), q.stall(), size, source)
	if present >= need {
		return q.notTheLimit(name, text(present), "it holds "+formula, "no neighbour answers: is the next hop there?")
	}
	return q.sysctl(name, text(present), text(need), formula, "helps only if the neighbour answers in that time")
}

// reversePath: 2 accepts a source that some other interface leads to. The kernel
// takes the greater of the interface's and all's.
func reversePath(q *question) []model.Advice {
	dev := q.device()
	name := "net.ipv4.conf." + strings.ReplaceAll(dev, ".", "/") + ".rp_filter"
	present, ok := q.number(name)
	all, allKnown := q.number("net.ipv4.conf.all.rp_filter")
	if dev == "" || !ok {
		return nil
	}
	if present >= 2 || allKnown && all >= 2 {
		return q.notTheLimit(name, text(max(present, all)), "it is loose already", "this host has no route to the sender's address at all")
	}
	return q.sysctl(name, text(present), "2", "the way back to the sender leads through another interface; 2 accepts any that leads there", "accepts more forged source addresses")
}

// conntrack: packets of new connections are dropped when its table is full.
func conntrack(q *question) []model.Advice {
	present, ok := q.number("net.netfilter.nf_conntrack_max")
	used, known := q.number("net.netfilter.nf_conntrack_count")
	if !ok || !known || present == 0 || float64(used) < 0.9*float64(present) || present > math.MaxInt32 {
		return nil
	}
	return q.sysctl("net.netfilter.nf_conntrack_max", text(present), text(2*present),
		fmt.Sprintf("%s of %s connections tracked: twice as many", unit.FormatCount(used), unit.FormatCount(present)),
		"costs kernel memory for each; or do not track the test's port (nft notrack in a raw prerouting chain)")
}
