package counters

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
)

type qdisc struct {
	link           int
	handle, parent uint32
	kind           string
	queued         uint32 // packets in it
	drops          uint32
	early          uint32 // of the drops, those that ask the sender to slow down: there was room
	late           uint32 // of the drops, those that were to be sent too late, fq's
	requeues       uint32
	overlimits     uint32
	limitPackets   uint32 // 0 unknown
	limitBytes     uint32 // likewise
	limitFlow      uint32 // packets of one socket, fq's
	rate           uint64 // bytes per second that it shapes to; 0: none, or not said
	burst          uint64 // bytes of its bucket; 0: none, or not said
	loses          bool   // netem, set to lose packets
}

// Handles of include/uapi/linux/pkt_sched.h.
const (
	rootHandle    = 0xffffffff
	ingressHandle = 0xfffffff1 // also clsact
)

// Queues are the queueing disciplines at the outputs of a namespace's interfaces, as the last of three snapshots shows
// them; what was queued is the larger of the last two readings. Of those inside of another one only what dropped
// packets is told.
func Queues(start, measure, end Snapshot) (list []model.Queue) {
	for _, q := range end.queues {
		list = append(list, end.describe(q, start, measure))
	}
	for _, q := range end.inner {
		if told := end.describe(q, start, measure); told.Dropped > 0 {
			told.Inside = true
			list = append(list, told)
		}
	}
	return list
}

// describe tells of a queue of the snapshot s, and what it did since earlier ones.
func (s Snapshot) describe(q qdisc, start, measure Snapshot) model.Queue {
	l := s.links[q.link]
	if q.kind == "pfifo_fast" { // it has no limit of its own: net/sched/sch_generic.c, pfifo_fast_init
		q.limitPackets = l.txQueue
	}
	told := model.Queue{
		Interface: l.name, Kind: q.kind, Handle: q.number(), RateBPS: 8 * float64(q.rate),
		QueuedPackets: uint64(q.queued), LimitPackets: uint64(q.limitPackets), LimitBytes: uint64(q.limitBytes),
		BurstBytes: q.burst,
	}
	if before, known := measure.same(q); known {
		told.QueuedPackets = max(told.QueuedPackets, uint64(before.queued))
	}
	before, _ := start.same(q)
	told.Dropped, told.EarlyDropped = since(before.drops, q.drops), since(before.early, q.early)
	told.EarlyDropped = min(told.EarlyDropped, told.Dropped)
	return told
}

// same is what the snapshot shows of a queue.
func (s Snapshot) same(q qdisc) (other qdisc, known bool) {
	for _, list := range [][]qdisc{s.queues, s.inner} {
		i := slices.IndexFunc(list, func(o qdisc) bool {
			return o.link == q.link && o.handle == q.handle && o.parent == q.parent && o.kind == q.kind
		})
		if i >= 0 {
			return list[i], true
		}
	}
	return other, false
}

// since is by how much a counter of 32 bits went on; 0 if it went back.
func since(before, now uint32) uint64 {
	if n := now - before; n <= math.MaxInt32 {
		return uint64(n)
	}
	return 0
}

// name is the qdisc as tc writes it: kind and handle.
func (q qdisc) name() string { return q.kind + "." + q.number() }

// number is its handle as tc writes it.
func (q qdisc) number() string { return fmt.Sprintf("%x:", q.handle>>16) }

// top reports whether nothing stands above the qdisc.
func (q qdisc) top() bool { return q.parent == rootHandle || q.parent == ingressHandle }

// addQdiscs adds the statistics of what stands directly at a device, and keeps what stands inside of that.
func (s *Snapshot) addQdiscs(all []qdisc) {
	for _, q := range tops(all) {
		s.addQdisc(q)
	}
	for _, q := range all {
		if _, known := s.links[q.link]; known && !q.top() {
			s.inner = append(s.inner, q)
		}
	}
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
			sum.early, sum.late = sum.early+q.early, sum.late+q.late
			sums[o] = sum
		}
	}
	for _, q := range all {
		if q.top() {
			sum := sums[owner{q.link, q.handle >> 16}]
			q.drops, q.requeues = max(q.drops, sum.drops), max(q.requeues, sum.requeues)
			q.overlimits, q.queued = max(q.overlimits, sum.overlimits), max(q.queued, sum.queued)
			q.early, q.late = max(q.early, sum.early), max(q.late, sum.late)
			kept = append(kept, q)
		}
	}
	return kept
}

// full says how many of its drops an AQM made for want of room: all others are early.
func (q *qdisc) full(packets uint32) { q.early = q.drops - min(packets, q.drops) }

// memory says how much cake held at most, and may hold, in bytes. What it dropped while it had room is early.
func (q *qdisc) memory(used, limit uint64) {
	q.limitBytes = uint32(min(limit, math.MaxUint32))
	if used < limit {
		q.early = q.drops
	}
}

// parseQueues adds the queues that tc tells of in lines of the form
//
//	qdisc tbf 1: dev eth0 root refcnt 2 rate 50Kbit burst 1500b lat 400ms
//	 Sent 1234 bytes 12 pkt (dropped 3, overlimits 5 requeues 0)
//	 backlog 0b 0p requeues 0
//	qdisc fq_codel 2: dev eth0 parent 1:1 limit 10240p flows 1024 quantum 1514 target 5ms ...
//	 Sent 1234 bytes 12 pkt (dropped 3, overlimits 5 requeues 0)
//	 backlog 0b 0p requeues 0
//	  maxpacket 1514 drop_overlimit 0 new_flow_count 9 ecn_mark 0
func (s *Snapshot) parseQueues(text string) {
	indices := map[string]int{}
	for i, l := range s.links {
		indices[l.name] = i
	}
	var all []qdisc
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 5 && words[0] == "qdisc" && words[3] == "dev" {
			handle, err := strconv.ParseUint(strings.TrimSuffix(words[2], ":"), 16, 16)
			q := qdisc{link: indices[words[4]], kind: component(words[1]), handle: uint32(handle) << 16}
			switch {
			case err != nil:
				q.link = 0
			case words[5] == "root":
				q.parent = rootHandle
			case words[5] == "parent" && len(words) > 6:
				q.parent = parentHandle(words[6])
			}
			q.parseOptions(words[5:])
			all = append(all, q)
		} else if len(all) > 0 {
			all[len(all)-1].parseStatistics(line, words)
		}
	}
	s.addQdiscs(slices.DeleteFunc(all, func(q qdisc) bool { return q.link == 0 || q.parent == 0 }))
}

// parentHandle reads a class as tc writes it; 0 if it is none.
func parentHandle(text string) uint32 {
	major, minor, whole := strings.Cut(text, ":")
	high, err := strconv.ParseUint(cmp.Or(major, "0"), 16, 16)
	low, err2 := strconv.ParseUint(cmp.Or(minor, "0"), 16, 16)
	if !whole || err != nil || err2 != nil {
		return 0
	}
	return uint32(high<<16 | low)
}

// parseOptions reads what of decodeOptions tc prints. tbf's limit it prints as the time that a full queue takes beyond
// the bucket.
func (q *qdisc) parseOptions(words []string) {
	value := func(name string) string {
		if i := slices.Index(words, name); i >= 0 && i+1 < len(words) {
			return words[i+1]
		}
		return ""
	}
	q.loses = q.kind == "netem" && slices.Contains(words, "loss")
	if rate, known := tcNumber(cmp.Or(value("rate"), value("bandwidth")), "bit", 1000); known {
		q.rate = uint64(rate / 8)
	}
	if packets, known := tcNumber(value("limit"), "p", 1000); known {
		q.limitPackets = uint32(min(packets, math.MaxUint32))
	} else if bytes, known := tcNumber(value("limit"), "b", 1024); known {
		q.limitBytes = uint32(min(bytes, math.MaxUint32))
	}
	if burst, known := tcNumber(value("burst"), "b", 1024); known && q.kind == "tbf" {
		q.burst = uint64(burst)
		if late, known := tcNumber(value("lat"), "s", 1000); known {
			q.limitBytes = uint32(min(burst+late*float64(q.rate), math.MaxUint32))
		}
	}
}

// parseStatistics reads a line below that of a queue.
func (q *qdisc) parseStatistics(line string, words []string) {
	value := func(name string) (n uint32, known bool) {
		i := slices.Index(words, name)
		if i < 0 || i+1 >= len(words) {
			return 0, false
		}
		wide, err := strconv.ParseUint(words[i+1], 10, 32)
		return uint32(wide), err == nil
	}
	var bytes, packets uint64
	var backlog string
	switch {
	case len(words) == 0:
	case words[0] == "Sent":
		const form = "Sent %d bytes %d pkt (dropped %d, overlimits %d requeues %d)"
		line = strings.TrimSpace(line)
		_, _ = fmt.Sscanf(line, form, &bytes, &packets, &q.drops, &q.overlimits, &q.requeues) // as far as it is so
	case words[0] == "backlog":
		_, _ = fmt.Sscanf(strings.TrimSpace(line), "backlog %s %dp", &backlog, &q.queued)
	case len(words) > 4 && words[0] == "memory" && q.kind == "cake": // memory used: 20Kb of 32Mb
		used, known := tcNumber(words[2], "b", 1024)
		limit, limited := tcNumber(words[4], "b", 1024)
		if known && limited {
			q.memory(uint64(used), uint64(limit))
		}
	}
	if n, known := value("drop_overlimit"); known { // codel, fq_codel
		q.full(n)
	}
	if n, known := value("early"); known && q.kind == "red" {
		q.early = min(n, q.drops)
	}
	if n, known := value("horizon_drops"); known { // fq
		q.late = n
	}
}

// tcNumber reads a number as tc prints it, of a thousand or 1024 to a kilo: 16Kb, 20Mbit, 12.5ms.
func tcNumber(text, unit string, kilo float64) (n float64, known bool) {
	text, known = strings.CutSuffix(text, unit)
	if !known || text == "" {
		return 0, false
	}
	scale := 1.0
	switch text[len(text)-1] {
	case 'K':
		scale = kilo
	case 'M':
		scale = kilo * kilo
	case 'G':
		scale = kilo * kilo * kilo
	case 'm':
		scale = 1e-3
	case 'u':
		scale = 1e-6
	case 'n':
		scale = 1e-9
	}
	if scale != 1 {
		text = text[:len(text)-1]
	}
	n, err := strconv.ParseFloat(text, 64)
	return n * scale, err == nil && n >= 0 && n*scale < 1e18
}
