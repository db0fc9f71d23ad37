package report

import (
	"fmt"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
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
		text := flowLine(f)
		if len(r.Flows) > 1 {
			text = words.Name(f.Name) + " " + text
		}
		flows = append(flows, text)
	}
	if len(flows) > 0 {
		text += ": " + strings.Join(flows, "; ")
	}
	if r.State != model.Valid {
		text += " (" + strings.TrimSuffix(words.Plain(string(r.State))+": "+words.Plain(r.Why), ": ") + ")"
	}
	return text
}

func flowLine(f model.FlowResult) string {
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
