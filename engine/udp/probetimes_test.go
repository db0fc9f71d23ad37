package udp

import (
	"math"
	"testing"

	"pelt/model"
)

// Each direction is compared with its own times of the lead, whatever the echo's clock shows: here
// 100 ms behind or at the far end of its range, 20 ms each way, 3 ms of each round trip held by the echo.
func TestProbeTimes(t *testing.T) {
	const ms = 1_000_000
	for _, clock := range []int64{-100 * ms, math.MaxInt64 - 500*ms} {
		p := newProbeTimes(model.Timing{LeadSeconds: 0.1, WarmupSeconds: 0.1, MeasureSeconds: 1})
		p.begin(1000 * ms)
		exchange := func(at, up, down int64) bool {
			if !p.sent(at) {
				return false
			}
			came := at + up + clock
			return p.answered(at, came, came+3*ms, at+up+down+3*ms)
		}
		for _, c := range []struct {
			at, up, down int64 // ms
			counted      bool
		}{
			{1000, 20, 20, false}, {1010, 30, 20, false}, {1020, 20, 20, false},
			{1090, 20, 90, false},                                            // its answer comes when the lead is over
			{1150, 500, 500, false},                                          // in the warm-up
			{1200, 20, 20, true}, {1300, 70, 15, true}, {1400, 20, 28, true}, // 50 ms up, none, 8 ms down
			{2200, 20, 20, false}, // after the measured part
		} {
			if got := exchange(c.at*ms, c.up*ms, c.down*ms); got != c.counted {
				t.Errorf("at %d ms: counted is %v", c.at, got)
			}
		}
		for _, at := range []int64{1500, 2050, 2199} {
			p.sent(at * ms)
			p.unanswered(at*ms, 2210*ms) // the last may still come: the longest took 85 ms
		}
		r := p.report()
		f := r.Facts
		if f.Sent != 4 || f.Answered != 3 || f.IdleNS != 40*ms || r.RoundTrip.Min != 40*ms || r.RoundTrip.Max != 85*ms {
			t.Errorf("%d sent, %d answered, idle %v, round trips %+v", f.Sent, f.Answered, f.IdleNS, *r.RoundTrip)
		}
		if f.Up.Min != 0 || f.Up.P50 != 0 || f.Up.Max != 50*ms || f.Down.P50 != 0 || f.Down.Max != 8*ms {
			t.Errorf("up %+v, down %+v", *f.Up, *f.Down)
		}
		if want := 45.0/16 + (37-45.0/16)/16; math.Abs(f.JitterNS/ms-want) > 1e-9 {
			t.Errorf("jitter %v ms, want %v", f.JitterNS/ms, want)
		}
	}
}

// Without an answer in the lead there is no reference, so no increase is told.
func TestProbeTimesWithoutReference(t *testing.T) {
	p := newProbeTimes(model.Timing{MeasureSeconds: 1})
	p.begin(0)
	p.sent(1)
	p.answered(1, 2, 3, 4)
	if f := p.report().Facts; f.Answered != 1 || f.Up != nil || f.Down != nil || f.IdleNS != 0 {
		t.Errorf("%+v", f)
	}
}
