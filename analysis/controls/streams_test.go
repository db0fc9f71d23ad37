package controls

import (
	"math/rand/v2"
	"testing"

	"pelt/model"
)

// race is a trial of two streams, sampled each 50 ms: the second begins later, and the
// shares go from all for the first to even.
func race(begin, settle, end float64, series func([]model.Series) []model.Series) func(*model.Result) {
	return func(r *model.Result) {
		f := &r.Flows[0]
		f.Streams = 2
		f.TCP.PerStream = []model.TCPStream{{Control: "cubic", GoodputBPS: 30e6}, {Control: "bbr", StartSeconds: begin, GoodputBPS: 90e6}}
		var all []model.Series
		for k := range 2 {
			var v []float64
			sum := 0.0
			for i := range int(end/0.05) + 1 {
				at := float64(i) * 0.05
				share := 0.5
				switch {
				case at < begin:
					share = float64(1 - k)
				case at < begin+settle:
					share = []float64{0.9, 0.1}[k]
				}
				sum += share * 1000
				v = append(v, sum)
			}
			all = append(all, model.Series{Metric: "tcp_acked_bytes", Flow: "up", At: model.Sender, Stream: &k, StepSeconds: 0.05, Values: v})
		}
		if series != nil {
			all = series(all)
		}
		r.Series = all
	}
}

func TestStreams(t *testing.T) {
	const none = -1.0
	for _, c := range []struct {
		name   string
		change func(*model.Result)
		bytes  uint64
		want   float64 // of the convergence
	}{
		// The second is seen to have begun with its first sample, and shares are of whole windows.
		{"settles", race(2, 3, 20, nil), 0, 3},
		{"from the begin", race(2, 0, 20, nil), 0, 0},
		{"too late", race(2, 17, 20, nil), 0, none},
		{"too short", race(2, 0, 4.5, nil), 0, none},
		{"a series that begins with its stream", race(2, 3, 20, func(s []model.Series) []model.Series {
			s[1].StartSeconds, s[1].Values = 2, s[1].Values[40:]
			return s
		}), 0, 3},
		{"one ends first", race(2, 3, 20, func(s []model.Series) []model.Series {
			for i := range s[1].Values[300:] { // from 15 s on
				s[1].Values[300+i] = s[1].Values[300]
			}
			return s
		}), 1e6, 3},
		{"one stalls at the end", race(2, 3, 20, func(s []model.Series) []model.Series {
			for i := range s[1].Values[300:] {
				s[1].Values[300+i] = s[1].Values[300]
			}
			return s
		}), 0, none},
		{"one never begins", race(2, 3, 20, func(s []model.Series) []model.Series { clear(s[1].Values); return s }), 0, none},
		{"one series", race(2, 3, 20, func(s []model.Series) []model.Series { return s[:1] }), 0, none},
		{"steps differ", race(2, 3, 20, func(s []model.Series) []model.Series { s[1].StepSeconds = 0.1; return s }), 0, none},
	} {
		d := duel{controls: []string{"cubic+bbr"}, repeats: 5, bytes: c.bytes, change: c.change, took: func(string, float64, int, *rand.Rand) float64 { return 120e6 }}
		got := table(t, d.document()).Cells[0]
		if got.Jain == nil || !near1(got.Jain.Median, 0.8, 1e-9) || !near1(got.Shares["bbr"].Median, 0.75, 1e-9) || len(got.Shares) != 2 {
			t.Fatalf("%s: Jain %+v, shares %v", c.name, got.Jain, got.Shares)
		}
		switch e := got.Converged; {
		case c.want == none && e != nil, c.want != none && (e == nil || e.Bound || e.Median < c.want || e.Median > c.want+0.5):
			t.Errorf("%s: converged %+v; want %v", c.name, e, c.want)
		}
	}
}

func TestStreamsAlike(t *testing.T) {
	d := duel{controls: []string{"cubic", "bbr"}, repeats: 5, took: func(string, float64, int, *rand.Rand) float64 { return 120e6 },
		change: func(r *model.Result) {
			c := r.Cell["control"].Text
			r.Flows[0].TCP.PerStream = []model.TCPStream{{Control: c, GoodputBPS: 60e6}, {Control: c, GoodputBPS: 60e6}}
			if c == "bbr" {
				r.Flows[0].TCP.PerStream = r.Flows[0].TCP.PerStream[:1]
			}
		}}
	got := table(t, d.document())
	if c := got.Cells[0]; c.Jain == nil || c.Jain.Median != 1 || c.Shares != nil || c.Converged != nil {
		t.Errorf("streams of one control: Jain %+v, shares %v", c.Jain, c.Shares)
	}
	if c := got.Cells[1]; c.Jain != nil {
		t.Errorf("one stream: Jain %+v", c.Jain)
	}
}

// Where some trials never settle, the others do not stand for all.
func TestConvergedInSome(t *testing.T) {
	d := duel{controls: []string{"cubic+bbr"}, repeats: 5, took: func(string, float64, int, *rand.Rand) float64 { return 120e6 },
		change: func(r *model.Result) {
			race(2, map[bool]float64{true: 3, false: 17}[r.Repeat < 2], 20, nil)(r)
		}}
	if e := table(t, d.document()).Cells[0].Converged; e == nil || !e.Bound || e.Median != 18 || len(e.Values) != 5 {
		t.Errorf("converged %+v; want at least 18 s", e)
	}
}
