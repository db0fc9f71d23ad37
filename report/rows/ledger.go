package rows

import (
	"cmp"
	"slices"

	"pelt/model"
)

// confidences are the words of a ledger's lines, the surest first.
var confidences = [...]string{"exact-seq", "exact-count", "bounded", "inferred"}

// Exact reports whether a line with this confidence holds neither more nor
// fewer packets than were lost there.
func Exact(confidence string) bool {
	return confidence == confidences[0] || confidence == confidences[1]
}

// lessSure is the weaker of two confidences; one that is no known word is weaker than all.
func lessSure(a, b string) string {
	rank := func(c string) int {
		if i := slices.Index(confidences[:], c); i >= 0 {
			return i
		}
		return len(confidences)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// Nodes lists the nodes that a flow passes, in its travel order: those of the
// lab, or the two ends and what was observed in between.
func Nodes(lab *model.LabFacts, observed []model.Observed, from, to string) []string {
	var all []string
	if lab != nil {
		all = slices.Clone(lab.Nodes)
	} else {
		for _, o := range observed {
			all = append(all, o.Node)
		}
	}
	a, b := slices.Index(all, from), slices.Index(all, to)
	if a > b && b >= 0 {
		slices.Reverse(all)
		a, b = len(all)-1-a, len(all)-1-b
	}
	if a < 0 || b < 0 || a == b {
		return []string{from, to}
	}
	return all[a : b+1]
}

// sumLedgers adds up the accounts of a row's trials. Equal causes are one line,
// which is as sure as the least sure of them. What only one trial can say
// (sequences, readings before and after) is kept where there is only one.
func sumLedgers(ms []member, nodes []string) model.Ledger {
	sum := model.Ledger{}
	at := map[[3]string]int{}
	most := map[int]uint64{}
	for _, m := range ms {
		l := m.flow.Ledger
		sum.Lost += l.Lost
		sum.Unattributed += l.Unattributed
		for _, line := range l.Lines {
			key := [3]string{line.Layer, line.Host, line.Cause}
			i, ok := at[key]
			if !ok {
				i = len(sum.Lines)
				at[key] = i
				sum.Lines = append(sum.Lines, model.Line{Layer: line.Layer, Host: line.Host, Cause: line.Cause, Confidence: line.Confidence})
			}
			s := &sum.Lines[i]
			s.Packets += line.Packets
			s.Confidence = lessSure(s.Confidence, line.Confidence)
			s.Evidence = addEvidence(s.Evidence, line.Evidence)
			if line.Packets > most[i] || !ok {
				most[i] = line.Packets
				s.Function, s.Interface, s.Sequences, s.Advice = line.Function, line.Interface, line.Sequences, line.Advice
			}
		}
	}
	if len(ms) > 1 {
		for i := range sum.Lines {
			sum.Lines[i].Sequences = nil
			for j := range sum.Lines[i].Evidence {
				e := &sum.Lines[i].Evidence[j]
				e.Before, e.After = 0, 0
			}
		}
	}
	layers := model.Layers()
	slices.SortStableFunc(sum.Lines, func(a, b model.Line) int {
		return cmp.Or(cmp.Compare(place(layers, a.Layer), place(layers, b.Layer)), cmp.Compare(place(nodes, a.Host), place(nodes, b.Host)))
	})
	return sum
}

// place is where a name stands in a list; an unknown one comes last.
func place(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 {
		return i
	}
	return len(list)
}

func addEvidence(sum, more []model.Evidence) []model.Evidence {
	for _, e := range more {
		i := slices.IndexFunc(sum, func(s model.Evidence) bool {
			return s.Counter == e.Counter && s.Host == e.Host && s.Scope == e.Scope && s.Unit == e.Unit && s.Role == e.Role
		})
		if i < 0 {
			sum = append(sum, e)
			continue
		}
		sum[i].Delta += e.Delta
		sum[i].Excess += e.Excess
		sum[i].After = e.After
	}
	return sum
}

// modes are how a node may be watched, the most exact first; "" is not at all.
var modes = [...]model.DropMode{model.DropsSeq, model.DropsCount, model.DropsOff, ""}

// LessWatched reports whether a node of mode a was watched less closely than one of mode b.
func LessWatched(a, b model.DropMode) bool {
	return slices.Index(modes[:], a) > slices.Index(modes[:], b)
}

// worstWatch says of each node that a row's trials passed how it was watched in
// the trial that watched it least, in the order in which trials name them.
func worstWatch(doc model.Document, ms []member) []model.Observed {
	var all []model.Observed
	for _, m := range ms {
		for _, o := range doc.Results[m.result].Observed {
			i := slices.IndexFunc(all, func(a model.Observed) bool { return a.Node == o.Node })
			switch {
			case i < 0:
				all = append(all, o)
			case LessWatched(o.Mode, all[i].Mode):
				all[i] = o
			}
		}
	}
	return all
}
