package controls

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/analysis/internal/stats"
	"pelt/model"
)

// notes say what a table's figures rest on.
func (g *grid) notes(t *model.ControlTable) []string {
	notes := []string{}
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	add("Figures are medians of the valid trials with their 95 %% intervals (bootstrap, BCa).%s", few(t))
	if t.Tests > 0 {
		add("Controls are told apart by the rank test of Mann and Whitney, two-sided, with Holm's correction for %s.", comparisonsText(t.Tests))
	}
	if t.Tests > 0 && t.Looks > 1 {
		add("The run may stop after %s repeats, %d looks in all; each has %s of the 5 %% that a false alarm may have (Bonferroni).",
			numbers(g.doc.Plan.Design), t.Looks, numberText(t.Alpha*100, 2)+" %")
	}
	if n := enough(t.Tests, t.Alpha); t.Tests > 0 && n > 0 && slices.ContainsFunc(t.Contrasts, func(c model.ControlContrast) bool { return tooFew(t, c) }) {
		add("With %s, %d trials of each control are the least that can tell any two apart.", comparisonsText(t.Tests), n)
	}
	if slices.ContainsFunc(t.Cells, func(c model.ControlCell) bool { return c.Unfinished > 0 }) {
		add("A transfer that was cut by the trial's time counts as slower than all that ended, and as equal to others that were cut; figures that rest on it are lower bounds.")
	}
	if text := Offload(g.doc); text != "" {
		add("%s", text)
	}
	if slices.ContainsFunc(t.Cells, func(c model.ControlCell) bool { return c.Standing != nil }) {
		add("Round trips are of a thin flow of UDP beside the transfer; queueing is how far their 95th percentile is above the shortest one under the same condition.")
	}
	if slices.ContainsFunc(t.Cells, func(c model.ControlCell) bool { return c.Converged != nil }) {
		add("Shares stand still from when each stream's, in windows of half a second, stays within a third of its mean over the last third of the time that all ran.")
	}
	return notes
}

// few says which intervals are none of the bootstrap.
func few(t *model.ControlTable) string {
	short := slices.ContainsFunc(t.Cells, func(c model.ControlCell) bool {
		n := counted(t, &c)
		return n > 0 && n < stats.LeastBootstrap
	})
	if !short {
		return ""
	}
	return fmt.Sprintf(" Of fewer than %d trials the interval is their range, which holds the median less surely.", stats.LeastBootstrap)
}

// mostNumbers are told one by one.
const mostNumbers = 5

// numbers are those of repeats at which a run may judge, in words.
func numbers(d model.Design) string {
	d.MostRepeats, d.Repeats = min(d.MostRepeats, model.MaxRepeats), max(d.Repeats, 1)
	list := d.Looks()
	var words []string
	for _, n := range list {
		words = append(words, fmt.Sprint(n))
	}
	if len(words) > mostNumbers {
		return strings.Join(words[:3], ", ") + " and so on to " + words[len(words)-1]
	}
	return say.And(words)
}

// Offload says what random loss takes of a buffer of segments: it falsifies a
// comparison where that is the whole. "" where nothing is known to be lost.
func Offload(doc model.Document) string {
	backends := map[string]bool{}
	lab := strings.HasPrefix(doc.Plan.Target, "lab:")
	for _, r := range doc.Results {
		for _, l := range r.Links {
			if r.State == model.Valid && (l.AskedRatio > 0 || l.Lost != nil && *l.Lost > 0) {
				backends[l.Backend] = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(backends))
	switch {
	case !lab:
		return "Whether the path loses single packets or whole buffers of segments (segmentation offload) is not known: on a path of virtual devices the latter makes controls that go by loss look faster than they are."
	case len(names) == 0:
		return ""
	case slices.ContainsFunc(doc.Plan.Links, func(l model.Link) bool { return l.Buffers == model.BuffersWhole }):
		return "The emulated links lose whole buffers of segments (segmentation offload), as the kernel's netem does and no wire: that makes controls that go by loss look faster than they are."
	case slices.ContainsFunc(doc.Plan.Factors, func(f model.Factor) bool { _, setting, _ := model.SplitLinkKnob(f.Knob); return setting == "buffers" }):
		return "The emulated links lose single packets where buffers are parts, and buffers of segments (segmentation offload) where they are whole."
	case slices.Contains(names, "kernel") || slices.Contains(names, "bpf"):
		return "The emulated links lose packet by packet: before those that lose, segmentation offload is off."
	}
	return "The emulated links lose packet by packet: they part buffers of segments (segmentation offload) where one of a buffer is lost."
}
