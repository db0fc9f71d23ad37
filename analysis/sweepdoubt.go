package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// sweepDoubts are the doubts about the figures, one line for all cells that give rise to it.
func sweepDoubts(all []spot) []string {
	share := func(get func(model.FlowResult) uint64) func(spot) float64 {
		return func(s spot) float64 {
			var n float64
			for _, t := range s.point().trials {
				n += float64(get(t.flow))
			}
			return n / max(s.attempted-s.lost, 1)
		}
	}
	warnings := []string{}
	for _, d := range []struct {
		text string
		of   func(spot) float64
		most float64
	}{
		{"repeats differ much in %s; something else was going on on the path or the hosts", spot.spread, doubtSpread},
		{"packets arrived twice in %s", share(func(f model.FlowResult) uint64 { return f.Duplicates }), doubtDuplicate},
		{"packets arrived out of order in %s; several ways or queues lie on the path", share(func(f model.FlowResult) uint64 { return f.Reordered }), doubtReordered},
	} {
		var count int
		var worst spot
		top := d.most
		for _, s := range all {
			x := d.of(s)
			if x > d.most {
				count++
			}
			if x > top {
				top, worst = x, s
			}
		}
		if count > 0 {
			where := fmt.Sprintf("%d of %s, most with %s (%s)", count, number(len(all), "setting", "settings"), worst.words(), percent(top))
			warnings = append(warnings, fmt.Sprintf(d.text, where))
		}
	}
	return warnings
}

// spread is how far the repeats lie apart, as a share of their mean.
func (s spot) spread() float64 {
	if s.speed == 0 || len(s.trials) < 2 {
		return 0
	}
	return (slices.Max(s.speeds()) - slices.Min(s.speeds())) / s.speed
}

// reason is why trials did not count, of all that differ in numbers only.
type reason struct {
	example string
	trials  int
}

// invalidCells tells how many trials and cells did not count, and why.
func (a *analyst) invalidCells() {
	var invalid, finished int
	reasons := map[string]*reason{}
	cells := map[string]model.Cell{}
	for _, r := range a.doc.Results {
		if r.State == model.Aborted {
			continue
		}
		finished++
		if r.State != model.Invalid || tooBig(r) {
			continue
		}
		invalid++
		cells[r.Cell.Key()] = r.Cell
		key := wordsOnly(r.Why)
		one := reasons[key]
		if one == nil {
			one = &reason{example: r.Why}
			reasons[key] = one
		}
		one.trials++
		one.example = min(one.example, r.Why)
	}
	if invalid == 0 {
		return
	}
	for _, r := range a.doc.Results {
		if r.State == model.Valid {
			delete(cells, r.Cell.Key())
		}
	}
	values := map[string]float64{"invalid_trials": float64(invalid), "trials": float64(finished), "invalid_cells": float64(len(cells))}
	text := fmt.Sprintf("%d of %s left out as invalid", invalid, number(finished, "trial is", "trials are"))
	if len(cells) > 0 {
		text += fmt.Sprintf("; %s no valid one", number(len(cells), "setting has", "settings have"))
	}
	order := slices.SortedFunc(maps.Keys(reasons), func(x, y string) int {
		return cmp.Or(cmp.Compare(reasons[y].trials, reasons[x].trials), strings.Compare(x, y))
	})
	var why []string
	for _, key := range order[:min(len(order), 3)] {
		one := reasons[key]
		switch {
		case one.example == "":
			why = append(why, fmt.Sprintf("%d without a reason", one.trials))
		case one.trials == 1:
			why = append(why, "1 because of "+one.example)
		default:
			why = append(why, fmt.Sprintf("%d as %s", one.trials, one.example))
		}
	}
	if rest := len(order) - 3; rest > 0 {
		why = append(why, number(rest, "other reason", "other reasons"))
	}
	var gone []model.Cell
	for _, key := range slices.Sorted(maps.Keys(cells)) {
		gone = append(gone, cells[key])
	}
	slices.SortStableFunc(gone, func(x, y model.Cell) int { return compareCells(a.doc.Plan, x, y) })
	a.tell(KindInvalid, gone, values, "%s: %s.", text, strings.Join(why, "; "))
}

// wordsOnly is a text without its numbers and their units, so that reasons that
// differ in nothing else are one.
func wordsOnly(text string) string {
	var kept []string
	after := false // a number
	for _, w := range strings.Fields(text) {
		bare := strings.Trim(w, "().,:;")
		switch {
		case strings.ContainsAny(w, "0123456789"):
			after = true
			continue
		case after && (strings.HasSuffix(bare, "pps") || slices.Contains([]string{"%", "s", "ms", "µs", "ns", "B", "KiB", "MiB", "kB"}, bare)):
		default:
			kept = append(kept, w)
		}
		after = false
	}
	return strings.Join(kept, " ")
}

// lossier says in one line which cells lost more than a limit; none did if there is none.
func lossier(all []spot, most float64) []string {
	var over []spot
	for _, s := range all {
		if s.loss() > most {
			over = append(over, s)
		}
	}
	if len(over) == 0 {
		return nil
	}
	worst := slices.MaxFunc(over, func(a, b spot) int { return cmp.Compare(a.loss(), b.loss()) })
	return []string{fmt.Sprintf("%d of %s lost more than %s; %s lost most, %s", len(over), number(len(all), "setting", "settings"),
		unit.FormatRatio(most), worst.words(), unit.FormatRatio(worst.loss()))}
}
