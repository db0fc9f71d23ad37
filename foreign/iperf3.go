package foreign

import (
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"pelt/model"
	"pelt/unit"
	"pelt/words"
)

// iperfTest is one test as iperf3 -J writes it, or --json-stream in lines. What a version does not write is nil.
type iperfTest struct {
	start     iperfStart
	intervals []iperfInterval
	end       iperfEnd
	fault     string // iperf3's own words
	ended     bool   // it has an end
}

type iperfStart struct {
	Version    string `json:"version"`
	SystemInfo string `json:"system_info"`
	Timestamp  struct {
		Seconds *float64 `json:"timesecs"`
	} `json:"timestamp"`
	Connected []struct {
		LocalHost  string `json:"local_host"`
		RemoteHost string `json:"remote_host"`
	} `json:"connected"`
	ConnectingTo struct {
		Host string   `json:"host"`
		Port *float64 `json:"port"`
	} `json:"connecting_to"`
	Accepted *struct { // of a server's file
		Host string `json:"host"`
	} `json:"accepted_connection"`
	TargetBitrate *float64 `json:"target_bitrate"`
	Test          struct {
		Protocol      string   `json:"protocol"`
		Streams       *float64 `json:"num_streams"`
		Block         *float64 `json:"blksize"`
		Reverse       *float64 `json:"reverse"`
		TargetBitrate *float64 `json:"target_bitrate"`
	} `json:"test_start"`
}

// iperfSum is the figures of one direction, or of one stream: over the test, or in an interval.
type iperfSum struct {
	Start       *float64 `json:"start"`
	End         *float64 `json:"end"`
	Seconds     *float64 `json:"seconds"`
	Bytes       *float64 `json:"bytes"`
	Bits        *float64 `json:"bits_per_second"`
	JitterMS    *float64 `json:"jitter_ms"`
	Lost        *float64 `json:"lost_packets"`
	Packets     *float64 `json:"packets"`
	OutOfOrder  *float64 `json:"out_of_order"`
	Retransmits *float64 `json:"retransmits"`
	RTT         *float64 `json:"rtt"` // µs
	Omitted     bool     `json:"omitted"`
	Sender      *bool    `json:"sender"`
}

type iperfInterval struct {
	Streams []iperfSum `json:"streams"`
	Sum     *iperfSum  `json:"sum"`
	Back    *iperfSum  `json:"sum_bidir_reverse"`
}

type iperfEnd struct {
	Streams []struct {
		UDP *iperfSum `json:"udp"`
	} `json:"streams"`
	Sum          *iperfSum `json:"sum"` // of UDP; old versions have no other
	Sent         *iperfSum `json:"sum_sent"`
	Received     *iperfSum `json:"sum_received"`
	BackSent     *iperfSum `json:"sum_sent_bidir_reverse"`
	BackReceived *iperfSum `json:"sum_received_bidir_reverse"`
	Control      string    `json:"sender_tcp_congestion"`
}

// readIperf3 reads the tests of a file, each of which becomes a trial.
func readIperf3(r *reader) (*model.Document, error) {
	var tests []*iperfTest
	var open *iperfTest // that is read line by line
	var err error
	for !cut(err) && r.more() {
		var t *iperfTest
		var event string
		if t, event, err = r.iperfObject(open); err != nil && !cut(err) {
			return nil, r.wrong(err)
		}
		if t == open || t.empty() {
			continue
		}
		if tests, open = append(tests, t), nil; event != "" {
			open = t
		}
		if len(tests) > mostTests {
			return nil, r.wrong(words.Errorf("holds more than %d tests", mostTests))
		}
	}
	d := document(Iperf3, "")
	for _, t := range tests {
		t.into(d)
	}
	switch {
	case len(tests) == 0 && cut(err):
		return nil, r.wrong(err)
	case len(tests) == 0:
		return nil, r.wrong(words.Errorf("holds no test of %s", Iperf3))
	}
	return d, nil
}

// iperfObject reads one JSON value: a whole test, or an event, which is added to the test that is read line by line.
func (r *reader) iperfObject(streamed *iperfTest) (t *iperfTest, event string, err error) {
	t = &iperfTest{}
	err = r.object(func(key string) error {
		switch key {
		case "start", "end", "error":
			return r.event(t, key)
		case "intervals":
			return r.list(func() error { return r.event(t, "interval") })
		case "event":
			return r.decode(&event)
		case "data":
			if event != "start" && streamed != nil {
				t = streamed
			}
			return r.event(t, event)
		}
		return r.skip()
	})
	return t, event, err
}

// event reads what a test holds of one kind.
func (r *reader) event(t *iperfTest, event string) error {
	switch event {
	case "start":
		return r.decode(&t.start)
	case "interval":
		var one iperfInterval
		err := r.decode(&one)
		if err == nil {
			t.intervals = append(t.intervals, one)
		}
		return err
	case "end":
		err := r.decode(&t.end)
		t.ended = err == nil
		return err
	case "error":
		return r.decode(&t.fault)
	}
	return r.skip()
}

func (t *iperfTest) empty() bool {
	return t.start.Version == "" && len(t.intervals) == 0 && t.fault == "" && t.end.Sum == nil && t.end.Sent == nil &&
		t.end.Received == nil
}

// into adds the test to a document as a trial.
func (t *iperfTest) into(d *model.Document) {
	s := t.start
	if len(d.Results) == 0 {
		d.Tool.Version = clip(strings.TrimPrefix(s.Version, "iperf "))
		t.hosts(d)
	}
	trial := model.Result{State: model.Valid, Engine: Iperf3, Cell: model.Cell{}}
	if v, ok := known(s.Timestamp.Seconds); ok && v < maxUnix {
		trial.Started = time.Unix(int64(v), 0).UTC()
	}
	if d.Started.IsZero() {
		d.Started = trial.Started
	}
	switch {
	case t.fault != "":
		trial.State = model.Aborted
		text := clip(strings.TrimPrefix(t.fault, "error - "))
		trial.Why = model.Reasons{{Code: model.ToolStopped, Name: Iperf3, Text: text}}
	case !t.ended:
		trial.State = model.Aborted
		trial.Why = model.Reasons{{Code: model.FileCut, Name: Iperf3}}
	}
	t.settings(trial.Cell)
	reverse, _ := known(s.Test.Reverse)
	both := t.end.BackSent != nil || t.end.BackReceived != nil
	for _, one := range t.intervals {
		both = both || one.Back != nil
	}
	e, name, direction := t.end, "up", "up"
	switch {
	case both:
		direction = "both"
	case reverse > 0:
		name, direction = "down", "down"
	}
	trial.Cell["direction"] = model.Word(direction)
	t.flow(&trial, name, e.Sent, e.Received, func(i iperfInterval) *iperfSum { return i.Sum })
	if both {
		t.flow(&trial, "down", e.BackSent, e.BackReceived, func(i iperfInterval) *iperfSum { return i.Back })
	}
	add(d, trial)
}

// maxUnix is where years have five digits, which RFC 3339 has not.
const maxUnix = 253402300800

// hosts takes from the first test who took part.
func (t *iperfTest) hosts(d *model.Document) {
	s := t.start
	var local, remote string
	if len(s.Connected) > 0 {
		local, remote = clip(s.Connected[0].LocalHost), clip(s.Connected[0].RemoteHost)
	}
	near, far := model.Sender, model.Receiver // the client sends but for -R; it is where the test was started
	if s.Accepted != nil {
		near, far = far, near
		d.Plan.Target = local
	} else if d.Plan.Target = remote; s.ConnectingTo.Host != "" {
		d.Plan.Target = clip(s.ConnectingTo.Host)
	}
	if port, ok := known(s.ConnectingTo.Port); ok && port != iperfPort && d.Plan.Target != "" {
		d.Plan.Target = net.JoinHostPort(d.Plan.Target, strconv.Itoa(int(min(port, math.MaxUint16))))
	}
	if local != "" {
		d.Host = append(d.Host, model.Host{Node: near, Address: local, Kernel: clip(s.SystemInfo)})
	}
	if remote != "" {
		d.Host = append(d.Host, model.Host{Node: far, Address: remote})
	}
}

const iperfPort = 5201

// settings are what two tests must share to be repeats of each other.
func (t *iperfTest) settings(cell model.Cell) {
	s := t.start.Test
	if p := t.protocol(); p != "" {
		cell["protocol"] = model.Word(string(p))
	}
	if n, ok := count(s.Block); ok && n > 0 {
		cell["payload_bytes"] = model.Number(float64(n))
	}
	streams, ok := count(s.Streams)
	if ok && streams > 0 {
		cell["streams"] = model.Number(float64(streams))
	}
	target, ok := count(s.TargetBitrate)
	if !ok {
		target, ok = count(t.start.TargetBitrate)
	}
	if ok && target > 0 && target < mostBits {
		// iperf3's rate is of each stream, pelt's of all.
		if rate, err := unit.ParseRate(strconv.FormatUint(target*max(min(streams, 1000), 1), 10) + "bit"); err == nil {
			cell["rate_pps"] = model.Word(rate.String())
		}
	} else if ok && target == 0 {
		cell["rate_pps"] = model.Word("max")
	}
	if t.end.Control != "" && t.protocol() == model.TCP {
		cell["control"] = model.Word(clip(t.end.Control))
	}
}

// mostBits bounds an asked rate that is taken from a file, in bit/s.
const mostBits = 1e13

func (t *iperfTest) protocol() model.Protocol {
	switch p := model.Protocol(strings.ToLower(t.start.Test.Protocol)); p {
	case model.UDP, model.TCP:
		return p
	}
	return ""
}

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
	if v, ok := known(s.Seconds); ok && v > 0 {
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
	seconds, timed := known(s.Seconds)
	packets, counted := count(s.Packets)
	bits, ok := known(s.Bits)
	if bytes, any := known(s.Bytes); ok && (any && bytes > 0 || packets > 0) {
		f.GoodputBPS = bits
		f.Told = append(f.Told, "goodput_bps")
	}
	lost, known := count(s.Lost)
	if f.Protocol != model.UDP || !counted || !known || packets == 0 || lost > packets {
		return
	}
	// iperf3's receiver counts as packets those up to the highest sequence, the lost ones included.
	f.Received, f.Lost, f.LossRatio = packets-lost, lost, float64(lost)/float64(packets)
	f.Told = append(f.Told, "received_packets", "lost_packets", "loss_ratio")
	if timed && seconds > 0 {
		f.ReceivePPS = float64(f.Received) / seconds
		f.Told = append(f.Told, "receive_pps")
	}
	if s.JitterMS != nil && *s.JitterMS >= 0 && !math.IsInf(*s.JitterMS, 0) && f.Received > 1 {
		f.JitterNS = *s.JitterMS * 1e6
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
	if step = math.Round(step*1000) / 1000; !ok || step <= 0 || math.IsInf(step, 0) {
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
			seconds, timed := known(sums[i].Seconds)
			if !ok || !timed || seconds == 0 {
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
