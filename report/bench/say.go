package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// Facts say in one line what the router is: model, firmware, kernel, cores. ""
// if the run knows of none.
func Facts(doc model.Document) string {
	f := doc.Router
	if f == nil {
		return ""
	}
	parts := []string{f.Model, f.Firmware}
	if f.Firmware == "" {
		parts = append(parts, f.System)
	}
	if f.Kernel != "" {
		parts = append(parts, "kernel "+f.Kernel)
	}
	switch {
	case f.Cores > 0 && f.CPU != "":
		parts = append(parts, fmt.Sprintf("%d × %s", f.Cores, f.CPU))
	case f.Cores > 0:
		parts = append(parts, fmt.Sprintf("%d cores", f.Cores))
	default:
		parts = append(parts, f.CPU)
	}
	if f.MemoryBytes > 0 {
		parts = append(parts, fmt.Sprintf("%d MiB", f.MemoryBytes>>20))
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	for i, p := range parts {
		parts[i] = words.Shorten(words.Plain(p), 60)
	}
	return strings.Join(parts, ", ")
}

// State is what is true of the router's fast paths, a sentence each.
func State(doc model.Document) []string {
	if doc.Router == nil {
		return nil
	}
	return plain(doc.Router.Offload)
}

// Untold are the things that could not be read of the router.
func Untold(doc model.Document) []string {
	if doc.Router == nil {
		return nil
	}
	return plain(doc.Router.Untold)
}

func plain(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, words.Plain(s))
	}
	return out
}

// Watch says who watched the router, how often, and at what cost to it.
func Watch(doc model.Document) string {
	samples, trials, measured := 0, 0, 0
	least, most := math.Inf(1), 0.0 // period
	var costs []float64
	for _, r := range doc.Results {
		if len(r.Flows) > 0 {
			measured++
		}
		w := r.Router
		if w == nil {
			continue
		}
		samples += max(w.Samples, 0)
		if w.CPU != nil {
			trials++
		}
		if w.PeriodS > 0 && w.Samples > 0 {
			least, most = min(least, w.PeriodS), max(most, w.PeriodS)
		}
		if w.CostRatio != nil {
			costs = append(costs, *w.CostRatio)
		}
	}
	if doc.Router == nil && samples == 0 {
		return "The router was not observed."
	}
	source := "the router itself"
	if doc.Router != nil {
		source = cmp.Or(words.Shorten(words.Plain(doc.Router.Source), 80), source)
	}
	text := fmt.Sprintf("Router watched through %s: %s samples", source, unit.FormatCount(uint64(samples)))
	switch {
	case most > least:
		text += fmt.Sprintf(", one every %s, at times every %s", words.Seconds(least), words.Seconds(most))
	case most > 0:
		text += ", one every " + words.Seconds(most)
	}
	text += fmt.Sprintf(", in %d of %d trials", trials, measured)
	if c := figure(costs); c.N > 0 {
		text += fmt.Sprintf("; the watch took %s of one core", unit.FormatRatio(digits2(c.Mean)))
		if c.Max >= 1.5*c.Mean {
			text += fmt.Sprintf(", at most %s", unit.FormatRatio(digits2(c.Max)))
		}
	} else {
		text += "; what the watch took of the router is not known"
	}
	text += "."
	if doc.Lab != nil {
		text += " In a lab the processor is this machine's, on which the sender and the receiver run too."
	}
	return text
}

// digits2 keeps two significant digits: a cost is not known better.
func digits2(v float64) float64 {
	if !(math.Abs(v) > 0) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, 1-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Gaps say in which trials the router was not observed, from when and why; trials
// with the same words stand together.
func Gaps(doc model.Document) []string {
	if doc.Router == nil && !slices.ContainsFunc(doc.Results, func(r model.Result) bool { return r.Router != nil }) {
		return nil // Watch says it of all of them
	}
	names := map[string][]string{}
	var order []string
	for _, r := range doc.Results {
		if len(r.Flows) == 0 {
			continue
		}
		var said []string
		if r.Router != nil {
			said = plain(r.Router.Gaps)
		}
		if len(said) == 0 && (r.Router == nil || r.Router.CPU == nil) {
			said = []string{"not observed"}
		}
		for _, s := range said {
			if names[s] == nil {
				order = append(order, s)
			}
			names[s] = append(names[s], TrialName(doc, r))
		}
	}
	var out []string
	for _, s := range order {
		list := names[s]
		if len(list) > 4 {
			list = append(list[:3:3], fmt.Sprintf("%d more", len(list)-3))
		}
		out = append(out, strings.Join(list, "; ")+": router "+s)
	}
	return out
}

// TrialName is a trial in words: "LAN→WAN, 64 B, log, trial 2".
func TrialName(doc model.Document, r model.Result) string {
	if len(r.Flows) == 0 {
		return words.Shorten(words.Cell(r.Cell), 60)
	}
	flow := r.Flows[0].Name
	if len(r.Flows) > 1 {
		flow = ""
	}
	row := Row{Way: Way(doc, flow), Variant: words.Name(r.Cell["variant"].Text)}
	row.Traffic, _ = traffic(r)
	name := row.Name()
	if doc.Plan.Design.Repeats > 1 {
		name += fmt.Sprintf(", trial %d", r.Repeat+1)
	}
	return name
}

// RowName names a row of the flows' own table as this one names its rows.
func RowName(doc model.Document, r rows.Row) string {
	for _, i := range r.Trials {
		one := doc.Results[i]
		b := Row{Way: Way(doc, r.Flow), Share: len(one.Flows) > 1, Variant: words.Name(one.Cell["variant"].Text)}
		b.Traffic, _ = traffic(one)
		return b.Name()
	}
	return words.Name(r.Flow)
}

// farApart is a spread of repeats, of their mean, that a reader must be told of.
const farApart = 0.1

// Apart names the rows whose repeats differ so much that their mean says little;
// "" if there are none.
func (t Table) Apart() string {
	var list []string
	for _, r := range t.Rows {
		if r.Share || r.Light || r.State != model.Valid || !r.BPS.Spread() || r.BPS.Max-r.BPS.Min < farApart*r.BPS.Mean {
			continue
		}
		list = append(list, fmt.Sprintf("%s (%s Mbit/s)", r.Name(), rangeText(r.BPS)))
	}
	if len(list) == 0 {
		return ""
	}
	if len(list) > 4 {
		list = append(list[:3:3], fmt.Sprintf("%d more", len(list)-3))
	}
	return "Repeats are more than " + unit.FormatRatio(farApart) + " apart: " + strings.Join(list, "; ")
}

// Losses say where the packets of all trials were lost, the most first: "lost
// packets of all trials: 90 % at router (softnet.dropped), 10 % ...". "" if none was.
func Losses(t rows.Table) string {
	packets := map[string]uint64{}
	var total uint64
	for _, r := range t.Rows {
		if r.TCP != nil {
			continue
		}
		for _, p := range words.LossParts(r) {
			packets[p.Words] += p.Packets
			total += p.Packets
		}
	}
	if total == 0 {
		return ""
	}
	var causes []string
	for w, n := range packets {
		if n >= total/1000 {
			causes = append(causes, w)
		}
	}
	slices.SortFunc(causes, func(a, b string) int {
		return cmp.Or(cmp.Compare(packets[b], packets[a]), strings.Compare(a, b))
	})
	const most = 4
	var parts []string
	for _, w := range causes[:min(most, len(causes))] {
		parts = append(parts, unit.FormatRatio(digits2(float64(packets[w])/float64(total)))+" "+w)
	}
	if left := len(causes) - most; left > 0 {
		parts = append(parts, fmt.Sprintf("%d more causes", left))
	}
	return "Of all lost datagrams: " + strings.Join(parts, ", ")
}
