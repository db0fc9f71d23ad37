package view

import (
	"fmt"
	"strings"

	"pelt/finding"
	"pelt/record/contents"
)

// Record shows what a record of packets holds, and whether it is whole.
func Record(d contents.Document) Page {
	h, verdict := d.Header, finding.Finding{Code: "record.cut"}
	if d.Whole {
		verdict.Code = "record.whole"
	}
	verdict.Words = map[string]string{"run": h.Run, "cut": d.Cut}
	verdict.Numbers = []finding.Number{{Metric: "file_bytes", Value: float64(d.Bytes)}}
	p := Page{Title: "Record", Subject: strings.Join([]string{h.Target,
		h.Started.UTC().Format("2 January 2006, 15:04 UTC"), "pelt " + h.Tool.Version, h.Format}, " · "),
		Sections: shown(recordFlows(d), recordLosses(d))}
	p.answer(verdict.Parts())
	return p
}

// ofFlows lists what each flow of each trial of a record has; add makes a row of what follows trial and flow.
func ofFlows(d contents.Document, title string, columns []string,
	row func(t contents.Trial, i int, add func(...any))) Table {
	out := listing(title, append([]string{"trial Trial", "flow Flow"}, columns...)...)
	out.Columns[0].Key, out.Columns[1].Key = true, true
	for _, t := range d.Trials {
		for i, g := range t.Of {
			row(t, i, func(cells ...any) { out.add(append([]any{fmt.Sprint(t.Trial.Trial), g.Name}, cells...)...) })
		}
	}
	return out
}

func recordFlows(d contents.Document) Table {
	return ofFlows(d, "Flows", []string{"setting Setting", "payload_bytes Payload",
		"recorded_packets Recorded", "left_out_packets Left out", "packet_index Bytes each", "lost_packets Lost",
		"time_s Time", "state State"}, func(t contents.Trial, i int, add func(...any)) {
		g, state := t.Of[i], string(t.State)
		switch {
		case t.NotKept:
			state = "not kept"
		case t.State == "":
			state = "cut"
		}
		lost := Cell{Value: float64(g.Lost)}
		if !g.AttemptedKnown { // the record has no packet behind the last that came
			lost.Note = "at least"
		}
		add(fmt.Sprintf("%s #%d", t.Cell.Key(), t.Repeat+1), t.Flows[i].PayloadBytes, g.Packets,
			g.Dropped, float64(g.Bytes)/float64(g.Packets), lost, g.DurationS, state)
	})
}

func recordLosses(d contents.Document) Table {
	return ofFlows(d, "The first losses", []string{"stream_count Stream", "from From sequence", "lost_packets Packets"},
		func(t contents.Trial, i int, add func(...any)) {
			for _, l := range t.Of[i].Losses {
				add(int(l.Stream), fmt.Sprint(l.From), l.Count)
			}
		})
}
