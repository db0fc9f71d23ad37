package view

import (
	"fmt"
	"strings"

	"pelt/finding"
	"pelt/record/contents"
	"pelt/words"
)

// Record shows what a record of packets holds, and whether it is whole.
func Record(in words.Language, d contents.Document) Page {
	h, verdict := d.Header, finding.Finding{Code: "record.cut", Language: in}
	if d.Whole {
		verdict.Code = "record.whole"
	}
	verdict.Words = map[string]string{"run": h.Run}
	if d.Fault != nil {
		verdict.Words["cut"] = in.Error(d.Fault)
	}
	verdict.Numbers = []finding.Number{{Metric: "file_bytes", Value: float64(d.Bytes)}}
	started := in.Time("2 January 2006, 15:04 UTC", h.Started)
	p := Page{Language: in, Title: "Record",
		Subject:  strings.Join([]string{h.Target, started, "pelt " + h.Tool.Version, h.Format}, " · "),
		Sections: recordTables(d)}
	p.answer(verdict.Parts())
	return p.translated()
}

// recordTables list what each flow of each trial of a record has, and its first losses.
func recordTables(d contents.Document) []Section {
	flows := listing("Flows", "*trial Trial", "*flow Flow", "setting Setting", "payload_bytes Payload",
		"recorded_packets Recorded", "left_out_packets Omitted", "packet_index Bytes each", "lost_packets Losses",
		"time_s Time", "state State")
	losses := listing("The first losses", "*trial Trial", "*flow Flow", "stream_count Stream", "from From sequence",
		"lost_packets Packets")
	for _, t := range d.Trials {
		trial, state := fmt.Sprint(t.Trial.Trial), string(t.State)
		switch {
		case t.NotKept:
			state = "not kept"
		case t.State == "":
			state = "cut"
		}
		for i, g := range t.Of {
			lost := Cell{Value: float64(g.Lost)}
			if !g.AttemptedKnown { // the record has no packet behind the last that came
				lost.Note = "at least"
			}
			flows.add(trial, g.Name, fmt.Sprintf("%s #%d", t.Cell.Key(), t.Repeat+1), t.Flows[i].PayloadBytes,
				g.Packets, g.Dropped, float64(g.Bytes)/float64(g.Packets), lost, g.DurationS, state)
			for _, l := range g.Losses {
				losses.add(trial, g.Name, l.Stream, fmt.Sprint(l.From), l.Count)
			}
		}
	}
	return shown(flows, losses)
}
