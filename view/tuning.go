package view

import (
	"math"
	"slices"

	"pelt/finding"
	"pelt/model"
)

func Advice(d *model.Document, list []model.Advised) Page {
	found := finding.Advise(d, list)
	p := Page{Title: "Settings that would help", Subject: subject(d)}
	p.say(found)
	t := listing("Settings", "host Host", "setting Setting", "present Now", "value Set to", "lost_packets Lost there",
		"why Why", "note Note")
	undo := listing("To undo", "setting Setting", "command Command")
	for _, f := range found {
		if f.Code != "advice.set" && f.Code != "advice.socket" {
			continue
		}
		lost, _ := f.Number("lost_packets", "")
		t.add(f.W("host"), f.W("knob"), f.W("present"), f.W("value"), lost, f.W("why"), f.W("note"))
		i := slices.IndexFunc(list, func(a model.Advised) bool {
			return a.Command == f.Words["command"] && a.Undo != ""
		})
		if f.Code == "advice.set" && i >= 0 {
			undo.add(list[i].Knob, list[i].Undo)
		}
	}
	p.Sections = shown(t, undo)
	return p
}

func TuneTrial(t model.TuneTrial) Page {
	p := Page{Title: "Tuning", Subject: t.Target}
	p.say(finding.TuneTrial(t))
	steps := listing("Settings that were tried", "setting Setting", "outcome Outcome",
		"without_loss_ratio Lost without",
		"with_loss_ratio Lost with", "present From", "value To", "host Host", "run Run")
	var why []Section
	for _, s := range t.Steps {
		outcome := Cell{Text: "taken back", Tone: Muted}
		switch {
		case s.Kept:
			outcome = Cell{Text: "kept", Tone: Good}
		case s.Untold:
			outcome.Text = "not judged"
		}
		steps.add(s.Knob, outcome, lossBy(s.Without), lossBy(s.With), s.Present, s.Value, s.Host, s.Run)
		why = append(why, Text{s.Knob + ": " + s.Text + " (" + s.Why + ")"})
	}
	p.Sections = append(shown(steps), why...)
	if len(t.Limits) > 0 {
		p.Sections = append(p.Sections, Heading{"What still loses packets"})
	}
	for _, l := range t.Limits {
		p.Sections = append(p.Sections, Text{l})
	}
	return p
}

func lossBy(l model.TuneLoss) float64 {
	if l.Trials == 0 {
		return math.NaN()
	}
	return l.Ratio
}
