package live

import (
	"testing"
	"testing/synctest"

	"pelt/design"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/plan"
	"pelt/words"
)

// TestLeftOfSearches: the time that is left of a search does not jump, where floods show that searches are longer than
// was guessed, nor where the trials of one contradict each other.
func TestLeftOfSearches(t *testing.T) {
	synctest.Test(t, leftOfSearches) // whose clock stands still: trials take no time besides
}

func leftOfSearches(t *testing.T) {
	p, err := plan.Ndr.Of("192.0.2.1", "direction=up")
	testenv.Must(t, err)
	d := &model.Document{Plan: p}
	l := leftOf(d)
	choose, err := design.New(p)
	testenv.Must(t, err)
	last, trials := 0.0, 0
	for ; ; trials++ {
		l.begin(d)
		if left := l.seconds(); trials > 1 && left > 1.25*last+2 {
			t.Errorf("after %d trials %.0f s are left, %.0f before", trials, left, last)
		}
		last = l.seconds()
		cell, repeat, more := choose.Next()
		if !more {
			break
		}
		pps, limit := cell["rate_pps"].Number, 2000.0
		if pps == 0 {
			pps = 1e6
		}
		if trials%7 == 0 { // what a stall lost
			limit = 1900
		}
		f := model.FlowResult{Name: "up", Protocol: model.UDP, DurationS: max(cell["measure_s"].Number, 0.25),
			Attempted: uint64(pps), SendPPS: pps, LossRatio: max(0, 1-limit/pps)}
		f.Lost = uint64(f.LossRatio * pps)
		f.ReceivePPS = pps - float64(f.Lost)
		r := &model.Result{Cell: cell, Repeat: repeat, State: model.Valid, Flows: []model.FlowResult{f}}
		choose.Add(r)
		l.end(p, r, false)
	}
	if trials < 30 || last != 0 {
		t.Errorf("%d trials, %.0f s left", trials, last)
	}
}

// TestEstimateInChinese: also the days of an estimate are said in the reader's language.
func TestEstimateInChinese(t *testing.T) {
	for time, want := range map[string]string{
		"10s": "约 12 s", "2d": "约 2 天", "51h": "约 2 天 3 h", "7d": "约 7 天",
	} {
		p, err := plan.Soak.Of("192.0.2.1", "time="+time)
		testenv.Must(t, err)
		if got, _, _ := Estimate(words.Chinese, p); got != want {
			t.Errorf("%s: %q, want %q", time, got, want)
		}
	}
}

// TestEstimateOfTransfers: transfers take as long as they need, until they are cut.
func TestEstimateOfTransfers(t *testing.T) {
	for most, want := range map[string]string{
		"time=20s": "about 20 s to 7 min: 20 trials", "time=2m": "about 20 s to 40 min: 20 trials",
	} {
		p, err := plan.Control.Of("lab:router", "bytes=10MB", most)
		testenv.Must(t, err)
		if got, _, _ := Estimate(words.English, p); got != want {
			t.Errorf("%s: %q, want %q", most, got, want)
		}
	}
}
