package design

import (
	"testing"

	"pelt/model"
)

// TestLeftOfASearch: what is left of a search shrinks to nothing, and is told well from its beginning on.
func TestLeftOfASearch(t *testing.T) {
	p := searchPlan(1, 64, 1472)
	all := measured(t, p, limited(250e3, 1e6), nil, -1)
	var took float64
	for _, r := range all {
		took += r.Flows[0].DurationS
	}
	last, d := Rest{}, told(t, p, nil) // d goes on with the run
	for n := range len(all) + 1 {
		rest := Left(p, told(t, p, all[:n]))
		if n > 0 {
			d.Add(&all[n-1])
		}
		if on := Left(p, d); on != rest {
			t.Fatalf("after %d trials %+v is left, to a design that goes on %+v", n, rest, on)
		}
		if !rest.Guess || rest.AtOnce != 1 {
			t.Fatalf("after %d trials: %+v", n, rest)
		}
		if off := rest.Trials - (len(all) - n); n == 0 && (off < -len(all)/3 || off > len(all)/3) {
			t.Errorf("at first %d trials are left, of %d", rest.Trials, len(all))
		}
		if n > 0 && rest.Trials > last.Trials+3 {
			t.Errorf("after %d trials %d are left, and %d before", n, rest.Trials, last.Trials)
		}
		last = rest
	}
	if first := Left(p, told(t, p, nil)).Seconds; last.Trials != 0 || last.Seconds != 0 || first < took/2 ||
		first > 2*took {
		t.Errorf("at the end %+v is left; at first %g s were, and it took %g s", last, first, took)
	}
}

// TestLeftOfUnlikeSearches: a cell with short searches does not stand for one with long ones, nor the other way round.
func TestLeftOfUnlikeSearches(t *testing.T) {
	p := searchPlan(3, 64, 1472)
	d, trial := told(t, p, nil), 0
	var last Rest
	for ; ; trial++ {
		rest := Left(p, d)
		floods := 2 // which tell how long the searches of their cells are
		if trial > floods && (rest.Trials > last.Trials+3 || rest.Trials < last.Trials-10) {
			t.Errorf("before trial %d %d are left, after it %d", trial, last.Trials, rest.Trials)
		}
		last = rest
		cell, repeat, more := d.Next()
		if !more {
			break
		}
		path := limited(250e3, 1e6)
		if cell["payload_bytes"].Number == 1472 {
			path = limited(2e6, 1e6) // it carries all
		}
		f := path(cell["rate_pps"].Number)
		if seconds, set := cell["measure_s"]; set {
			f.DurationS = seconds.Number
		}
		d.Add(&model.Result{Cell: cell, Repeat: repeat, State: model.Valid, Flows: []model.FlowResult{f}})
	}
	if trial < 20 || last.Trials != 0 {
		t.Errorf("%d trials, %d left", trial, last.Trials)
	}
}

func TestLeftOfAGrid(t *testing.T) {
	p := planOf([]model.Factor{numbers("payload_bytes", 64, 512)}, model.Design{Repeats: 3})
	each := p.Timing.WarmupSeconds + p.Timing.MeasureSeconds
	done := []model.Result{{Cell: model.Cell{"payload_bytes": model.Number(64)}, State: model.Valid}}
	if got, want := Left(p, told(t, p, done)), (Rest{Trials: 5, Seconds: 5 * each, AtOnce: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	p.Flows[0].Packets = 1000
	if got := Left(p, told(t, p, nil)); got.More != 6*p.Timing.MeasureSeconds || got.Trials != 6 {
		t.Errorf("of trials that end when all is sent: %+v", got)
	}
}
