package plan

import (
	"strings"

	"pelt/model"
)

// Latency is the delay of a thin flow beside loads of shares of the rate without loss. The load is of full
// Ethernet frames, as bulk transfers send: bits fill the queue, not packets.
var Latency = Preset{
	Command: "latency",
	Knobs: "payload frame rate direction streams time warmup repeats goal family dev dscp df drops source-port " +
		"send-buffer receive-buffer engine seed",
	Defaults: map[string]string{"payload": "1472", "direction": "up,down,both", "time": "2s",
		"warmup": "500ms", "repeats": "1", "goal": "quick"},
	Factors: "direction! payload! frame!",
	build:   (*draft).buildLatency,
}

// loads are shares of the rate without loss. A queue fills only above it, and graders measure then: at 1.5
// times the rate a queue is full after twice the delay that it makes.
var loads = []float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.5}

const (
	// leastLoadPPS is where the search of a load ends: 0.3 Mbit/s of full frames, for slow lines.
	leastLoadPPS = 25
	loadWidth    = 0.02 // a load needs no finer rate
)

func (d *draft) buildLatency() error {
	switch {
	case len(d.values["payload"])+len(d.values["frame"]) > 1:
		return flagError("payload, --frame", "want one size: the load has one")
	case strings.HasPrefix(d.Target, "lab:star"):
		return &model.FieldError{Field: "TARGET", Want: "a star has many paths; want one with one receiver"}
	}
	if err := d.start(); err != nil {
		return err
	}
	s, err := d.search()
	if err != nil {
		return err
	}
	s.Loads, s.MinPPS = loads, d.leastPPS(leastLoadPPS)
	if !d.given("goal") {
		s.Goals[0].WidthRatio = loadWidth
	}
	d.plan.Design.Search, d.plan.Design.Redo = s, 2
	return d.fill()
}
