package words

import (
	"fmt"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/rows"
	"pelt/unit"
)

// Pacing says how a flow with a profile was sent beside how it was asked; "" for
// one without.
func Pacing(r rows.Row) string {
	p := r.Pacing
	if p == nil {
		return ""
	}
	parts := []string{Shorten(Plain(p.Profile), 60)}
	if a, s := p.AskedGap, p.SentGap; a != nil && s != nil {
		parts[0] += fmt.Sprintf(": gaps asked %s (median) and %s (99 %%), sent %s and %s",
			unit.FormatNanos(a.P50), unit.FormatNanos(a.P99), unit.FormatNanos(s.P50), unit.FormatNanos(s.P99))
	}
	switch d := p.Distance; {
	case d == nil:
	case *d < 0.0005:
		parts = append(parts, "all within a quarter")
	default:
		parts = append(parts, unit.FormatRatio(*d)+" or more of them off by more than a quarter")
	}
	if l := p.Late; l != nil {
		parts = append(parts, fmt.Sprintf("left %s (median) and %s (99 %%) late", unit.FormatNanos(l.P50), unit.FormatNanos(l.P99)))
	}
	if p.Rounds > 0 {
		parts = append(parts, "the trace "+strconv.FormatFloat(p.Rounds, 'g', 3, 64)+" times over")
	}
	return strings.Join(parts, "; ")
}

// profileWords says a flow's profile and what it makes of its rate, as a
// continuation of "UDP up at 40kpps".
func profileWords(f model.Flow) string {
	p := f.Profile
	if p == nil {
		return ""
	}
	mean, _ := f.MeanPPS()
	text := ", " + Shorten(Plain(p.Words(f.Rate)), 60)
	switch p.Kind {
	case model.OnOff:
		text = " while on" + text + ": " + unit.FormatPPS(mean) + " in the mean"
	case model.Ramp:
		text = " at the end" + text + ": " + unit.FormatPPS(mean) + " in the mean"
	}
	return text
}
