package plan

import (
	"fmt"
	"slices"
	"strings"

	"pelt/model"
)

// A comparison of congestion controls repeats much: losses come by chance, and few trials tell little.
const controlRepeats = 10

// bulkPayload is the length of the writes of a transfer.
const bulkPayload = "131072"

// Control is a comparison of congestion controls.
var Control = Preset{
	Command: "cc",
	Knobs:   "control loss bytes http time warmup repeats streams stagger direction family dev dscp mss window seed",
	Defaults: map[string]string{"control": "cubic,bbr", "repeats": fmt.Sprint(controlRepeats), "proto": "tcp",
		"bulk": "true", "payload": bulkPayload, "warmup": "0", "time": "10s", "streams": ""},
	Factors: "loss! link control!",
	build:   (*draft).buildControl,
}

func (d *draft) buildControl() error {
	inLab := strings.HasPrefix(d.Target, "lab:")
	ends := d.given("bytes")
	switch {
	case slices.Contains(d.words("control"), ""):
		return flagError("control", "want names, as cubic,bbr,reno, or cubic+bbr for two that compete")
	case d.given("loss") && !inLab:
		return flagError("loss", "only a lab has links that lose on purpose; want lab:NAME")
	case d.given("loss") && slices.ContainsFunc(d.links,
		func(f model.Factor) bool { return f.Knob == "link.loss_ratio" }):
		return flagError("loss", "cannot stand beside --link loss; give one of them")
	case d.given("http") && !d.given("bytes"):
		return flagError("http", "an answer has a length; want --bytes")
	case len(d.values["direction"]) > 1 || d.word("direction") == "both":
		return flagError("direction", "want up or down: one transfer at a time")
	case ends && d.number("warmup") > 0:
		return flagError("warmup", "a transfer counts from its first byte; leave it out")
	}
	if err := d.controlStreams(); err != nil {
		return err
	}
	for _, l := range d.plan.Links {
		if l.Seed != 0 {
			return flagError("link", "seed: --seed sets it, alike for all trials of a repeat")
		}
	}
	if ends {
		d.setDefault("time", "2m")
	}
	if err := d.start(); err != nil {
		return err
	}
	d.plan.Timing.DrainSeconds = 1
	d.plan.Design.Paired, d.plan.Design.Redo = inLab, 2
	if err := d.fill(); err != nil {
		return err
	}
	for i := range d.plan.Flows {
		d.plan.Flows[i].InfoSeconds = 0.05
	}
	return nil
}

// controlStreams makes as many streams as controls compete.
func (d *draft) controlStreams() error {
	most := 1
	for _, name := range d.words("control") {
		most = max(most, strings.Count(name, model.MixSeparator)+1)
	}
	d.setDefault("streams", fmt.Sprint(most))
	streams := int(d.number("streams"))
	switch {
	case streams < most:
		return flagError("streams", "%d controls need at least as many streams, not %d", most, streams)
	case d.number("stagger") > 0 && streams < 2:
		return flagError("stagger", "is between streams, and there is one; want --streams or a mix as cubic+bbr")
	}
	return nil
}
