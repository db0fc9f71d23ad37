package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/analysis/internal/stats"
	"pelt/model"
	"pelt/unit"
)

// losses tells how much of what was lost, over all cells, has a named place.
func (a *analyst) losses(all []spot) {
	var attempted, lost, named float64
	var lossy []point
	for _, s := range all {
		attempted, lost = attempted+s.attempted, lost+s.lost
		p := s.point()
		for _, t := range p.trials {
			for _, l := range t.flow.Ledger.Lines {
				named += float64(l.Packets)
			}
		}
		if s.lost > 0 && s.protocol != model.TCP {
			lossy = append(lossy, p)
		}
	}
	if len(lossy) == 0 {
		return
	}
	explained := min(1, named/lost)
	values := map[string]float64{"attempted_packets": attempted, "lost_packets": lost, "loss_ratio": min(1, lost/max(attempted, 1)), "explained_ratio": explained}
	where := fmt.Sprintf("; %s of these losses have a named place: %s", unit.FormatRatio(explained), causes(lossy))
	if explained < nameRatio {
		where = ", " + causes(lossy)
	}
	a.add(KindLoss, values, "Over all settings %s of the packets were lost%s.", say.Share(values["loss_ratio"]), where)
}

// fairRatio is the index below which receivers are said to differ.
const fairRatio = 0.99

// receivers are the mean goodputs of a cell's receivers, by name.
func (s spot) receivers() map[string]float64 {
	sum := map[string]float64{}
	for _, t := range s.trials {
		for _, f := range t.result.Flows {
			for _, r := range f.Receivers {
				if r.GoodputBPS >= 0 && r.GoodputBPS < mostSpeed {
					sum[r.Node] += r.GoodputBPS / float64(len(s.trials))
				}
			}
		}
	}
	return sum
}

// fairness tells where receivers got unequal shares, the worst cell by name.
func (a *analyst) fairness(all []spot) {
	var worst spot
	var cells []model.Cell
	least, judged, at := 1.0, 0, 0 // at: where the worst stands among the cells
	for _, s := range all {
		shares := s.receivers()
		if len(shares) < 2 {
			continue
		}
		var list []float64
		for _, name := range slices.Sorted(maps.Keys(shares)) {
			list = append(list, shares[name])
		}
		index, ok := stats.Jain(list)
		if !ok {
			continue
		}
		if judged++; index < fairRatio {
			cells = append(cells, s.cell)
		}
		if index < least {
			least, worst, at = index, s, len(cells)-1
		}
	}
	if len(cells) == 0 {
		return
	}
	shares := worst.receivers()
	names := slices.SortedFunc(maps.Keys(shares), func(x, y string) int {
		return cmp.Or(cmp.Compare(shares[x], shares[y]), strings.Compare(x, y))
	})
	var middle float64
	for _, name := range names {
		middle += shares[name] / float64(len(names))
	}
	values := worst.values()
	values["jain_index"], values["unfair_cells"], values["compared_cells"] = least, float64(len(cells)), float64(judged)
	values["worst_goodput_bps"], values["mean_goodput_bps"] = shares[names[0]], middle
	cells[0], cells[at] = cells[at], cells[0]
	a.tell(KindSweepFairness, cells, values, "Receivers do not get the same in %d of %s, least so with %s: %s gets %s where the mean is %s (Jain's index %.2f, even is 1).",
		len(cells), number(judged, "setting", "settings"), worst.words(), names[0], speedText(shares[names[0]]), speedText(middle), least)
}
