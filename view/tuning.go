package view

import (
	"slices"

	"pelt/finding"
	"pelt/model"
)

func Advice(d *model.Document, list []model.Advised) Page {
	found := finding.Advise(d, list)
	p := Page{Language: d.Language, Title: "Settings that may help", Subject: subject(d)}
	p.say(found)
	t := listing("Settings", "host Host", "setting Setting", "present Now", "value Set to", "lost_packets Lost there",
		"why Why", "note Note")
	undo := listing("To undo", "setting Setting", "command Command")
	for _, f := range found {
		f = f.In(d.Language)
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
	return p.translated()
}
