package view

import (
	"fmt"
	"math"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/record/stats"
)

// Record shows what a record of packets holds, and whether it is whole; with figures, what the packets tell.
func Record(d stats.Document, figures bool) Page {
	h, verdict := d.Header, finding.Finding{Code: "record.cut"}
	if d.Whole {
		verdict.Code = "record.whole"
	}
	verdict.Words = map[string]string{"run": h.Run, "cut": d.Cut}
	verdict.Numbers = []finding.Number{{Metric: "file_bytes", Value: float64(d.Bytes)}}
	p := Page{Title: "Record", Verdict: verdict.Text(), Subject: strings.Join([]string{h.Target,
		h.Started.UTC().Format("2 January 2006, 15:04 UTC"), "pelt " + h.Tool.Version, h.Format}, " · ")}
	if figures {
		p.Sections = shown(recordCounts(d), recordTimes(d), recordRuns(d))
	} else {
		p.Sections = shown(recordFlows(d), recordLosses(d))
	}
	return p
}

// ofFlows lists what each flow of each trial of a record has; add makes a row of what follows trial and flow.
func ofFlows(d stats.Document, title string, columns []string, row func(t stats.Trial, i int, add func(...any))) Table {
	out := listing(title, append([]string{"trial Trial", "flow Flow"}, columns...)...)
	out.Columns[0].Key, out.Columns[1].Key = true, true
	for _, t := range d.Trials {
		for i, g := range t.Of {
			row(t, i, func(cells ...any) { out.add(append([]any{fmt.Sprint(t.Trial.Trial), g.Name}, cells...)...) })
		}
	}
	return out
}

func recordFlows(d stats.Document) Table {
	return ofFlows(d, "Flows", []string{"setting Setting", "streams_count Streams", "payload_bytes Payload",
		"recorded_packets Recorded", "left_out_packets Left out", "packet_index Bytes each", "time_s Time",
		"state State"}, func(t stats.Trial, i int, add func(...any)) {
		g, state := t.Of[i], string(t.State)
		switch {
		case t.Void != "":
			state = "not kept"
		case t.State == "":
			state = "cut"
		}
		add(fmt.Sprintf("%s #%d", t.Cell.Key(), t.Repeat+1), t.Flows[i].Streams, t.Flows[i].PayloadBytes, g.Packets,
			g.Dropped, float64(g.Bytes)/float64(g.Packets), g.DurationS, state)
	})
}

func recordLosses(d stats.Document) Table {
	return ofFlows(d, "The first losses", []string{"stream_count Stream", "from From sequence", "lost_packets Packets"},
		func(t stats.Trial, i int, add func(...any)) {
			for _, l := range t.Of[i].Losses {
				add(int(l.Stream), fmt.Sprint(l.From), l.Count)
			}
		})
}

func recordCounts(d stats.Document) Table {
	return ofFlows(d, "Packets", []string{"attempted_packets Sent", "received_packets Received", "lost_packets Lost",
		"loss_ratio Loss", "runs_count In runs", "duplicate_packets Duplicates", "late_packets Too late",
		"reordered_packets Out of order", "receive_pps Rate", "jitter_ns Jitter", "clocks Clocks",
		"own The trial's own figures"}, func(t stats.Trial, i int, add func(...any)) {
		g, clocks, own := t.Of[i], "two", "the same"
		sent, lost := Cell{Value: float64(g.Attempted)}, Cell{Value: float64(g.Lost)}
		if !g.AttemptedKnown { // the record has no packet behind the last that came
			sent.Note, lost.Note = "at least", "at least"
		}
		runs := Cell{Value: float64(g.LossRuns)}
		if g.Unlisted > 0 {
			runs.Note = fmt.Sprintf("and others, of %d packets", g.Unlisted)
		}
		if t.Flows[i].OneClock {
			clocks = "one"
		}
		switch {
		case g.Own == nil:
			own = "missing: it was cut"
		case len(g.Differs) > 0:
			own = "differ in " + strings.Join(g.Differs, ", ")
		}
		add(sent, g.Received, lost, g.LossRatio, runs, g.Duplicates, g.Late, g.Reordered, g.ReceivePPS, g.JitterNS,
			clocks, own)
	})
}

func recordTimes(d stats.Document) Table {
	return ofFlows(d, "Times", []string{"time Of", "min_ns Least", "p50_ns Median", "p90_ns 90 %", "p99_ns 99 %",
		"p999_ns 99.9 %", "max_ns Most", "out_count Below 0 or above 60 s"},
		func(t stats.Trial, i int, add func(...any)) {
			g := t.Of[i]
			for n, p := range []*model.Percentiles{g.Delay, g.SendGap, g.ReceiveGap} {
				if p != nil && p.Count+p.Out > 0 {
					out := math.NaN()
					if p.Out > 0 {
						out = float64(p.Out)
					}
					add([]string{"delay", "send gap", "receive gap"}[n], p.Min, p.P50, p.P90,
						p.P99, p.P999, p.Max, out)
				}
			}
		})
}

func recordRuns(d stats.Document) Table {
	return ofFlows(d, "Runs of lost packets", []string{"length Packets in a row", "runs_count Runs"},
		func(t stats.Trial, i int, add func(...any)) {
			for _, r := range t.Of[i].Runs {
				length := fmt.Sprint(r.UpTo)
				if r.UpTo > 2 {
					length = fmt.Sprintf("%d to %d", r.UpTo/2+1, r.UpTo)
				}
				add(length, r.Runs)
			}
		})
}
