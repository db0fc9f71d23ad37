package foreign

import (
	"math"
	"net/netip"
	"slices"

	"pelt/model"
)

// flow adds the figures of one direction to a trial, and its series.
func (t *iperfTest) flow(trial *model.Result, name string, sent, received *iperfSum, of func(iperfInterval) *iperfSum) {
	f := model.FlowResult{Name: name, Protocol: t.protocol(), From: model.Sender, To: model.Receiver, Streams: 1}
	if name == "down" {
		f.From, f.To = f.To, f.From
	}
	if n, ok := count(t.start.Test.Block); ok {
		f.PayloadBytes = int(min(n, math.MaxInt32))
	}
	if n, ok := count(t.start.Test.Streams); ok {
		f.Streams = int(min(n, 1000))
	}
	if f.PayloadBytes > 0 && f.Protocol != "" {
		f.FrameBytes = model.FrameBytes(f.Protocol, t.family(), f.PayloadBytes)
	}
	if f.Protocol == model.TCP {
		f.TCP = &model.TCPFacts{Control: clip(t.end.Control)}
	}
	near := (t.start.Accepted == nil) == (name == "up") // the side that wrote the file is the sender
	if sent == nil && received == nil {                 // before 3.11 UDP has one sum; a cut file has the near side's
		if t.end.Sum != nil && name == "up" && near {
			counted := *t.end.Sum // its bytes are those that were sent, its losses the receiver's
			counted.Bits = nil
			sent, received = t.end.Sum, &counted
		} else if sum := t.soFar(of); sum != nil && near {
			sent = sum
		} else {
			received = sum
		}
	}
	ofSender(&f, sent)
	ofReceiver(&f, received)
	if slices.Contains(f.Told, "loss_ratio") {
		t.order(&f, near)
	}
	if rtt, ok := t.roundTrip(near); ok && f.TCP != nil {
		f.TCP.RTTNanos = rtt
		f.Told = append(f.Told, "tcp_rtt_ns")
	}
	if f.Attempted < f.Received {
		f.Attempted = f.Received // not told, and never below
		f.Told = slices.DeleteFunc(f.Told, func(figure string) bool { return figure == "attempted_packets" })
	}
	trial.Flows = append(trial.Flows, f)
	trial.Series = append(trial.Series, t.series(f, near, of)...)
}

func (t *iperfTest) family() int {
	if len(t.start.Connected) > 0 {
		if a, err := netip.ParseAddr(t.start.Connected[0].RemoteHost); err == nil && a.Is6() && !a.Is4In6() {
			return 6
		}
	}
	return 4
}

// ofSender takes what the sender counted. A side that was not heard has nothing but zeros.
func ofSender(f *model.FlowResult, s *iperfSum) {
	if s == nil {
		return
	}
	if v, ok := lasting(s.Seconds); ok {
		f.DurationS = v
		f.Told = append(f.Told, "duration_s")
	}
	bits, ok := known(s.Bits)
	if bytes, _ := known(s.Bytes); !ok || bytes == 0 {
		return
	}
	f.SendGoodputBPS = bits
	f.Told = append(f.Told, "send_bps")
	if n, ok := count(s.Packets); ok && n > 0 && f.Protocol == model.UDP {
		f.Attempted = n
		f.Told = append(f.Told, "attempted_packets")
		if f.DurationS > 0 {
			f.SendPPS = float64(n) / f.DurationS
			f.Told = append(f.Told, "send_pps")
		}
	}
	if n, ok := count(s.Retransmits); ok && f.TCP != nil {
		f.TCP.Retransmits = n
		f.Told = append(f.Told, "tcp_retransmits")
	}
}

// ofReceiver takes what the receiver counted.
func ofReceiver(f *model.FlowResult, s *iperfSum) {
	if s == nil {
		return
	}
	seconds, timed := lasting(s.Seconds)
	packets, counted := count(s.Packets)
	bits, ok := known(s.Bits)
	if bytes, any := known(s.Bytes); ok && (any && bytes > 0 || packets > 0) {
		f.GoodputBPS = bits
		f.Told = append(f.Told, "goodput_bps")
	}
	lost, told := count(s.Lost)
	if f.Protocol != model.UDP || !counted || !told || packets == 0 || lost > packets {
		return
	}
	// iperf3's receiver counts as packets those up to the highest sequence, the lost ones included.
	f.Received, f.Lost, f.LossRatio = packets-lost, lost, float64(lost)/float64(packets)
	f.Told = append(f.Told, "received_packets", "lost_packets", "loss_ratio")
	if timed {
		f.ReceivePPS = float64(f.Received) / seconds
		f.Told = append(f.Told, "receive_pps")
	}
	if v, ok := known(s.JitterMS); ok && f.Received > 1 {
		f.JitterNS = v * 1e6
		f.Told = append(f.Told, "jitter_ns")
	}
}

// order takes how many packets came out of order, which only streams tell.
func (t *iperfTest) order(f *model.FlowResult, near bool) {
	total, told := uint64(0), false
	for _, s := range t.end.Streams {
		if s.UDP == nil || s.UDP.Sender != nil && *s.UDP.Sender != near {
			continue
		}
		if n, ok := count(s.UDP.OutOfOrder); ok && total < mostCount {
			total, told = total+n, true
		}
	}
	if told {
		f.Reordered = total
		f.Told = append(f.Told, "reordered_packets")
	}
}

// roundTrip is TCP's smoothed round trip in the last interval that has one, in ns: the mean of the streams.
func (t *iperfTest) roundTrip(near bool) (nanos float64, ok bool) {
	for i := len(t.intervals) - 1; i >= 0 && near; i-- {
		if v := meanRTT(t.intervals[i]); v > 0 {
			return v, true
		}
	}
	return 0, false
}

func meanRTT(i iperfInterval) float64 {
	sum, n := 0.0, 0
	for _, s := range i.Streams {
		if v, ok := known(s.RTT); ok && v > 0 && v < 1e12 {
			sum, n = sum+v*1e3, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// measured are the intervals that count, with the sums of one direction.
func (t *iperfTest) measured(of func(iperfInterval) *iperfSum) (sums []*iperfSum, intervals []iperfInterval) {
	for _, i := range t.intervals {
		if s := of(i); s != nil && !s.Omitted {
			sums, intervals = append(sums, s), append(intervals, i)
		}
	}
	return sums, intervals
}

// soFar adds up the intervals of a test without an end.
func (t *iperfTest) soFar(of func(iperfInterval) *iperfSum) *iperfSum {
	sums, _ := t.measured(of)
	if len(sums) == 0 {
		return nil
	}
	out := &iperfSum{}
	add := func(to **float64, from *float64) {
		v, ok := known(from)
		if !ok || v > mostCount {
			return
		}
		if *to == nil {
			*to = new(float64)
		}
		**to += v
	}
	for _, s := range sums {
		add(&out.Seconds, s.Seconds)
		add(&out.Bytes, s.Bytes)
		add(&out.Packets, s.Packets)
		add(&out.Lost, s.Lost)
		add(&out.Retransmits, s.Retransmits)
		out.JitterMS = s.JitterMS // iperf3's own mean, up to here
	}
	if bytes, ok := known(out.Bytes); ok && out.Seconds != nil && *out.Seconds > 0 {
		bits := 8 * bytes / *out.Seconds
		out.Bits = &bits
	}
	return out
}

// series are the intervals of one direction at the side that wrote the file. Intervals are nearly equal; a last one cut
// short would look like a fall of the rate.
func (t *iperfTest) series(f model.FlowResult, near bool, of func(iperfInterval) *iperfSum) (list []model.Series) {
	sums, intervals := t.measured(of)
	if len(sums) == 0 {
		return nil
	}
	step, ok := known(sums[0].Seconds)
	if step = math.Round(step*1000) / 1000; !ok || step <= 0 {
		return nil
	}
	if round := math.Round(step*10) / 10; round > 0 && math.Abs(step-round) < 0.02*step {
		step = round
	}
	if last := sums[len(sums)-1].Seconds; len(sums) > 1 && (last == nil || *last < 0.9*step) {
		sums, intervals = sums[:len(sums)-1], intervals[:len(intervals)-1]
	}
	at := f.To
	if near {
		at = f.From
	}
	series := func(metric string, value func(i int) float64) {
		s := model.Series{Metric: metric, Flow: f.Name, At: at, StepSeconds: step}
		some := false
		for i := range sums {
			v := value(i)
			s.Values, some = append(s.Values, v), some || !math.IsNaN(v)
		}
		if some {
			list = append(list, s)
		}
	}
	plain := func(get func(*iperfSum) *float64) func(int) float64 {
		return func(i int) float64 {
			if v, ok := known(get(sums[i])); ok {
				return v
			}
			return math.NaN()
		}
	}
	each := func(get func(*iperfSum) *float64) func(int) float64 {
		return func(i int) float64 {
			v, ok := known(get(sums[i]))
			seconds, timed := lasting(sums[i].Seconds)
			if !ok || !timed {
				return math.NaN()
			}
			return v / seconds
		}
	}
	packets := each(func(s *iperfSum) *float64 { return s.Packets })
	if near {
		series("send_bps", plain(func(s *iperfSum) *float64 { return s.Bits }))
		if f.Protocol == model.UDP {
			series("send_pps", packets)
		}
		if f.Protocol == model.TCP {
			series("retransmits_per_s", each(func(s *iperfSum) *float64 { return s.Retransmits }))
			series("tcp_rtt_ns", func(i int) float64 {
				if v := meanRTT(intervals[i]); v > 0 {
					return v
				}
				return math.NaN()
			})
		}
		return list
	}
	series("goodput_bps", plain(func(s *iperfSum) *float64 { return s.Bits }))
	if f.Protocol == model.UDP {
		lost := each(func(s *iperfSum) *float64 { return s.Lost })
		series("receive_pps", func(i int) float64 { return max(packets(i)-lost(i), 0) })
		series("lost_pps", lost)
	}
	return list
}
