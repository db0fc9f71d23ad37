package plan

import (
	"fmt"
	"math"
	"strings"

	"pelt/model"
)

// A sweep's trials are many: unless the user says otherwise they send so many packets.
const (
	sweepPackets = 1000
	quickPackets = 100 // settings that differ by less than a few percent stay tied
	sweepDrain   = 30  // s, for what waits in a queue after a trial
	labQuiet     = 0.2 // s; far longer than this machine holds a packet up
	heldQuiet    = 1.0 // s; likewise, and longer than most links' delays
	wholeMost    = 1500
)

// sweepFactors are the factors of a sweep: see Preset.
const sweepFactors = "direction payload! frame! rate interval profile streams receivers send-buffer receive-buffer link"

// Sweep is the comparison of many settings. Each cell has three trials: a comparison tells nothing of two.
var Sweep = Preset{
	Command: "sweep",
	Knobs: "payload frame rate interval profile direction streams receivers count quick time warmup repeats max-loss " +
		"family dev dscp df drops send-buffer receive-buffer engine seed",
	Defaults: map[string]string{"interval": "0", "rate": "", "warmup": "0"},
	Factors:  sweepFactors,
	build:    (*draft).buildSweep,
}

func (d *draft) buildSweep() error {
	switch {
	case !d.given("payload", "frame"):
		return flagError("payload", "say which sizes: 256..1472/256,1472")
	case d.given("count") && d.given("time"):
		return flagError("time", "give --count or --time, not both")
	case d.given("time"):
	case d.on("quick"):
		d.setDefault("count", fmt.Sprint(quickPackets))
	default:
		d.setDefault("count", fmt.Sprint(sweepPackets))
	}
	d.setDefault("time", "1m") // bounds a trial whose packets leave as they can
	if err := d.start(); err != nil {
		return err
	}
	if err := d.fill(); err != nil {
		return err
	}
	p := &d.plan
	for _, v := range d.values["receivers"] {
		p.Receivers = max(p.Receivers, int(v.Number))
	}
	p.Timing.DrainSeconds = sweepDrain
	if strings.HasPrefix(p.Target, "lab:") { // whose delays are known
		p.Timing.QuietSeconds = min(d.quiet(), sweepDrain)
	}
	return nil
}

// quiet returns after how many seconds of silence no packet of a lab is on its way: twice what its links delay, and
// three times what the largest datagram takes on the slowest link.
func (d *draft) quiet() float64 {
	quiet, bytes, rate := labQuiet, float64(d.plan.Flows[0].PayloadBytes), math.Inf(1)
	if d.Held {
		quiet = heldQuiet
	}
	for _, l := range d.plan.Links {
		quiet += 2 * (l.DelaySeconds + 4*l.JitterSeconds)
		if l.Rate > 0 {
			rate = min(rate, float64(l.Rate))
		}
	}
	for _, f := range d.plan.Factors {
		most := 0.0
		_, setting, _ := model.SplitLinkKnob(f.Knob)
		for _, v := range f.Levels {
			if most = max(most, v.Number); setting == "rate_bps" && v.Number > 0 {
				rate = min(rate, v.Number)
			}
			if v.Text == model.PathMTULevel {
				most = max(most, wholeMost)
			}
		}
		switch {
		case setting == "delay_s":
			quiet += 2 * most
		case setting == "jitter_s":
			quiet += 8 * most
		case f.Knob == "payload_bytes" || f.Knob == "frame_bytes":
			bytes = max(bytes, most)
		}
	}
	return quiet + 3*8*(1.05*bytes+100)/rate // with its headers, by and large
}
