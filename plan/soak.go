package plan

import (
	"cmp"
	"slices"
	"strings"

	"pelt/model"
)

// Soak is a long run at one rate. By default it takes a small part of any path, 1.6 Mbit/s; in a lab that of a field
// report.
var Soak = Preset{
	Command: "soak",
	Knobs: "payload frame rate interval profile direction streams time warmup max-loss family dev dscp df drops " +
		"burst source-port send-buffer receive-buffer patience dut at engine seed",
	Defaults: map[string]string{"payload": "200", "rate": "1kpps", "time": "10m", "warmup": "1s",
		"patience": "1m", "repeats": "1",
		"engine": "udp"}, // what programs use, and what counts each packet's way through the kernel
	InLab:   map[string]string{"payload": "512", "rate": "40kpps"},
	Factors: "payload! frame!",
	Between: true,
	build:   (*draft).buildSoak,
}

func (d *draft) buildSoak() error {
	switch {
	case len(d.values["payload"])+len(d.values["frame"]) > 1:
		return flagError("payload, --frame", "a soak has one size; pelt curve has many")
	case len(d.values["direction"]) > 1:
		return flagError("direction", "want up, down or both: a soak has one trial")
	case d.word("rate") == "max":
		return flagError("rate", "a soak has one that its sender can keep, as 1kpps; pelt curve finds the highest")
	}
	if err := d.start(); err != nil {
		return err
	}
	p := &d.plan
	if slices.Contains([]string{"lab:switch", "lab:router", "lab:nat", "lab:fast"}, p.Target) {
		p.DUT = model.LabDUT
	}
	inLab := strings.HasPrefix(p.Target, "lab:")
	for _, text := range d.words("at") {
		c, err := model.ParseTimedChange(text)
		switch {
		case !inLab:
			return flagError("at", "pelt can change only a lab; want lab:NAME")
		case err != nil:
			return flagError("at", "%v", err)
		}
		p.Timed = append(p.Timed, c)
	}
	slices.SortStableFunc(p.Timed, func(a, b model.TimedChange) int { return cmp.Compare(a.AtSeconds, b.AtSeconds) })
	return d.fill("at")
}
