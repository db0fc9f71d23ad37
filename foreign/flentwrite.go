package foreign

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"slices"
	"time"

	"pelt/model"
)

// flentTime is how flent writes a time: with Z it refuses one without a fraction.
const flentTime = "2006-01-02T15:04:05.000000Z"

// plotted is a series under the name that a test of flent has for it.
type plotted struct {
	name, units string
	scale       float64 // to the unit
	flow        *model.FlowResult
	series      model.Series
}

// FlentTests names the test of flent that fits each trial; "" where none does: nothing was measured over time, or flent
// has no such test, as one of UDP that only comes.
func FlentTests(d *model.Document) []string {
	var tests []string
	for i := range d.Results {
		test, _ := plots(&d.Results[i])
		tests = append(tests, test)
	}
	return tests
}

// plots finds the test of flent that fits a trial, and the series that its plots show. All have one start and one step.
func plots(t *model.Result) (test string, list []plotted) {
	if t.State != model.Valid {
		return "", nil
	}
	has := map[string]bool{}
	for i := range t.Flows {
		f := &t.Flows[i]
		name, way := "UDP ", "upload"
		if f.From == model.Receiver {
			way = "download"
		}
		switch f.Protocol {
		case model.UDP:
		case model.TCP:
			name = "TCP "
		default: // another tool's pings
			continue
		}
		for _, s := range t.Series {
			p := plotted{name + way, megabits, 1e-6, f, s}
			whole := s.Flow == f.Name && s.Core == nil && s.Stream == nil && s.Layer == "" && timed(s)
			if s.Metric == "round_trip_ns" {
				p.name, p.units = "Ping (ms) UDP", millis
			}
			if !whole || s.Metric != "goodput_bps" && s.Metric != "round_trip_ns" {
				continue
			}
			if has[p.name] && p.units == megabits { // each test has one flow a way
				return "", nil
			}
			if has[p.name] || len(list) > 0 && (s.StepSeconds != list[0].series.StepSeconds ||
				s.StartSeconds != list[0].series.StartSeconds) {
				continue
			}
			has[p.name], list = true, append(list, p)
		}
	}
	switch {
	case has["TCP upload"] && has["TCP download"]:
		return "tcp_bidirectional", list
	case has["TCP upload"]:
		return "tcp_1up", list
	case has["TCP download"]:
		return "tcp_1down", list
	case has["UDP upload"]:
		return "udp_flood", list
	case has["Ping (ms) UDP"] && len(list) == 1:
		return "ping", list
	}
	return "", nil
}

// timed reports whether flent's file can hold the times of a series: it has them in seconds since 1970, too.
func timed(s model.Series) bool {
	const longest = 1e9 // seconds: in nanoseconds it is an int64
	return s.StepSeconds > 0 && math.Abs(s.StartSeconds) <= longest &&
		s.StartSeconds+s.StepSeconds*float64(len(s.Values)) <= longest
}

// WriteFlent writes a trial, one that FlentTests has a test for, as a data file of flent. The rates are those of the
// receiver: the plots take the series, or its mean, and show no loss otherwise.
func WriteFlent(w io.Writer, d *model.Document, trial *model.Result, title string) error {
	test, list := plots(trial)
	started, first := trial.Started, list[0].series
	if started.IsZero() {
		started = d.Started
	}
	x, results, raw, series := []float64{}, map[string][]*float64{}, map[string][]map[string]float64{}, map[string]any{}
	for _, p := range list {
		for len(x) < len(p.series.Values) {
			x = append(x, first.StartSeconds+float64(len(x))*first.StepSeconds)
		}
	}
	for _, p := range list {
		values, samples := make([]*float64, len(x)), []map[string]float64{}
		for i, v := range p.series.Values {
			if v *= p.scale; !math.IsNaN(v) && !math.IsInf(v, 0) {
				values[i] = &v
				at := started.Add(time.Duration(x[i] * 1e9))
				samples = append(samples, map[string]float64{"t": float64(at.UnixMicro()) / 1e6, "val": v})
			}
		}
		results[p.name], raw[p.name] = values, samples
		series[p.name] = seriesMeta(p, len(series))
	}
	length := float64(len(x)) * first.StepSeconds
	host, local := d.Plan.Target, model.Sender
	named := func(h model.Host) bool { return h.Node == model.Sender && h.Name != "" }
	if i := slices.IndexFunc(d.Host, named); i >= 0 {
		local = d.Host[i].Name
	}
	at := started.UTC().Format(flentTime)
	file := map[string]any{"version": flentFormat, "x_values": x, "results": results, "raw_values": raw,
		"metadata": map[string]any{"NAME": test, "TITLE": title, "HOST": host, "HOSTS": []string{host}, "LOCAL_HOST": local,
			"LENGTH": length, "TOTAL_LENGTH": length, "STEP_SIZE": first.StepSeconds, "TIME": at, "T0": at,
			"NOTE": cmp.Or(d.Tool.Name, "pelt") + " " + d.Tool.Version, "TEST_PARAMETERS": map[string]string{},
			"SERIES_META": series}}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(file)
}

// seriesMeta is what flent knows of a series as a whole.
func seriesMeta(p plotted, index int) map[string]any {
	f := p.flow
	told := func(figure string) bool { return len(f.Told) == 0 || slices.Contains(f.Told, figure) }
	meta := map[string]any{"UNITS": p.units, "RUNNER": peltRunner, "IDX": index}
	if p.units == millis {
		if f.RoundTrip != nil {
			meta["MEAN_VALUE"] = f.RoundTrip.Mean * p.scale
		}
		return meta
	}
	if told("goodput_bps") {
		meta["MEAN_VALUE"] = f.GoodputBPS * p.scale
	}
	if f.Protocol == model.UDP && f.Attempted > 0 {
		if told("loss_ratio") {
			meta["PACKET_LOSS_RATE"] = f.LossRatio
		}
		if told("attempted_packets") && told("received_packets") {
			meta["PACKETS_SENT"], meta["PACKETS_RECEIVED"] = f.Attempted, f.Received
		}
	}
	if f.TCP != nil {
		if told("tcp_retransmits") {
			meta["TCP_RETRANSMIT"] = f.TCP.Retransmits
		}
		if f.TCP.Control != "" {
			meta["CONG_CONTROL"] = f.TCP.Control
		}
	}
	return meta
}
