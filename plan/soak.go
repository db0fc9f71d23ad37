package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pelt/model"
	"pelt/unit"
)

// The defaults of a soak are those of a field report: 40 000 packets of 512 B a
// second; its two hours are for --time.
const (
	soakPPS     = 40_000
	soakPayload = 512
	soakTime    = 10 * time.Minute
	soakWarmup  = time.Second
)

// Soak makes the plan of a long run at one rate. An error names the option that is
// wrong, as the command line spells it.
func Soak(o Options) (model.Plan, error) {
	switch {
	case o.Protocol != "" && o.Protocol != model.UDP:
		return model.Plan{}, bad("--proto", "a soak is of UDP")
	case o.Rate.IsMax() && o.ProfileRate.IsMax():
		o.Rate = unit.PacketRate(soakPPS)
	}
	if len(o.Payloads) == 0 && len(o.Frames) == 0 && !o.Whole {
		o.Payloads = []int{soakPayload}
	}
	if len(o.Payloads)+len(o.Frames) > 1 || o.Whole && len(o.Payloads) > 0 {
		return model.Plan{}, bad("--payload, --frame", "a soak has one size; pelt curve has many")
	}
	if strings.Contains(o.Direction, ",") {
		return model.Plan{}, bad("--direction", "want up, down or both: a soak has one trial")
	}
	o.Repeats, o.Time = 1, orDefault(o.Time, soakTime)
	if o.Warmup == nil {
		d := soakWarmup
		o.Warmup = &d
	}
	p, err := Curve(o)
	if err != nil {
		return p, err
	}
	p.Command, p.Near, p.DUT = "soak", o.Near, o.DUT
	if p.DUT == "" && slices.Contains([]string{"lab:switch", "lab:router", "lab:nat", "lab:fast"}, p.Target) {
		p.DUT = model.LabDUT
	}
	p.Timed = slices.SortedStableFunc(slices.Values(o.Timed), func(a, b model.TimedChange) int { return cmp.Compare(a.AtSeconds, b.AtSeconds) })
	p.Timing.PatienceSeconds = model.MaxPatience.Seconds()
	if o.Patience != nil {
		p.Timing.PatienceSeconds = o.Patience.Seconds()
	}
	return p, translate(p, p.Check())
}
