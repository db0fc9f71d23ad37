package report

import (
	"fmt"
	"math"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/seconds"
	"pelt/unit"
)

// soakKeys are the numbers that a soak's reader looks for first: how much was sent, how
// much was lost, and how bad the worst second was. None of another run.
func soakKeys(doc model.Document) []keyFigure {
	r, ok := seconds.Chosen(doc)
	if !seconds.Is(doc) || !ok {
		return nil
	}
	t := seconds.Of(r)
	var keys []keyFigure
	for _, f := range r.Flows {
		prefix := ""
		if len(r.Flows) > 1 {
			prefix = words.Name(f.Name) + ": "
		}
		keys = append(keys, keyFigure{prefix + "Sent", unit.FormatCount(f.Attempted), fmt.Sprintf("packets of %s in %s", unit.FormatSize(f.PayloadBytes), words.Seconds(math.Round(f.DurationS)))})
		lost := keyFigure{prefix + "Lost", unit.FormatCount(f.Lost), "packets"}
		if f.Lost > 0 && f.Attempted > 0 {
			lost.Note = unit.FormatRatio(float64(f.Lost)/float64(f.Attempted)) + " of them"
		}
		keys = append(keys, lost)
		for _, of := range t.Flows {
			if of.Name == f.Name && len(of.Lost.Values) > 0 && f.Lost > 0 {
				keys = append(keys, worstKeys(of, prefix, t.EndS)...)
			}
		}
	}
	return keys
}

// worstKeys tell when a flow lost most.
func worstKeys(f seconds.Flow, prefix string, end float64) []keyFigure {
	lossy, known, at := 0, 0, -1
	for i, v := range f.Lost.Values {
		if math.IsNaN(v) {
			continue
		}
		known++
		if v > 0 {
			lossy++
			if at < 0 || v > f.Lost.Values[at] {
				at = i
			}
		}
	}
	if at < 0 {
		return nil
	}
	when := f.Lost.StartSeconds + f.Lost.StepSeconds*float64(at)
	return []keyFigure{
		{prefix + "Worst second", wholePackets(f.Lost.Values[at]), "packets lost, at " + moment(when, end)},
		{prefix + "Seconds with loss", unit.FormatCount(uint64(lossy)), "of " + unit.FormatCount(uint64(known))},
	}
}
