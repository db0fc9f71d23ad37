package report

import (
	"fmt"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// Line is one finished trial on one line, for progress: "64 B: 870 kpps sent,
// 402 kpps received, 54 % lost, 206 Mbit/s".
func Line(r model.Result) string {
	text := words.Cell(r.Cell)
	if r.Repeat > 0 {
		text += fmt.Sprintf(" (trial %d)", r.Repeat+1)
	}
	var flows []string
	for _, f := range r.Flows {
		if !rows.Measured(f) {
			continue
		}
		text := flowLine(f)
		if missed := words.Missed(rows.Row{Planned: f.Planned, Attempted: f.Attempted}); missed != "" && r.State == model.Valid && f.TCP == nil {
			text += ", " + missed
		}
		if len(r.Flows) > 1 {
			text = words.Name(f.Name) + " " + text
		}
		flows = append(flows, text)
	}
	if len(flows) == 0 && (len(r.Flows) > 0 || r.State != model.Valid) {
		flows = []string{"nothing measured"}
	}
	if len(flows) > 0 {
		text += ": " + strings.Join(flows, "; ")
	}
	if w := r.Router; w != nil && w.CPU != nil {
		text += fmt.Sprintf("; router %s idle, %s sirq", wholePercent(w.CPU.Idle), wholePercent(w.CPU.Softirq))
	}
	if r.State != model.Valid {
		text += " (" + strings.TrimSuffix(words.Plain(string(r.State))+": "+shortWhy(r), ": ") + ")"
	}
	return text
}

// longestWhy is how much of a reason fits on a line of progress; the whole
// stands in the report.
const longestWhy = 90

func shortWhy(r model.Result) string {
	var missed []string
	for _, f := range r.Flows {
		if f.Planned <= f.Attempted || f.Attempted == 0 || f.Protocol == model.TCP {
			continue
		}
		text := fmt.Sprintf("missed %s of its schedule", unit.FormatRatio(float64(f.Planned-f.Attempted)/float64(f.Planned)))
		if len(r.Flows) > 1 {
			text = words.Name(f.Name) + " " + text
		}
		missed = append(missed, text)
	}
	if r.State == model.Invalid && len(missed) > 0 && strings.Contains(r.Why, "schedule") {
		return strings.Join(missed, ", ")
	}
	why, _, _ := strings.Cut(words.Plain(r.Why), "; ")
	if i := strings.Index(why, "message too long"); i >= 0 {
		return "message too long: it does not fit into one packet of the path"
	}
	return words.Shorten(why, longestWhy)
}

func flowLine(f model.FlowResult) string {
	if f.Connections != nil {
		return connectionsLine(f)
	}
	if f.TCP != nil && f.TCP.Completion != nil {
		c, text := f.TCP.Completion, "done in "
		if !c.Done {
			text = "not done in "
		}
		if c.By == model.ByExit && f.GoodputBPS == 0 { // nobody said how much it was
			return text + unit.FormatNanos(c.Seconds*1e9)
		}
		return fmt.Sprintf("%s%s, %s, %s resent", text, unit.FormatNanos(c.Seconds*1e9), unit.FormatBits(f.GoodputBPS), unit.FormatCount(f.TCP.Retransmits))
	}
	if f.TCP != nil {
		writes := "–"
		if f.DurationS > 0 {
			writes = words.PerSecond(float64(f.TCP.Writes) / f.DurationS)
		}
		return fmt.Sprintf("%s writes, %s, %s resent", writes, unit.FormatBits(f.GoodputBPS), unit.FormatCount(f.TCP.Retransmits))
	}
	loss := "nothing lost"
	if f.Lost > 0 {
		loss = unit.FormatRatio(f.LossRatio) + " lost"
	}
	return fmt.Sprintf("%s sent, %s received, %s, %s", unit.FormatPPS(f.SendPPS), unit.FormatPPS(f.ReceivePPS), loss, unit.FormatBits(f.GoodputBPS))
}

// Way is a path's nodes in travel order, as reports say it; of very many, the
// first and the last.
func Way(nodes []string) string { return words.Way(nodes) }
