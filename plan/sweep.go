package plan

import (
	"math"
	"slices"
	"strings"
	"time"

	"pelt/model"
)

// A sweep's trials are many: unless the user says otherwise they send so many
// packets, and each cell has three of them. The comparison tells nothing of two.
const (
	sweepPackets = 1000
	sweepRepeats = 3
	// sweepLongest bounds a trial whose packets leave as they can, and what waits
	// in a queue after it.
	sweepLongest = time.Minute
	sweepDrain   = 30 * time.Second
	labQuiet     = 200 * time.Millisecond // far longer than this machine holds a packet up
	heldQuiet    = time.Second            // likewise, and longer than most links' delays
)

// Sweep makes the plan of a sweep. An error names the option that is wrong, as
// the command line spells it.
func Sweep(o Options) (model.Plan, error) {
	o.Repeats = orDefault(o.Repeats, sweepRepeats)
	if o.Warmup == nil {
		none := time.Duration(0)
		o.Warmup = &none
	}
	counted := o.Packets
	if counted == 0 && o.Time == 0 {
		counted = sweepPackets
	}
	if counted > 0 && o.Time == 0 {
		o.Time = sweepLongest
	}
	if o.Protocol == model.TCP {
		return model.Plan{}, bad("--proto", "a sweep is of UDP")
	}
	if len(o.Payloads) == 0 && len(o.Frames) == 0 && !o.Whole {
		return model.Plan{}, bad("--payload", "say which sizes: 256..1472/256,1472")
	}
	i := slices.IndexFunc(o.Factors, func(f model.Factor) bool {
		return f.Knob == "rate_pps" || f.Knob == "interval_ns"
	})
	profiles := slices.ContainsFunc(o.Factors, func(f model.Factor) bool { return f.Knob == "profile" })
	if i >= 0 && (o.Profile != nil || profiles) { // a profile needs a rate, also where that varies
		rate := model.Plan{Flows: []model.Flow{{}}}
		if err := rate.Set(o.Factors[i].Knob, o.Factors[i].Levels[0]); err != nil {
			return model.Plan{}, translate(rate, err)
		}
		o.Rate = rate.Flows[0].Rate
	}
	p, err := Curve(o)
	if err != nil {
		return p, err
	}
	p.Command = "sweep"
	p.Timing.DrainSeconds = sweepDrain.Seconds()
	if strings.HasPrefix(p.Target, "lab:") { // whose delays are known
		p.Timing.QuietSeconds = labQuiet.Seconds()
		if o.Held {
			p.Timing.QuietSeconds = heldQuiet.Seconds()
		}
		for _, l := range p.Links {
			p.Timing.QuietSeconds += 2 * (l.DelaySeconds + 4*l.JitterSeconds)
		}
		for _, f := range o.Factors {
			p.Timing.QuietSeconds += 2 * longest(f)
		}
		p.Timing.QuietSeconds += 3 * o.onLink(p)
		p.Timing.QuietSeconds = min(p.Timing.QuietSeconds, sweepDrain.Seconds())
	}
	for i := range p.Flows {
		p.Flows[i].Packets = counted
	}
	for _, f := range o.Factors {
		if f.Knob == "receivers" {
			for _, v := range f.Levels {
				p.Receivers = max(p.Receivers, int(v.Number))
			}
		}
		if len(f.Levels) > 1 {
			p.Factors = append(p.Factors, f)
		} else if err := p.Set(f.Knob, f.Levels[0]); err != nil {
			return p, translate(p, err)
		}
	}
	return p, translate(p, p.Check())
}

// onLink is how long the largest datagram takes on the slowest link, in seconds, its
// headers by and large: before the first has come nobody knows how far apart they are.
func (o Options) onLink(p model.Plan) float64 {
	bytes, rate := 0.0, math.Inf(1)
	for _, f := range p.Flows {
		bytes = max(bytes, float64(f.PayloadBytes))
	}
	for _, n := range slices.Concat(o.Payloads, o.Frames) {
		bytes = max(bytes, float64(n))
	}
	if o.Whole {
		bytes = max(bytes, wholeMost)
	}
	for _, l := range p.Links {
		if l.Rate > 0 {
			rate = min(rate, float64(l.Rate))
		}
	}
	for _, f := range o.Factors {
		if _, setting, _ := model.SplitLinkKnob(f.Knob); setting == "rate_bps" {
			for _, v := range f.Levels {
				if v.Number > 0 {
					rate = min(rate, v.Number)
				}
			}
		}
	}
	return 8 * (1.05*bytes + 100) / rate
}

// wholeMost is what a path MTU is at most where nobody said more: Ethernet's.
const wholeMost = 1500

// longest is how long a factor may keep a packet on a link, in seconds.
func longest(f model.Factor) (seconds float64) {
	_, setting, _ := model.SplitLinkKnob(f.Knob)
	for _, v := range f.Levels {
		switch setting {
		case "delay_s":
			seconds = max(seconds, v.Number)
		case "jitter_s":
			seconds = max(seconds, 4*v.Number)
		}
	}
	return seconds
}

// Quick takes a tenth of the usual packets, unless their number or the time is given:
// settings that differ by less than a few percent stay tied.
func (o Options) Quick() Options {
	if o.Packets == 0 && o.Time == 0 {
		o.Packets = sweepPackets / 10
	}
	return o
}

// SweepTime says how long a sweep's packets take to send at least, all trials
// together, and how many trials there are.
func SweepTime(p model.Plan) (trials int, least time.Duration) {
	levels := 1
	for _, f := range p.Factors {
		levels *= len(f.Levels)
	}
	trials = levels * max(p.Design.Repeats, 1)
	for i := range levels {
		cell, rest := model.Cell{}, i
		for _, f := range p.Factors {
			cell[f.Knob] = f.Levels[rest%len(f.Levels)]
			rest /= len(f.Levels)
		}
		t, err := p.Trial(cell, 0)
		if err != nil {
			continue
		}
		for _, f := range t.Flows {
			if _, paced := f.Rate.PPS(f.PayloadBytes); paced || f.Packets == 0 {
				least += t.Timing.Measure() * time.Duration(max(p.Design.Repeats, 1))
				break
			}
		}
	}
	return trials, least
}
