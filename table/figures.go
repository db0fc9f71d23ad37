package table

import (
	"maps"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// The definitions of figures that need more than a field of a document.

// goodput is payload that arrived, in bit/s. A transfer with an end has it over the time that the transfer took.
func goodput(f flow) float64 {
	if f.TCP == nil || f.TCP.Completion == nil {
		return when(f.Connections == nil, f.GoodputBPS)
	}
	c, bytes := f.TCP.Completion, f.TCP.ReceivedBytes
	if c.Done {
		bytes = c.Bytes
	}
	if bytes > 0 && c.Seconds > 0 {
		return 8 * float64(bytes) / c.Seconds
	}
	return when(f.GoodputBPS > 0, f.GoodputBPS) // nobody says how much the user's commands carried
}

// completion is how long a transfer took, or how long it had been going on when it
// was cut: the median of a group with cut ones is a lower bound. See unfinished.
func completion(t facts) float64 {
	if t.Completion == nil {
		return none
	}
	return when(t.Completion.Seconds > 0, t.Completion.Seconds)
}

// unfinished is 1 for a transfer whose time was over before all bytes were there.
func unfinished(t facts) float64 {
	switch {
	case t.Completion == nil:
		return none
	case t.Completion.Done:
		return 0
	}
	return 1
}

// loss is the share of attempted packets, or connections, that did not arrive.
func loss(f flow) float64 {
	return when(f.Attempted+uint64(len(f.Told)) > 0 && (f.Protocol == model.UDP || f.Connections != nil), f.LossRatio)
}

// resent is the share of data segments that TCP sent again.
func resent(t facts) float64 {
	return when(t.SegmentsOut > 0, min(1, float64(t.Retransmits)/float64(t.SegmentsOut)))
}

// onWire is what the received packets take on Ethernet, with preamble and gap (20 B a frame), in bit/s.
func onWire(f flow) float64 { return when(f.FrameBytes > 0, ofUDP(f, f.ReceivePPS*8*bytesOn(f, 20))) }

// bytesOn is what a datagram takes on a link that adds so many bytes to each frame. Each
// further fragment repeats all headers but UDP's.
func bytesOn(f flow, each int) float64 {
	const udpHeader = 8
	header := f.FrameBytes - f.PayloadBytes - udpHeader + each
	return float64(f.FrameBytes + each + (max(f.Fragments, 1)-1)*header)
}

// queueing is how much the 95th percentile of the round trip is above the shortest
// one of all valid trials on the same path.
func queueing(r Row) float64 {
	trip := times(func(f flow) *model.Percentiles { return f.RoundTrip }, p95)
	return when(r.shortest > 0, max(0, trip(r)-r.shortest))
}

// increase is by how much the median round trip is above that before the load.
func increase(f flow) float64 {
	if f.Probe == nil || f.RoundTrip == nil || f.RoundTrip.Count == 0 {
		return none
	}
	return when(f.Probe.IdleNS > 0, max(0, f.RoundTrip.P50-f.Probe.IdleNS))
}

// perMinute is 60 s over the mean round trip of the probe.
func perMinute(f flow) float64 {
	if f.Probe == nil || f.RoundTrip == nil {
		return none
	}
	return when(f.RoundTrip.Mean > 0, 60e9/f.RoundTrip.Mean)
}

// heldBack is the share of its busy time that TCP waited for the peer's window or
// for its own buffer, not for the congestion control.
func heldBack(t facts) float64 {
	return when(t.BusyS > 0, min(1, (t.RwndLimitedS+t.SndbufLimitedS)/t.BusyS))
}

// carried is the packets of a flow that arrived a second: datagrams, or TCP's data
// segments, which left where the receiver's kernel does not count them.
func carried(f flow) float64 {
	switch {
	case f.Protocol != model.TCP:
		return f.ReceivePPS
	case f.TCP == nil || f.Connections != nil:
		return none
	case f.TCP.SegmentsIn == 0:
		return float64(f.TCP.SegmentsOut) / f.DurationS
	}
	return float64(f.TCP.SegmentsIn) / f.DurationS
}

func total(r Row, of func(flow) float64) float64 {
	sum, some := 0.0, false
	for i := range r.Trial.Flows {
		if v := of(&r.Trial.Flows[i]); Measured(&r.Trial.Flows[i]) && !math.IsNaN(v) {
			sum, some = sum+v, true
		}
	}
	return when(some, sum)
}

// routerWork is how many cores the router's work took. In a lab the sender and the
// receiver share its machine, so only the router's own threads count there.
func routerWork(r Row) float64 {
	w := r.Trial.Router
	switch {
	case w == nil:
		return none
	case r.Doc.Lab == nil:
		return routerBusy(r) * when(len(w.Cores) > 0, float64(len(w.Cores)))
	}
	for _, s := range r.Trial.Series {
		if s.Metric == "cpu_thread_ratio" && s.At == w.Node && s.Core == nil {
			return mean(s.Values)
		}
	}
	return known(w.ThreadRatio)
}

// leastWork is the least share of a router's processors for figures per time that
// it worked: its clock ticks every 10 ms, and trials take seconds.
const leastWork = 0.01

func enoughWork(r Row) float64 {
	cores := routerWork(r)
	if !(cores > 0) {
		return none
	}
	return when(cores >= leastWork*float64(max(len(r.Trial.Router.Cores), 1)), cores)
}

// goodputPerCore is the payload of all flows for each second of a core that the router worked, in bits.
func goodputPerCore(r Row) float64 { return total(r, goodput) / enoughWork(r) }

// timePerPacket is the time that the router's cores worked for each packet that arrived, in ns.
func timePerPacket(r Row) float64 { return enoughWork(r) / total(r, carried) * 1e9 }

// routerBusy is the share of the router's processors that it worked. In a lab only its own
// threads tell: see routerWork.
func routerBusy(r Row) float64 {
	w := r.Trial.Router
	switch {
	case w == nil:
		return none
	case r.Doc.Lab != nil:
		return when(len(w.Cores) > 0, min(1, routerWork(r)/float64(len(w.Cores))))
	case w.CPU == nil:
		return none
	}
	return w.CPU.Busy()
}

// busiestCore is how busy the router's busiest core was, in a lab its busiest own thread.
func busiestCore(r Row) float64 {
	w := r.Trial.Router
	switch {
	case w == nil:
		return none
	case r.Doc.Lab != nil:
		return known(w.ThreadRatio)
	}
	busy := 0.0
	for _, c := range w.Cores {
		busy = max(busy, c.Busy())
	}
	return when(len(w.Cores) > 0, busy)
}

// forwardedByKernel is the share of the packets that the kernel of a lab's router forwarded
// in its usual way: the others took a faster one.
func forwardedByKernel(r Row) float64 {
	w := r.Trial.Router
	if w == nil || !strings.HasPrefix(r.Doc.Plan.Target, "lab:") || r.Doc.Plan.Target == "lab:switch" {
		return none
	}
	forwarded := counted(r, w.Node, "Ip.ForwDatagrams", "Ip6.OutForwDatagrams")
	received := total(r, func(f flow) float64 { return float64(f.Received) })
	return when(received > 0, min(1, forwarded/received))
}

// counted is what a host's kernel counted in the measured part, by all of some names; NaN if it told of none.
func counted(r Row, host string, names ...string) float64 {
	sum, some := 0.0, false
	for _, c := range r.Trial.Counters {
		if c.Host == host && !c.Reset && slices.Contains(names, c.Name) {
			sum, some = sum+float64(c.Measure), true
		}
	}
	return when(some, sum)
}

// LinkRate is the rate of the slowest link that a row's packets pass, in bit/s; 0 if none is known.
func LinkRate(r Row) float64 { rate, _ := slowestLink(r); return rate }

// slowestLink is the interface of an end, or the emulated link, that lets the least payload of a
// row's flow through: its rate and that payload, in bit/s. Each receiver of many has a link of its
// own, so theirs add up.
func slowestLink(r Row) (rate, room float64) {
	f, room := r.Flow, math.Inf(1)
	add := func(bits float64, each, links int) {
		through := bits * float64(links)
		if f.Protocol == model.UDP && f.FrameBytes > 0 {
			through *= float64(f.PayloadBytes) / bytesOn(f, each)
		}
		if bits > 0 && through < room {
			rate, room = bits, through
		}
	}
	for _, h := range r.Doc.Host {
		if r.Doc.Lab == nil && (h.Node == model.Sender || h.Node == model.Receiver) {
			add(float64(h.LinkSpeedBits), 20, 1)
		}
	}
	links := map[string]model.Link{} // by node; a later entry replaces what it says of an earlier one
	for _, l := range r.Doc.Plan.Links {
		if l.Toward == "" || l.Toward == f.To {
			links[l.Node] = l.Over(links[l.Node])
		}
	}
	for name, v := range r.Trial.Cell {
		if node, setting, ok := model.SplitLinkKnob(name); ok && setting == "rate_bps" {
			l := links[node]
			l.Rate = unit.BitRate(v.Number)
			links[node] = l
		}
	}
	for _, node := range slices.Sorted(maps.Keys(links)) {
		several := 1
		if node == model.Receiver {
			several = max(1, len(f.Receivers))
		}
		if !strings.HasPrefix(node, model.Receiver+"-") { // of one of many
			const checksum = 4 // which emulated links do not count
			add(float64(links[node].Rate), links[node].OverheadBytes-checksum, several)
		}
	}
	return rate, room
}

// ofLink is the share of what the slowest link lets through that arrived: of UDP with its headers
// counted, of TCP without.
func ofLink(r Row) float64 {
	v := part(goodput)(r)
	if math.IsNaN(v) {
		return none
	}
	_, room := slowestLink(r)
	return when(!math.IsInf(room, 1), v/room)
}

func streamGoodputs(t facts) (v []float64) {
	for _, s := range t.PerStream {
		v = append(v, s.GoodputBPS)
	}
	return v
}

// jain is Jain's index of fairness: 1 if all got the same, 1/n if one got all.
func jain(v []float64) float64 {
	var sum, squares float64
	for _, x := range v {
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(v)) * squares)
}

func failedConnections(c *model.ConnectionFacts) (n float64) {
	for _, failed := range c.Failed {
		n += float64(failed)
	}
	return n
}
