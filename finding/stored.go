package finding

import (
	"math"
	"slices"

	"pelt/model"
)

var levelNames = []string{"answer", "fact", "doubt", "next", "setup"}

func (f Finding) Stored(words bool) model.Finding {
	out := model.Finding{Code: f.Code, Level: levelNames[f.Level], Numbers: []model.FindingNumber{}, Words: f.Words}
	for _, n := range f.Numbers {
		if !math.IsNaN(n.Value) && !math.IsInf(n.Value, 0) { // JSON has no such number
			out.Numbers = append(out.Numbers, model.FindingNumber(n))
		}
	}
	if words {
		out.Text, out.Command = f.Text(), f.Command()
	}
	return out
}

func Stored(found []Finding, words bool) []model.Finding {
	out := []model.Finding{}
	for _, f := range found {
		out = append(out, f.Stored(words))
	}
	return out
}

// FromStored is a finding that a file kept, without its groups.
func FromStored(m model.Finding) Finding {
	f := Finding{Code: m.Code, Level: Level(max(0, slices.Index(levelNames, m.Level))), Words: m.Words}
	for _, n := range m.Numbers {
		f.Numbers = append(f.Numbers, Number(n))
	}
	return f
}
