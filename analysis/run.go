package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
	"pelt/unit"
)

// asymmetryRatio is how far the two directions must differ, beyond their
// repeats' spread, to be told apart.
const asymmetryRatio = 0.1

// asymmetry compares up and down under the same settings.
func (a *analyst) asymmetry(all []curve) {
	for _, up := range all {
		i := slices.IndexFunc(all, func(c curve) bool {
			return up.flow == "up" && c.flow == "down" && c.both == up.both && c.setting == up.setting
		})
		if i < 0 {
			continue
		}
		a.compare(up, all[i])
	}
}

func (a *analyst) compare(up, down curve) {
	var text []string
	values := map[string]float64{}
	for _, p := range up.points {
		i := slices.IndexFunc(down.points, func(q point) bool { return q.payload == p.payload })
		if i < 0 {
			continue
		}
		q := down.points[i]
		if p.engine != q.engine || p.goodput <= 0 || q.goodput <= 0 || p.limit == byOffer && q.limit == byOffer {
			continue
		}
		ratio := q.goodput / p.goodput
		if math.Abs(math.Log(ratio)) < math.Log(1+asymmetryRatio)+p.spread+q.spread {
			continue
		}
		values[fmt.Sprintf("%s_to_up_ratio_at_%d_payload_bytes", slug(down.label), p.payload)] = ratio
		text = append(text, fmt.Sprintf("%d B %s up and %s down", p.payload, unit.FormatBits(p.goodput), unit.FormatBits(q.goodput)))
	}
	if len(text) == 0 {
		return
	}
	when := "one at a time"
	if up.both {
		when = "both at once"
	}
	if n := len(text); n > 2 {
		text = []string{text[0], text[n-1]}
	}
	a.add(KindAsymmetry, values, "The two directions differ, %s: %s.", when, strings.Join(text, ", "))
}

func (a *analyst) lab() {
	if !strings.HasPrefix(a.doc.Plan.Target, "lab:") {
		return
	}
	cores := 0
	for _, h := range a.doc.Host {
		cores = max(cores, h.Cores)
	}
	on := "this machine's cores"
	if cores > 0 {
		on = fmt.Sprintf("this machine's %d cores", cores)
	}
	a.add(KindLab, map[string]float64{"cores": float64(cores)},
		"In a lab all nodes share %s: a limit in packets is this machine's, not a router's; a limit in bits that --link sets is real.", on)
}

func (a *analyst) invalid() {
	if isSweep(a.doc) {
		a.invalidCells()
		return
	}
	var count, aborted int
	for _, r := range a.doc.Results {
		switch {
		case r.State == model.Aborted:
			aborted++
		case r.State == model.Invalid && !tooBig(r):
			count++
		}
	}
	if count > 0 {
		are := "are"
		if count == 1 {
			are = "is"
		}
		a.add(KindInvalid, map[string]float64{"invalid_trials": float64(count), "trials": float64(len(a.doc.Results) - aborted)},
			"%d of %d trials %s invalid and left out; see Not counted.", count, len(a.doc.Results)-aborted, are)
	}
}

// repeats doubts sizes measured once: nothing is known of how much they vary.
func (a *analyst) repeats(all []curve) {
	least, several := all[0].fewest(), false
	var once []string
	for _, c := range all {
		least = min(least, c.fewest())
		several = several || len(c.points) > 1
		for _, p := range c.points {
			if size := fmt.Sprint(p.payload); len(p.trials) < 2 && !slices.Contains(once, size) {
				once = append(once, size)
			}
		}
	}
	if least >= 2 {
		return
	}
	text := "Measured only once"
	switch {
	case a.doc.Plan.Design.Repeats <= 1 && several:
		text = "Each size was measured only once"
	case a.doc.Plan.Design.Repeats <= 1:
	case len(once) > 3:
		text = fmt.Sprintf("%d sizes have only one valid trial", len(once))
	case len(once) > 1:
		text = say.And(once) + " B have only one valid trial each"
	default:
		text = once[0] + " B has only one valid trial"
	}
	a.add(KindTooFewRepeats, map[string]float64{"repeats": float64(least)}, "%s: how much the rates vary is unknown; --repeats 3 tells.", text)
}

// Figures beyond which a measurement is doubted aloud.
const (
	doubtSpread    = 0.1   // between repeats of a size
	doubtDuplicate = 0.001 // of the received packets
	doubtReordered = 0.01
)

// calibration names the emulated links that were not what was asked, before any trial.
func calibration(doc model.Document) []string {
	warnings := []string{}
	if doc.Lab == nil {
		return warnings
	}
	for _, c := range doc.Lab.Links {
		for _, off := range c.Off {
			warnings = append(warnings, fmt.Sprintf("the emulated link %s to %s was not what was asked before the test: %s", c.From, c.To, off))
		}
	}
	return warnings
}

// Warnings returns doubts about the measurement itself, one line each.
func Warnings(doc model.Document) []string {
	warnings := calibration(doc)
	if isSweep(doc) {
		return append(append(append(warnings, sweepDoubts(spots(doc))...), accounts(doc)...), watching(doc)...)
	}
	if isRouter(doc) {
		return append(append(append(warnings, routerDoubts(doc)...), accounts(doc)...), watching(doc)...)
	}
	if isControl(doc) {
		return append(append(append(warnings, controlDoubts(doc)...), accounts(doc)...), watching(doc)...)
	}
	all := curves(doc)
	doubts := []struct {
		text string
		of   func(point) float64
		most float64
	}{
		{"repeats of one size differ much: %s; something else was going on on the path or the hosts", func(p point) float64 { return p.spread }, doubtSpread},
		{"packets arrived twice: %s", func(p point) float64 { return p.share(func(f model.FlowResult) uint64 { return f.Duplicates }) }, doubtDuplicate},
		{"packets arrived out of order: %s; several ways or queues lie on the path", func(p point) float64 { return p.share(func(f model.FlowResult) uint64 { return f.Reordered }) }, doubtReordered},
	}
	for _, d := range doubts {
		var at []string
		for _, c := range all {
			var sizes []string
			for _, p := range c.points {
				if x := d.of(p); x > d.most {
					sizes = append(sizes, fmt.Sprintf("%d B %s", p.payload, percent(x)))
				}
			}
			if len(sizes) == 0 {
				continue
			}
			text := strings.Join(sizes, ", ")
			if len(all) > 1 {
				text += " (" + c.name + ")"
			}
			at = append(at, text)
		}
		if len(at) > 0 {
			warnings = append(warnings, fmt.Sprintf(d.text, strings.Join(at, "; ")))
		}
	}
	return append(append(warnings, accounts(doc)...), watching(doc)...)
}

// watching says of trials that lost packets which hosts could not be watched as
// closely as was asked, once for each reason.
func watching(doc model.Document) []string {
	type doubt struct {
		text  string
		nodes []string
	}
	var all []*doubt
	add := func(text, node string) {
		i := slices.IndexFunc(all, func(d *doubt) bool { return d.text == text })
		if i < 0 {
			i = len(all)
			all = append(all, &doubt{text: text})
		}
		if !slices.Contains(all[i].nodes, node) {
			all[i].nodes = append(all[i].nodes, node)
		}
	}
	asked := doc.Plan.Drops
	for _, r := range doc.Results {
		if !slices.ContainsFunc(r.Flows, func(f model.FlowResult) bool { return f.Ledger.Lost > 0 }) {
			continue
		}
		for _, o := range r.Observed {
			switch {
			case o.Mode != "" && o.Mode == asked:
			case o.Mode == "" && o.Why != "":
				add("not observed, so nothing is known of what it lost: "+o.Why, o.Node)
			case o.Mode == "":
				add("not observed, so nothing is known of what it lost", o.Node)
			case o.Mode == model.DropsOff && o.Why != "":
				add("losses get their names from counters alone: "+o.Why, o.Node)
			case o.Mode == model.DropsCount && o.Why != "":
				add("drops are counted by place, not by sequence: "+o.Why, o.Node)
			}
		}
	}
	var warnings []string
	for _, d := range all {
		warnings = append(warnings, strings.Join(d.nodes, ", ")+": "+d.text)
	}
	return warnings
}

// share is what part of the received packets get counts, over all repeats.
func (p point) share(get func(model.FlowResult) uint64) float64 {
	var n uint64
	for _, t := range p.trials {
		n += get(t.flow)
	}
	return float64(n) / float64(max(p.received, 1))
}

// accounts returns each broken law of the ledgers once, with how often it was broken.
func accounts(doc model.Document) []string {
	count := map[string]int{}
	first := map[string]string{}
	var order []string
	for _, r := range doc.Results {
		for _, f := range r.Flows {
			for _, c := range f.Ledger.Checks {
				if c.Held || f.Attempted == 0 {
					continue
				}
				if count[c.Name] == 0 {
					order = append(order, c.Name)
					first[c.Name] = fmt.Sprintf("%s, %s: %s", f.Name, r.Cell.Key(), c.Text)
				}
				count[c.Name]++
			}
		}
	}
	var out []string
	for _, name := range order {
		out = append(out, fmt.Sprintf("the account does not add up in %s, first in %s", flows(count[name]), first[name]))
	}
	return out
}

func flows(n int) string {
	if n == 1 {
		return "1 flow"
	}
	return fmt.Sprintf("%d flows", n)
}

// Passed judges a run by its plan's limits. Without limits it passes; with
// limits and no valid trial it does not. broken says what failed, one line each.
func Passed(doc model.Document) (passed bool, broken []string) {
	most := doc.Plan.Limits.MaxLossRatio
	if most == nil {
		return true, nil
	}
	all := curves(doc)
	if len(all) == 0 {
		return false, []string{"no valid trial to judge the loss by"}
	}
	if isSweep(doc) {
		broken = lossier(spots(doc), *most)
		return len(broken) == 0, broken
	}
	if isRouter(doc) {
		for _, b := range bench(doc) {
			if !b.tcp && b.loss > *most {
				broken = append(broken, fmt.Sprintf("%s %s lost %s, more than %s", named(b.variant, across(b.direction)), b.load(), unit.FormatRatio(b.loss), unit.FormatRatio(*most)))
			}
		}
		return len(broken) == 0, broken
	}
	for _, c := range all {
		for _, p := range c.points {
			if p.loss > *most {
				what := "lost %s"
				if c.protocol == model.TCP {
					what = "sent %s again" // nothing of it is missing
				}
				broken = append(broken, fmt.Sprintf("%s at %d B "+what+", more than %s", c.label, p.payload, unit.FormatRatio(p.loss), unit.FormatRatio(*most)))
			}
		}
	}
	return len(broken) == 0, broken
}
