package foreign

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"pelt/model"
	"pelt/words"
)

// flentFormat is the version of flent's data files since flent 1.3: values are in the units that plots show.
const flentFormat = 4

// flentFile is a data file of flent; doc/data-format.rst and flent/resultset.py there describe it.
type flentFile struct {
	Version number                   `json:"version"`
	Meta    flentMeta                `json:"metadata"`
	X       []number                 `json:"x_values"` // seconds from the start
	Results map[string][]number      `json:"results"`  // each as long as X
	Raw     map[string][]flentSample `json:"raw_values"`
}

type flentMeta struct {
	Name      string                 `json:"NAME"`
	Title     string                 `json:"TITLE"`
	Host      string                 `json:"HOST"`
	LocalHost string                 `json:"LOCAL_HOST"`
	Version   string                 `json:"FLENT_VERSION"`
	Kernel    string                 `json:"KERNEL_RELEASE"`
	Time      string                 `json:"TIME"`
	Length    number                 `json:"LENGTH"`
	Step      number                 `json:"STEP_SIZE"`
	Series    map[string]flentSeries `json:"SERIES_META"`
}

type flentSeries struct {
	Units       string `json:"UNITS"`
	Runner      string `json:"RUNNER"`
	Mean        number `json:"MEAN_VALUE"`
	Loss        number `json:"PACKET_LOSS_RATE"`
	Sent        number `json:"PACKETS_SENT"`
	Received    number `json:"PACKETS_RECEIVED"`
	Retransmits number `json:"TCP_RETRANSMIT"`
	Control     string `json:"CONG_CONTROL"`
}

type flentSample struct {
	Value number `json:"val"`
	Lost  bool   `json:"lost"`
}

// number is a number, or a number in quotes as netperf's are, of a file. What is neither, or beyond mostFigure, is
// absent.
type number struct {
	v     float64
	known bool
}

func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if *n = (number{}); err == nil && math.Abs(v) <= mostFigure {
		*n = number{v, true}
	}
	return nil
}

// positive returns the number if it is there and not negative.
func (n number) positive() (float64, bool) { return n.v, n.known && n.v >= 0 }

// Units of flent's series, and the runner of those that pelt writes.
const (
	megabits   = "Mbits/s"
	millis     = "ms"
	peltRunner = "pelt"
)

// readFlent reads a data file, or several one after another, each of which becomes a trial.
func readFlent(r *reader) (*model.Document, error) {
	var d *model.Document
	var test string
	for r.more() {
		var f flentFile
		if err := r.decode(&f); err != nil {
			return nil, r.wrong(err)
		}
		if err := f.check(); err != nil {
			return nil, r.unfit(err)
		}
		switch name := clip(f.Meta.Name); {
		case d == nil:
			d, test = f.document(), name
		case name != test:
			return nil, r.unfit(words.Errorf("holds tests of two kinds, %s and %s", test, name))
		case len(d.Results) == mostTests:
			return nil, r.unfit(words.Errorf("holds more than %d tests", mostTests))
		}
		trial := f.trial()
		if len(trial.Flows) == 0 {
			return nil, r.unfit(words.Errorf("has no series of rates or round trips that was measured"))
		}
		add(d, trial)
	}
	return d, nil
}

func (f *flentFile) check() error {
	switch {
	case !f.Version.known || f.Version.v != flentFormat:
		return words.Errorf("is no flent data file of version %d", flentFormat)
	case len(f.X) == 0:
		return words.Errorf("x_values: want a value at least")
	case len(f.Results) > mostFlows:
		return words.Errorf("holds more than %d series", mostFlows)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Results)) {
		if n := len(f.Results[name]); n != len(f.X) {
			return words.Errorf("results: %q has %d values; want one for each of the %d x_values", clip(name), n,
				len(f.X))
		}
	}
	return nil
}

// document is a run without trials of what the file says of the whole.
func (f *flentFile) document() *model.Document {
	d := document(Flent, f.Meta.Version)
	d.Started = f.started()
	d.Plan.Command, d.Plan.Target = clip(f.Meta.Name), clip(f.Meta.Host)
	if f.Meta.LocalHost != "" {
		d.Host = append(d.Host, model.Host{Node: model.Sender, Name: clip(f.Meta.LocalHost),
			Kernel: clip(f.Meta.Kernel)})
	}
	return d
}

func (f *flentFile) started() time.Time {
	t, err := time.Parse(time.RFC3339, f.Meta.Time)
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t.UTC()
}

// trial has a flow for each series that was measured, in the order of their names.
func (f *flentFile) trial() model.Result {
	t := model.Result{State: model.Valid, Engine: Flent, Cell: model.Cell{}, Started: f.started()}
	names := slices.Collect(maps.Keys(f.Results))
	for name := range f.Raw { // as VoIP, of which only parts are in the results
		if _, ok := f.Results[name]; !ok && len(names) < mostFlows {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	controls := map[string]bool{}
	for _, name := range names {
		if f.computed(name) {
			continue
		}
		flow, series := f.flow(name)
		if len(flow.Told) == 0 {
			continue
		}
		t.Flows, t.Series = append(t.Flows, flow), append(t.Series, series...)
		if flow.TCP != nil && flow.TCP.Control != "" {
			controls[flow.TCP.Control] = true
		}
	}
	if len(controls) == 1 {
		t.Cell["control"] = model.Word(slices.Collect(maps.Keys(controls))[0])
	}
	return t
}

// computed reports whether flent made a series of others, as the sum of streams.
func (f *flentFile) computed(name string) bool {
	if m, ok := f.Meta.Series[name]; ok && m.Runner != "" {
		return len(f.Raw[name]) == 0 && m.Runner != peltRunner
	}
	return strings.HasSuffix(name, " sum") || strings.HasSuffix(name, " avg") || strings.HasSuffix(name, " totals")
}

func (f *flentFile) flow(name string) (model.FlowResult, []model.Series) {
	m := f.Meta.Series[name]
	flow := model.FlowResult{Name: clip(name), From: model.Sender, To: model.Receiver, Streams: 1}
	transport, _, _ := strings.Cut(name, " ")
	rate := m.Units == megabits || m.Units == "" && (transport == "TCP" || transport == "UDP")
	switch {
	case rate && transport == "TCP":
		flow.Protocol, flow.TCP = model.TCP, &model.TCPFacts{Control: clip(m.Control)}
	case rate && transport == "UDP", transport == "VoIP", strings.HasPrefix(name, "Ping (ms) UDP"):
		flow.Protocol = model.UDP
	case strings.HasPrefix(name, "Ping (ms) ICMP"):
		flow.Protocol = "icmp"
	case transport == "Ping":
	default:
		return flow, nil
	}
	if strings.Contains(name, "download") {
		flow.From, flow.To = flow.To, flow.From
	}
	if !rate {
		return f.trips(flow, name, m)
	}
	return f.rate(flow, name, m)
}

// rate is a series of Mbit/s. Of UDP flent has the sender's rate in the series, and the receiver's as its mean.
func (f *flentFile) rate(flow model.FlowResult, name string, m flentSeries) (model.FlowResult, []model.Series) {
	sum, n := 0.0, 0
	for _, v := range f.Results[name] {
		if v, ok := v.positive(); ok {
			sum, n = sum+v, n+1
		}
	}
	metric, at, sent := "goodput_bps", flow.To, flow.Protocol == model.UDP && m.Runner != peltRunner
	mean, told := m.Mean.positive()
	switch {
	case sent && n > 0:
		metric, at = "send_bps", flow.From
		flow.SendGoodputBPS = sum / float64(n) * 1e6
		flow.Told = append(flow.Told, "send_bps")
	case !told && n > 0:
		mean, told = sum/float64(n), true
	}
	if told {
		flow.GoodputBPS = mean * 1e6
		flow.Told = append(flow.Told, "goodput_bps")
	}
	if n, ok := m.Retransmits.positive(); ok && flow.TCP != nil && n <= mostCount {
		flow.TCP.Retransmits = uint64(n)
		flow.Told = append(flow.Told, "tcp_retransmits")
	}
	if seconds, ok := f.Meta.Length.positive(); ok && seconds >= leastSeconds && len(flow.Told) > 0 {
		flow.DurationS = seconds
		flow.Told = append(flow.Told, "duration_s")
	}
	f.losses(&flow, m)
	return flow, f.series(flow, name, metric, at, 1e6)
}

// trips is a series of round trips: of each packet where the file has them.
func (f *flentFile) trips(flow model.FlowResult, name string, m flentSeries) (model.FlowResult, []model.Series) {
	var nanos []float64
	for _, s := range f.Raw[name] {
		if v, ok := s.Value.positive(); ok && !s.Lost {
			nanos = append(nanos, v*1e6)
		}
	}
	if len(f.Raw[name]) == 0 {
		for _, v := range f.Results[name] {
			if v, ok := v.positive(); ok {
				nanos = append(nanos, v*1e6)
			}
		}
	}
	if flow.RoundTrip = percentiles(nanos); flow.RoundTrip != nil {
		for _, end := range []string{"min", "p50", "p95", "p99", "p999", "max"} {
			flow.Told = append(flow.Told, "round_trip_"+end+"_ns")
		}
	}
	f.losses(&flow, m)
	return flow, f.series(flow, name, "round_trip_ns", flow.From, 1e6)
}

// losses takes what a runner counted of its packets.
func (f *flentFile) losses(flow *model.FlowResult, m flentSeries) {
	if flow.Protocol != model.UDP {
		return
	}
	if ratio, ok := m.Loss.positive(); ok && ratio <= 1 {
		flow.LossRatio = ratio
		flow.Told = append(flow.Told, "loss_ratio")
	}
	sent, ok := m.Sent.positive()
	received, heard := m.Received.positive()
	if ok && heard && sent > 0 && sent <= mostCount && received <= sent {
		flow.Attempted, flow.Received = uint64(sent), uint64(received)
		flow.Lost = flow.Attempted - flow.Received
		flow.Told = append(flow.Told, "attempted_packets", "received_packets", "lost_packets")
	}
}

func (f *flentFile) series(flow model.FlowResult, name, metric, at string, factor float64) []model.Series {
	step, ok := f.Meta.Step.positive()
	if !ok || step < leastSeconds {
		return nil
	}
	start := 0.0
	if f.X[0].known {
		start = f.X[0].v
	}
	s := model.Series{Metric: metric, Flow: flow.Name, At: at, StartSeconds: start, StepSeconds: step}
	some := false
	for _, v := range f.Results[name] {
		v, ok := v.positive()
		if v *= factor; !ok {
			v = math.NaN()
		}
		s.Values, some = append(s.Values, v), some || ok
	}
	if !some || len(flow.Told) == 0 {
		return nil
	}
	return []model.Series{s}
}

// percentiles summarise values, by the nearest rank; nil if there are none.
func percentiles(values []float64) *model.Percentiles {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	at := func(share float64) float64 {
		return values[max(0, int(math.Ceil(share*float64(len(values))))-1)]
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return &model.Percentiles{Count: uint64(len(values)), Min: values[0], P50: at(0.5), P90: at(0.9), P95: at(0.95),
		P99: at(0.99), P999: at(0.999), Max: values[len(values)-1], Mean: sum / float64(len(values))}
}
