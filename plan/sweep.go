package plan

import (
	"math"
	"slices"
	"strings"
	"time"

	"pelt/model"
	"pelt/unit"
)

// SweepOptions are what a user may say about a sweep: the settings of a curve,
// and lists of levels for what is to vary. A list of one level is a setting.
type SweepOptions struct {
	CurveOptions
	Intervals      []time.Duration // between packets of a flow; 0 is as fast as the sender can. In place of Rates
	Rates          []unit.Rate     // packets per second, or full rate
	StreamCounts   []int
	SendBuffers    []int // bytes
	ReceiveBuffers []int
	Receivers      []int          // of a lab:star: a list is a factor, and the star has the most of them
	Profiles       []string       // in the words of model.ParseProfile, or constant: a factor; of one, CurveOptions.Profile
	Links          []model.Factor // settings of a lab's links that vary, see LinkFactor
	Held           bool           // the lab runs already, so the plan does not say its links' delays
	Packets        uint64         // of each trial and receiver; 0: as many as fit in Time
	SideBySide     int            // trials at a time, see model.Design; 0 is 1
}

// A sweep's trials are many: without a word of the user they are of so many
// packets, three of each cell.
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
func Sweep(o SweepOptions) (model.Plan, error) {
	if len(o.Intervals) > 0 && len(o.Rates) > 0 {
		return model.Plan{}, bad("--interval", "stands beside --rate; give one of them")
	}
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
	if o.Profile != nil && o.Profile.Kind != model.Ramp || len(o.Profiles) > 0 { // which needs a rate, also where that varies
		switch {
		case len(o.Rates) > 0:
			o.Rate = o.Rates[0]
		case len(o.Intervals) > 0:
			o.Rate = unit.IntervalRate(o.Intervals[0])
		}
	} else if o.Profile != nil && len(o.Rates)+len(o.Intervals) > 0 {
		return model.Plan{}, bad("--profile", "a ramp says its rates itself; want no --rate and no --interval")
	}
	p, err := Curve(o.CurveOptions)
	if err != nil {
		return p, err
	}
	p.Command = "sweep"
	if o.SideBySide > 1 {
		p.Design.SideBySide = o.SideBySide
	}
	for _, n := range o.Receivers {
		p.Receivers = max(p.Receivers, n)
	}
	p.Timing.DrainSeconds = sweepDrain.Seconds()
	if strings.HasPrefix(p.Target, "lab:") { // whose delays are known
		p.Timing.QuietSeconds = labQuiet.Seconds()
		if o.Held {
			p.Timing.QuietSeconds = heldQuiet.Seconds()
		}
		for _, l := range p.Links {
			p.Timing.QuietSeconds += 2 * (l.DelaySeconds + 4*l.JitterSeconds)
		}
		for _, f := range o.Links {
			p.Timing.QuietSeconds += 2 * longest(f)
		}
		p.Timing.QuietSeconds += 3 * o.onLink(p)
		p.Timing.QuietSeconds = min(p.Timing.QuietSeconds, sweepDrain.Seconds())
	}
	for i := range p.Flows {
		p.Flows[i].Packets = counted
	}
	if err := o.factors(&p); err != nil {
		return p, err
	}
	return p, translate(p, p.Check())
}

// factors adds what has several levels, and sets what has one.
func (o SweepOptions) factors(p *model.Plan) error {
	each := func(set func(*model.Flow)) {
		for i := range p.Flows {
			set(&p.Flows[i])
		}
	}
	numbers := func(knob string, list []int, set func(f *model.Flow, n int)) {
		if len(list) == 1 {
			each(func(f *model.Flow) { set(f, list[0]) })
		}
		if len(list) < 2 {
			return
		}
		factor := model.Factor{Knob: knob}
		for _, n := range list {
			factor.Levels = append(factor.Levels, model.Number(float64(n)))
		}
		p.Factors = append(p.Factors, factor)
	}
	if len(o.Intervals) == 1 {
		each(func(f *model.Flow) { f.Rate = unit.IntervalRate(o.Intervals[0]) })
	} else if len(o.Intervals) > 1 {
		factor := model.Factor{Knob: "interval_ns"}
		for _, d := range o.Intervals {
			factor.Levels = append(factor.Levels, model.Number(float64(d)))
		}
		p.Factors = append(p.Factors, factor)
	}
	if len(o.Rates) == 1 {
		each(func(f *model.Flow) { f.Rate = o.Rates[0] })
	} else if len(o.Rates) > 1 {
		factor := model.Factor{Knob: "rate_pps"}
		for _, r := range o.Rates {
			pps, paced := r.PPS(1)
			level := model.Number(pps)
			if !paced {
				level = model.Word("max")
			} else if r != unit.PacketRate(uint64(pps)) {
				return bad("--rate", "a list holds whole packets per second and max, not %v", r)
			}
			factor.Levels = append(factor.Levels, level)
		}
		p.Factors = append(p.Factors, factor)
	}
	if len(o.Profiles) > 0 {
		factor := model.Factor{Knob: "profile"}
		for _, text := range o.Profiles {
			factor.Levels = append(factor.Levels, model.Word(text))
		}
		p.Factors = append(p.Factors, factor)
	}
	numbers("streams", o.StreamCounts, func(f *model.Flow, n int) { f.Streams = n })
	numbers("send_buffer_bytes", o.SendBuffers, func(f *model.Flow, n int) { f.SendBuffer = n })
	numbers("receive_buffer_bytes", o.ReceiveBuffers, func(f *model.Flow, n int) { f.ReceiveBuffer = n })
	numbers("receivers", o.Receivers, func(*model.Flow, int) {}) // one is the plan's
	p.Factors = append(p.Factors, o.Links...)
	return nil
}

// onLink is how long the largest datagram takes on the slowest link, in seconds, its
// headers by and large: before the first has come nobody knows how far apart they are.
func (o SweepOptions) onLink(p model.Plan) float64 {
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
	for _, f := range o.Links {
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

// quickLeast is the shortest trial that a quick sweep makes of a longer one.
const quickLeast = 100 * time.Millisecond

// Quick cuts a sweep down to a tenth of its packets, not below 100, or of its time, not
// below 0.1 s, and two trials of each cell: what differs by less than a few percent is not told apart.
func (o SweepOptions) Quick() SweepOptions {
	if o.Packets == 0 && o.Time > 0 {
		o.Time = max(o.Time/10, min(o.Time, quickLeast))
	} else {
		n := orDefault(o.Packets, sweepPackets)
		o.Packets = max(n/10, min(n, 100))
	}
	o.Repeats = min(orDefault(o.Repeats, sweepRepeats), 2)
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
