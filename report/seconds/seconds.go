package seconds

import (
	"cmp"
	"math"
	"slices"

	"pelt/model"
	"pelt/report/internal/words"
)

// Trial is what happened in one trial, in seconds after the start of its measured part.
type Trial struct {
	Flows []Flow
	Marks []Mark // in the order of time
	Gaps  []Span // likewise; none overlaps another
	EndS  float64
}

// Flow is one flow second by second. A series without values was not measured; a value
// that is not a number was not heard.
type Flow struct {
	Name     string
	Sent     model.Series // packets per second, at the sender
	Received model.Series // likewise, at the receiver
	Lost     model.Series // packets per second, in the second in which they had been sent
	Causes   []Cause      // what Lost is made of, most first; what no series places is last
}

// Cause is one line of the flow's ledger over time.
type Cause struct {
	Words  string // as reports name the line
	Series model.Series
}

// Span is a time in which nothing was heard.
type Span struct {
	FromS, ToS float64
	Words      string
}

// Is reports whether a run is a soak: one long trial, of which one asks what happened when.
func Is(doc model.Document) bool { return doc.Plan.Command == "soak" }

// Chosen is the trial of a soak that reports show: the last valid one, else the last
// with series, for a cut soak begins anew when it is resumed. ok is false without one.
func Chosen(doc model.Document) (r model.Result, ok bool) {
	for _, x := range doc.Results {
		if len(Of(x).Flows) > 0 && (!ok || x.State == model.Valid || r.State != model.Valid) {
			r, ok = x, true
		}
	}
	return r, ok
}

// Of reads a trial's series. Those that have no length are left out.
func Of(r model.Result) Trial {
	var t Trial
	for _, f := range r.Flows {
		if one := newFlow(r, f); len(one.Sent.Values)+len(one.Received.Values)+len(one.Lost.Values) > 0 {
			t.Flows = append(t.Flows, one)
			for _, s := range []model.Series{one.Sent, one.Received, one.Lost} {
				t.EndS = max(t.EndS, end(s))
			}
		}
	}
	t.Marks, t.Gaps = marks(r, t.EndS), t.gaps(r)
	return t
}

func newFlow(r model.Result, f model.FlowResult) Flow {
	out := Flow{Name: f.Name}
	for _, s := range r.Series {
		if s.Flow != f.Name || s.Core != nil || s.Stream != nil || !usable(s) {
			continue
		}
		plain := s.Layer == "" && s.Cause == ""
		switch {
		case s.Metric == "send_pps" && plain:
			out.Sent = s
		case s.Metric == "receive_pps" && plain:
			out.Received = s
		case s.Metric == "lost_pps" && plain:
			out.Lost = s
		case s.Metric == "lost_pps":
			out.add(lineWords(f.Ledger, s), s)
		}
	}
	slices.SortStableFunc(out.Causes, func(a, b Cause) int { return cmp.Compare(total(b.Series), total(a.Series)) })
	out.addRest(f.Ledger)
	return out
}

// add puts what two nodes call the same together, as tables do.
func (f *Flow) add(name string, s model.Series) {
	i := slices.IndexFunc(f.Causes, func(c Cause) bool { return c.Words == name })
	if i < 0 {
		s.Values = slices.Clone(s.Values)
		f.Causes = append(f.Causes, Cause{name, s})
		return
	}
	if have := f.Causes[i].Series; have.StartSeconds == s.StartSeconds && have.StepSeconds == s.StepSeconds && len(have.Values) == len(s.Values) {
		for n, v := range s.Values {
			have.Values[n] += v
		}
	}
}

// Unplaced are lost packets of which the second is known and the place is not, though
// the ledger may know places of them all together.
const Unplaced = "elsewhere, not known by the second"

// addRest adds what no series of a line of the ledger has.
func (f *Flow) addRest(ledger model.Ledger) {
	if len(f.Lost.Values) == 0 {
		return
	}
	rest := f.Lost
	rest.Values = slices.Clone(rest.Values)
	for _, c := range f.Causes {
		s := c.Series
		if s.StartSeconds != rest.StartSeconds || s.StepSeconds != rest.StepSeconds {
			return
		}
		for i := range min(len(s.Values), len(rest.Values)) {
			rest.Values[i] -= s.Values[i]
		}
	}
	some := false
	for i, v := range rest.Values {
		rest.Values[i] = max(0, v) // NaN stays
		some = some || v >= 0.5
	}
	if some {
		f.Causes = append(f.Causes, Cause{f.restWords(ledger, total(rest)), rest})
	}
}

// restWords names what is left: of a line whose sequences are not known there is no series.
func (f *Flow) restWords(ledger model.Ledger, packets float64) string {
	var missing []string
	for _, l := range ledger.Lines {
		name := words.Line(l)
		if l.Packets > 0 && !slices.ContainsFunc(f.Causes, func(c Cause) bool { return c.Words == name }) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	switch {
	case len(missing) == 0 && packets <= float64(ledger.Unattributed)+0.5:
		return words.Unattributed
	case len(missing) == 1 && ledger.Unattributed == 0:
		return missing[0]
	}
	return Unplaced
}

// lineWords names a series of lost packets as the ledger's line of that name.
func lineWords(ledger model.Ledger, s model.Series) string {
	best := model.Line{Layer: s.Layer, Cause: s.Cause, Host: s.At}
	for _, l := range ledger.Lines {
		if l.Layer == s.Layer && l.Cause == s.Cause && (l.Host == s.At || best.Confidence == "") {
			best = l
		}
	}
	return words.Line(best)
}

// usable series have a length and a place in time.
func usable(s model.Series) bool {
	const longest = 1e9 // seconds
	return len(s.Values) > 0 && s.StepSeconds > 0 && end(s) < longest && s.StartSeconds > -longest
}

func end(s model.Series) float64 { return s.StartSeconds + s.StepSeconds*float64(len(s.Values)) }

func total(s model.Series) (sum float64) {
	for _, v := range s.Values {
		sum += known(v)
	}
	return sum * s.StepSeconds
}

// known is a value as arithmetic can bear it; what was not heard is nothing.
func known(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(v, 1e15)
}

// gaps are the times of the control connection's, and those without samples.
func (t Trial) gaps(r model.Result) []Span {
	var all []Span
	for _, g := range r.Gaps {
		var nodes []string
		for _, n := range g.Nodes {
			nodes = append(nodes, words.Name(n))
		}
		s := Span{max(0, g.StartS), min(g.StartS+g.DurationS, t.EndS), words.And(nodes) + " not heard"}
		if s.FromS < s.ToS {
			all = append(all, s)
		}
	}
	for _, f := range t.Flows {
		for _, s := range []model.Series{f.Sent, f.Received} {
			all = append(all, holes(s)...)
		}
	}
	slices.SortStableFunc(all, func(a, b Span) int { return cmp.Compare(a.FromS, b.FromS) })
	var out []Span
	for _, g := range all {
		if n := len(out); n > 0 && g.FromS <= out[n-1].ToS {
			out[n-1].ToS = max(out[n-1].ToS, g.ToS)
			continue
		}
		out = append(out, g)
	}
	return out
}

// holes are the times of which a series has no value.
func holes(s model.Series) (out []Span) {
	for i := 0; i < len(s.Values); i++ {
		from := i
		for i < len(s.Values) && math.IsNaN(s.Values[i]) {
			i++
		}
		if i > from {
			out = append(out, Span{s.StartSeconds + s.StepSeconds*float64(from), s.StartSeconds + s.StepSeconds*float64(i), "no samples"})
		}
	}
	return out
}
