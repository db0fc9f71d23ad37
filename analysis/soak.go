package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

const (
	mostGaps   = 5 // told one by one; further ones are counted
	mostPlaces = 3 // likewise, of a flow's losses
)

// isSoak reports whether a run is one long trial at one rate.
func isSoak(doc model.Document) bool { return doc.Plan.Command == "soak" }

// soak tells one trial, also one that was cut or is not valid: what was lost, where and
// when, and what changed meanwhile.
func soak(doc model.Document) []model.Finding {
	a := &analyst{doc: doc}
	r, ok := soaked(doc)
	if !ok {
		return a.nothing()
	}
	a.add(KindVerdict, a.soakValues(r), "%s", soakVerdict(r))
	a.changed()
	a.timed(r)
	a.unheard(r)
	for _, f := range r.Flows {
		a.lostWhen(r, f)
	}
	a.unfit()
	a.swallowed()
	a.engines()
	a.lab()
	if r.State == model.Invalid {
		a.add(KindInvalid, map[string]float64{"invalid_trials": 1, "trials": 1}, "What was lost in a trial that is not valid says nothing about the path at the rate that was asked.")
	}
	return a.found
}

// soaked is the trial to tell of: the last valid one, else the last that sent
// anything, for a cut soak begins anew when it is resumed.
func soaked(doc model.Document) (r model.Result, ok bool) {
	for _, x := range doc.Results {
		if !slices.ContainsFunc(x.Flows, func(f model.FlowResult) bool { return f.Attempted > 0 }) {
			continue
		}
		if !ok || x.State == model.Valid || r.State != model.Valid {
			r, ok = x, true
		}
	}
	return r, ok
}

func soakVerdict(r model.Result) string {
	head := ""
	switch r.State {
	case model.Aborted:
		head = "Not finished: "
	case model.Invalid:
		head = "Not valid: "
		missed := 0.0
		for _, f := range r.Flows {
			missed = max(missed, float64(f.Planned-min(f.Attempted, f.Planned))/float64(max(f.Planned, 1)))
		}
		if missed > 0 && strings.Contains(r.Why, "schedule") {
			head = fmt.Sprintf("Not valid, for a sender missed %s of its schedule: ", unit.FormatRatio(missed))
		}
	}
	var parts []string
	for _, f := range r.Flows {
		text := soakFlow(r.State, f)
		if len(r.Flows) > 1 {
			text = f.Name + ": " + text
		}
		parts = append(parts, text)
	}
	return sentence(head+strings.Join(parts, "; ")) + "."
}

// soakFlow is one flow's part of the verdict.
func soakFlow(state model.State, f model.FlowResult) string {
	if f.Attempted == 0 {
		return "nothing was sent"
	}
	packets := fmt.Sprintf("%s packets of %d B", unit.FormatCount(f.Attempted), f.PayloadBytes)
	when := lasting(f.DurationS)
	text := fmt.Sprintf("%s in %s at %s", packets, when, unit.FormatPPS(f.SendPPS))
	if state == model.Aborted {
		text = fmt.Sprintf("in the first %s %s at %s", when, packets, unit.FormatPPS(f.SendPPS))
	}
	share := unit.FormatRatio(float64(f.Lost) / float64(f.Attempted))
	switch {
	case f.Lost == 0:
		return text + ": none was lost"
	case f.Lost == 1:
		text += fmt.Sprintf(", of which 1 (%s) was lost", share)
	case f.Lost >= f.Attempted:
		text += ", all of which were lost"
	default:
		text += fmt.Sprintf(", of which %s (%s) were lost", unit.FormatCount(f.Lost), share)
	}
	return text + ": " + places(f.Ledger)
}

// places lists where a flow's packets were lost, most first.
func places(l model.Ledger) string {
	type place struct {
		name    string
		packets uint64
	}
	var all []place
	add := func(name string, n uint64) {
		i := slices.IndexFunc(all, func(p place) bool { return p.name == name })
		switch {
		case n == 0:
		case i < 0:
			all = append(all, place{name, n})
		default:
			all[i].packets += n
		}
	}
	for _, x := range l.Lines {
		add(placed(x), x.Packets)
	}
	add("on the way, at no counter seen from here", l.Unattributed)
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(b.packets, a.packets) })
	switch len(all) {
	case 0:
		return "where is not known"
	case 1:
		return all[0].name
	}
	var words []string
	for i, p := range all {
		if i == mostPlaces {
			words = append(words, fmt.Sprintf("and at %d further places", len(all)-i))
			break
		}
		words = append(words, unit.FormatCount(p.packets)+" "+p.name)
	}
	return strings.Join(words, ", ")
}

// placed says one line of a ledger, with the kernel's own word for the cause.
func placed(l model.Line) string {
	text := where(l)
	if l.Cause == "" || l.Cause != strings.ToUpper(l.Cause) || strings.Contains(text, l.Cause) {
		return text
	}
	return text + " (" + l.Cause + ")"
}

func (a *analyst) soakValues(r model.Result) map[string]float64 {
	values := map[string]float64{}
	for _, f := range r.Flows {
		for name, v := range map[string]float64{"attempted_packets": float64(f.Attempted), "lost_packets": float64(f.Lost), "duration_s": f.DurationS, "send_pps": f.SendPPS,
			"loss_ratio": float64(f.Lost) / float64(max(f.Attempted, 1))} {
			values[flowValue(r, f, name)] = v
		}
	}
	return finiteOnly(values)
}

// finiteOnly leaves out what no JSON can hold, whatever a document held.
func finiteOnly(values map[string]float64) map[string]float64 {
	maps.DeleteFunc(values, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	return values
}

func flowValue(r model.Result, f model.FlowResult, name string) string {
	if len(r.Flows) > 1 {
		return slug(f.Name) + "_" + name
	}
	return name
}

// lasting prints how long something took: "10 min", "4 min 10 s", "700 ms".
func lasting(s float64) string {
	if !(s >= 9.5) {
		return strings.Replace(unit.FormatNanos(s*1e9), ".00 ", " ", 1)
	}
	return clock(s)
}

// timed tells what was changed in the lab while the trial ran.
func (a *analyst) timed(r model.Result) {
	for _, m := range r.Made {
		values := finiteOnly(map[string]float64{"at_s": m.AtS, "took_s": m.TookS})
		if m.Failure != "" {
			a.add(KindTimedChange, values, "%s was to be made at %s, and was not: %s.", m.Words, clock(m.AtS), strings.TrimSuffix(m.Failure, "."))
			continue
		}
		a.add(KindTimedChange, values, "%s was made at %s, as planned.", m.Words, clock(m.AtS))
	}
}

// unheard tells for how long the test went on without a word from a host.
func (a *analyst) unheard(r model.Result) {
	for i, g := range r.Gaps {
		if i == mostGaps {
			a.add(KindControlGap, map[string]float64{"further_gaps": float64(len(r.Gaps) - i)}, "Nothing was heard %d times more; the document has them.", len(r.Gaps)-i)
			break
		}
		kept := "the test went on, and what was measured meanwhile is in the figures"
		if r.State == model.Aborted {
			kept = "the test went on"
		}
		a.add(KindControlGap, finiteOnly(map[string]float64{"start_s": g.StartS, "duration_s": g.DurationS}),
			"From %s on nothing was heard of %s for %s; %s.", clock(g.StartS), strings.Join(g.Nodes, ", "), lasting(g.DurationS), kept)
	}
}

// lostWhen tells in which seconds a flow lost packets, and the worst second and minute.
func (a *analyst) lostWhen(r model.Result, f model.FlowResult) {
	lost, sent := seconds(r, f.Name, "lost_pps"), seconds(r, f.Name, "send_pps")
	if f.Lost == 0 || len(lost.Values) == 0 {
		return
	}
	lossy, known, first, last := 0, 0, -1, 0
	for i, v := range lost.Values {
		if math.IsNaN(v) {
			continue
		}
		known++
		if v > 0 {
			lossy++
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return // in the last part of a second
	}
	values := map[string]float64{}
	set := func(name string, v float64) { values[flowValue(r, f, name)] = v }
	set("lossy_seconds", float64(lossy))
	set("first_loss_s", lost.StartSeconds+float64(first))
	set("last_loss_s", lost.StartSeconds+float64(last))
	name := ""
	if len(r.Flows) > 1 {
		name = " (" + f.Name + ")"
	}
	text := fmt.Sprintf("Of %s seconds %s lost packets%s, the first at %s, the last at %s", unit.FormatCount(uint64(known)), unit.FormatCount(uint64(lossy)), name, clock(lost.StartSeconds+float64(first)), clock(lost.StartSeconds+float64(last)))
	if lossy == 1 {
		text = fmt.Sprintf("Of %s seconds one lost packets%s, the one at %s", unit.FormatCount(uint64(known)), name, clock(lost.StartSeconds+float64(first)))
	}
	tell := func(what string, length int) {
		at, n := worst(lost.Values, length)
		of := within(sent, lost.StartSeconds+float64(at), length)
		key := "worst_" + what
		set(key+"_s", lost.StartSeconds+float64(at))
		set(key+"_lost_packets", n)
		text += fmt.Sprintf("; in the worst %s, from %s on, %s", what, clock(lost.StartSeconds+float64(at)), unit.FormatCount(whole(n)))
		if of >= n && of > 0 {
			set(key+"_loss_ratio", n/of)
			text += fmt.Sprintf(" of %s (%s)", unit.FormatCount(whole(of)), unit.FormatRatio(n/of))
		}
	}
	if lossy > 1 {
		tell("second", 1)
	}
	if len(lost.Values) >= 120 && lossy > 1 {
		tell("minute", 60)
	}
	a.add(KindLoss, finiteOnly(values), "%s.", text)
}

// seconds is a flow's series of whole seconds, not those of single lines or streams.
func seconds(r model.Result, flow, metric string) model.Series {
	for _, s := range r.Series {
		if s.Metric == metric && s.Flow == flow && s.Layer == "" && s.Cause == "" && s.Core == nil && s.Stream == nil && s.StepSeconds == 1 {
			return s
		}
	}
	return model.Series{}
}

// worst is where most packets were lost within so many seconds, and how many.
func worst(lost []float64, length int) (at int, packets float64) {
	sum := 0.0
	for i, v := range lost {
		sum += amount(v)
		if i >= length {
			sum -= amount(lost[i-length])
		}
		if sum > packets {
			at, packets = max(0, i-length+1), sum
		}
	}
	return at, packets
}

// within is the sum of a series over some seconds from a time on.
func within(s model.Series, from float64, length int) (sum float64) {
	at := int(max(-1e9, min(math.Round(from-s.StartSeconds), 1e9)))
	for i := max(at, 0); i < min(at+length, len(s.Values)); i++ {
		sum += amount(s.Values[i])
	}
	return sum
}

// amount is a figure of a series as a number of packets; what nobody heard is none.
func amount(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(v, 1e15)
}

func whole(v float64) uint64 { return uint64(math.Round(amount(v))) }
