package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pelt/analysis/internal/say"
	"pelt/analysis/internal/stats"
	"pelt/model"
	"pelt/unit"
)

// best tells the cell with the highest speed.
func (a *analyst) best(all []spot, best int) {
	b := all[best]
	values := b.values()
	values["goodput_bps"], values["send_bps"], values["loss_ratio"], values["repeats"] = b.speed, b.sent, b.loss(), float64(len(b.trials))
	sure := "measured once"
	if half, ok := stats.HalfInterval(b.speeds()); ok {
		low, high := max(0, b.speed-half), b.speed+half
		values["goodput_low_bps"], values["goodput_high_bps"] = low, high
		sure = fmt.Sprintf("by its %d repeats the true mean is %s with 95 %% confidence", len(b.trials), speedRange(low, high))
		if speedText(low) == speedText(high) {
			sure = fmt.Sprintf("its %d repeats agree", len(b.trials))
		}
	}
	most := fmt.Sprintf("Of %d settings, %s got most through", len(all), b.words())
	if len(all) == 1 {
		most = "The only setting was " + b.words()
	}
	a.tell(KindSweepBest, []model.Cell{b.cell}, values, "%s: %s (%s) arrived, %s; %s.", most, speedText(b.speed), unit.FormatBits(b.speed), lostText(b.loss()), sure)
}

// contenderRatio is how near to the best a cell must come for its scatter to
// tell that of the best: those far below scatter in their own way.
const contenderRatio = 0.9

// comparison is what is known of the differences between cells.
type comparison struct {
	ok       bool    // something can be separated
	noise    float64 // variance of one trial within its block, (bit/s)²
	critical float64 // standard errors that a difference must have
	ties     []int   // cells not separable from the best, the fastest first
}

// compare finds the cells that may be the truly best one. Hsu's multiple
// comparisons with the best (J. C. Hsu, Constrained simultaneous confidence
// intervals for multiple comparisons with the best, Annals of Statistics 12,
// 1984): whichever is truly best, it is the best seen or one of the ties, with 95 %
// confidence, however many cells there are. Repeats are blocks: differences are
// taken within them. The scatter is that of all contenders together, but never less
// than that of the very difference, so a cell with a bad repeat is not cast out.
func compare(all []spot, best int) (c comparison) {
	var freedom int
	var near []spot
	for _, s := range all {
		if s.speed >= contenderRatio*all[best].speed {
			near = append(near, s)
		}
	}
	if c.noise, freedom = residual(near); freedom < 1 {
		c.noise, freedom = residual(all)
	}
	c.ok = freedom >= 1 && len(all) > 1
	if c.ok {
		c.critical = stats.Dunnett(len(all)-1, freedom)
	}
	for i, s := range all {
		if i == best {
			continue
		}
		if difference, deviation, ok := c.against(all[best], s); !c.ok || !ok || difference <= c.critical*deviation+sameSpeed*all[best].speed {
			c.ties = append(c.ties, i)
		}
	}
	slices.SortStableFunc(c.ties, func(i, j int) int { return cmp.Compare(all[j].speed, all[i].speed) })
	return c
}

// against is by how much the best leads a cell within the blocks that both have,
// and the standard error of that; ok is false if they share none.
func (c comparison) against(best, s spot) (difference, deviation float64, ok bool) {
	var all []float64
	for _, t := range best.trials {
		if u, both := s.at(t.repeat); both {
			all = append(all, t.speed-u.speed)
		}
	}
	if len(all) == 0 {
		return 0, 0, false
	}
	return stats.Mean(all), math.Sqrt(max(2*c.noise, stats.Variance(all)) / float64(len(all))), true
}

// residual is the variance that is left when every cell and every block has its
// own level, and its degrees of freedom. Where trials are missing the levels
// are found in turns.
func residual(all []spot) (noise float64, freedom int) {
	type trial struct {
		cell, block int
		speed       float64
	}
	var trials []trial
	blocks := map[int]int{}
	for i, s := range all {
		for _, t := range s.trials {
			if _, ok := blocks[t.repeat]; !ok {
				blocks[t.repeat] = len(blocks)
			}
			trials = append(trials, trial{i, blocks[t.repeat], t.speed})
		}
	}
	freedom = len(trials) - len(all) - len(blocks) + 1
	if freedom < 1 {
		return 0, 0
	}
	cells, shift := make([]float64, len(all)), make([]float64, len(blocks))
	level := func(to []float64, of func(trial) (int, float64)) {
		sum, n := make([]float64, len(to)), make([]float64, len(to))
		for _, t := range trials {
			i, x := of(t)
			sum[i], n[i] = sum[i]+x, n[i]+1
		}
		for i := range to {
			to[i] = sum[i] / max(n[i], 1)
		}
	}
	for range 30 { // the first is exact where nothing is missing
		level(cells, func(t trial) (int, float64) { return t.cell, t.speed - shift[t.block] })
		level(shift, func(t trial) (int, float64) { return t.block, t.speed - cells[t.cell] })
	}
	for _, t := range trials {
		e := t.speed - cells[t.cell] - shift[t.block]
		noise += e * e
	}
	return noise / float64(freedom), freedom
}

// enoughRepeats is what a sweep needs to begin to tell cells apart: with two, one
// bad trial cannot be told from the other's good luck.
const enoughRepeats = 3

// mostRepeats is how many a user may sensibly be told to make.
const mostRepeats = 100

// ties tells which cells are not separable from the best.
func (a *analyst) ties(all []spot, best int) {
	if len(all) < 2 {
		return
	}
	c := compare(all, best)
	others := len(all) - 1
	values := map[string]float64{"not_separable_cells": float64(len(c.ties)), "compared_cells": float64(len(all))}
	if !c.ok {
		values["repeats_needed"] = enoughRepeats
		a.tell(KindSweepTies, nil, values, "Measured once each, no setting can be separated from another: how much speeds vary is unknown. --repeats %d is the least that tells.", enoughRepeats)
		return
	}
	b := all[best]
	values["critical_standard_errors"] = c.critical
	least := c.critical * math.Sqrt(2*c.noise/float64(len(b.trials))) / b.speed
	values["least_separable_ratio"] = least
	if len(c.ties) == 0 {
		a.tell(KindSweepTies, nil, values, "%s slower than the best beyond doubt (95 %% confidence for all together).", sentence(number(others, "other setting is", "other settings are all")))
		return
	}
	var tied []spot
	var cells []model.Cell
	for _, i := range c.ties {
		tied, cells = append(tied, all[i]), append(cells, all[i].cell)
	}
	text := fmt.Sprintf("%s not separable from the best: %s.", sentence(number(len(tied), "setting is", "settings are")), listed(tied))
	if rest := others - len(tied); rest == 1 {
		text += " The other one is slower with 95 % confidence."
	} else if rest > 1 {
		text += fmt.Sprintf(" The other %d are slower with 95 %% confidence.", rest)
	}
	a.tell(KindSweepTies, cells, values, "%s%s", text, a.repeatsToTell(c, b, tied[0], values))
}

// repeatsToTell says how many repeats would tell the best from the next, if the
// difference between them stays what it is.
func (a *analyst) repeatsToTell(c comparison, b, next spot, values map[string]float64) string {
	difference, deviation, ok := c.against(b, next)
	if !ok || !(difference > sameSpeed*b.speed) || deviation == 0 {
		return ""
	}
	needed := math.Ceil(math.Pow(c.critical*deviation/difference, 2) * float64(len(b.trials)))
	values["repeats_to_separate_next"] = needed
	nearest := say.Share(difference / b.speed)
	if needed > mostRepeats {
		return fmt.Sprintf(" The nearest is %s slower: no sensible number of repeats would tell.", only(nearest))
	}
	return fmt.Sprintf(" The nearest is %s slower: if that is so, about %.0f repeats would tell.", nearest, needed)
}

// nearBest is how near to the best speed a sender must get that is still as good.
const nearBest = 0.99

// slowest tells the sender that wastes least, under the conditions of the best.
func (a *analyst) slowest(all []spot, best int) {
	b := all[best]
	var near []spot
	for _, s := range all {
		if s.speed >= nearBest*b.speed && s.sent > 0 && s.under().Key() == b.under().Key() {
			near = append(near, s)
		}
	}
	if len(near) == 0 || len(all) < 2 {
		return
	}
	order := func(a, b spot) int { return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(b.speed, a.speed)) }
	slow, fast := slices.MinFunc(near, order), slices.MaxFunc(near, order)
	values := slow.values()
	values["send_bps"], values["goodput_bps"], values["goodput_to_best_ratio"] = slow.sent, slow.speed, slow.speed/b.speed
	values["best_send_bps"], values["fastest_send_bps"], values["loss_ratio"] = b.sent, fast.sent, slow.loss()
	text := fmt.Sprintf("Sending %s is enough: %s gets %s through, %s of the best.", speedText(slow.sent), slow.words(), speedText(slow.speed), unit.FormatRatio(slow.speed/b.speed))
	if slow.cell.Equal(b.cell) {
		text = fmt.Sprintf("No slower sender gets within 1 %% of the best, which sends %s.", speedText(b.sent))
	}
	if fast.sent > 1.01*slow.sent {
		text += fmt.Sprintf(" Faster sends, up to %s, only lose or queue more.", speedText(fast.sent))
	}
	a.tell(KindSweepSlowest, []model.Cell{slow.cell}, values, "%s", text)
}
