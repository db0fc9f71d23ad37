package table

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"pelt/model"
	"pelt/words"
)

// Level is the value of one key in a group. Known is false where the key does not
// apply to the group's rows, or was not written down.
type Level struct {
	model.Value
	Known bool
}

// Group is the rows that share the levels of some keys. Rows are those of all
// trials; only valid trials make figures.
type Group struct {
	Keys   []Key
	Levels []Level
	Rows   []Row
}

// By parts rows into groups: each row is in exactly one. Groups stand in the
// order of their levels: numbers rise; words have the order of the plan, then that
// of people, receiver-2 before receiver-10. Rows keep their order.
func By(rows []Row, keys ...Key) []Group {
	var out []Group
	at := map[string]int{}
	for _, r := range rows {
		levels := make([]Level, len(keys))
		var name strings.Builder
		for i, k := range keys {
			levels[i] = k.Of(r)
			if levels[i].Known {
				name.WriteString(levels[i].Text + "=" + levels[i].String())
			}
			name.WriteByte(0)
		}
		i, ok := at[name.String()]
		if !ok {
			i = len(out)
			at[name.String()] = i
			out = append(out, Group{Keys: keys, Levels: levels})
		}
		out[i].Rows = append(out[i].Rows, r)
	}
	if len(out) < 2 {
		return out
	}
	orders := make([][]model.Value, len(keys))
	for i, k := range keys {
		orders[i] = planned(rows, k.Name)
	}
	slices.SortStableFunc(out, func(a, b Group) int {
		for i := range keys {
			if c := compareLevels(orders[i], a.Levels[i], b.Levels[i]); c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

func Varying(rows []Row, keys ...Key) []Key {
	var out []Key
	for _, k := range keys {
		if len(By(rows, k)) > 1 {
			out = append(out, k)
		}
	}
	return out
}

// planned are a key's levels in the order of the rows' plans; none if the plans say nothing of it.
func planned(rows []Row, key string) (levels []model.Value) {
	add := func(list ...model.Value) {
		for _, v := range list {
			if !slices.Contains(levels, v) {
				levels = append(levels, v)
			}
		}
	}
	var last *model.Document
	for _, r := range rows {
		if r.Doc == last {
			continue
		}
		last = r.Doc
		switch key {
		case "flow":
			for _, f := range last.Plan.Flows {
				add(model.Word(f.Name))
			}
		case "layer":
			for _, l := range model.Layers() {
				add(model.Word(l))
			}
			add(model.Word(Unattributed))
		case "from", "to":
			for _, name := range last.Plan.Hosts {
				add(model.Word(name))
			}
		case "variant":
			for _, v := range last.Plan.Variants {
				add(model.Word(v.Name))
			}
		}
		for _, f := range last.Plan.Factors {
			if f.Knob == key {
				add(f.Levels...)
			}
		}
		for _, c := range last.Plan.Design.Cells {
			if v, ok := c[key]; ok {
				add(v)
			}
		}
	}
	return levels
}

// compareLevels puts unknown levels first and numbers before words.
func compareLevels(order []model.Value, a, b Level) int {
	rank := func(l Level) int {
		switch {
		case !l.Known:
			return 0
		case l.Text == "":
			return 1
		}
		return 2
	}
	place := func(l Level) int {
		if i := slices.Index(order, l.Value); i >= 0 && l.Text != "" {
			return i
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Number, b.Number),
		cmp.Compare(place(a), place(b)), naturally(a.Text, b.Text))
}

var digits = regexp.MustCompile(`[0-9]+`)

// naturally compares texts as people do: by the numbers in them.
func naturally(a, b string) int {
	padded := func(s string) string {
		return digits.ReplaceAllStringFunc(s, func(number string) string { return fmt.Sprintf("%20s", number) })
	}
	return cmp.Or(strings.Compare(padded(a), padded(b)), strings.Compare(a, b))
}

func RowsOf(groups []Group) (rows []Row) {
	for _, g := range groups {
		rows = append(rows, g.Rows...)
	}
	return rows
}

// Level is the group's level of a key; it is not known if the group has no such key.
func (g Group) Level(key string) Level {
	for i, k := range g.Keys {
		if k.Name == key {
			return g.Levels[i]
		}
	}
	return Level{}
}

// Language is what a report of the group is to be written in.
func (g Group) Language() words.Language { return Language(g.Rows) }

// Say says an English text in the language of the group's report.
func (g Group) Say(text string) string { return g.Language().Say(text) }

// Sayf says a format, and puts values into it.
func (g Group) Sayf(format string, values ...any) string { return g.Language().Sayf(format, values...) }

// Name is the group's levels as people say them, each once: "64 B, every 1 ms".
func (g Group) Name() string {
	var names []string
	for i, k := range g.Keys {
		if text := k.FormatIn(g.Language(), g.Levels[i]); text != "" && !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return g.Language().Join(names)
}

// Trials counts the group's trials by how they ended. Tries of the same repeat are
// one trial: it is valid if one of them was, else invalid if one of them was.
func (g Group) Trials() (valid, invalid, aborted int) {
	type slot struct {
		doc    *model.Document
		cell   string
		repeat int
	}
	best := map[slot]model.State{}
	for _, r := range g.Rows {
		at := slot{r.Doc, r.Trial.Cell.Key(), r.Trial.Repeat}
		if was := best[at]; was == "" || r.Trial.State == model.Valid || was == model.Aborted {
			best[at] = r.Trial.State
		}
	}
	for _, s := range best {
		switch s {
		case model.Valid:
			valid++
		case model.Invalid:
			invalid++
		default:
			aborted++
		}
	}
	return valid, invalid, aborted
}

// Sample is the values of a metric in one group, one for each valid trial.
type Sample struct {
	Values []float64
	// blocks are the repeats in which the values were measured, one for each value;
	// nil if they are not known. Trials of one repeat of a run ran close together.
	blocks []block
}

type block struct {
	doc    *model.Document
	repeat int
}

// Sample takes a metric of each valid trial that has it. Several lines of a ledger
// add up; of several other rows of one trial the middle one stands for it.
func (g Group) Sample(m *Metric) Sample {
	var trials []Row
	values := map[*model.Result][]float64{}
	for _, r := range g.Rows {
		if v, ok := m.Value(r); ok && r.Valid() {
			if values[r.Trial] == nil {
				trials = append(trials, r)
			}
			values[r.Trial] = append(values[r.Trial], v)
		}
	}
	var s Sample
	for _, r := range trials {
		v := median(values[r.Trial])
		if r.Line != nil {
			v = 0
			for _, x := range values[r.Trial] {
				v += x
			}
		}
		s.Values = append(s.Values, v)
		s.blocks = append(s.blocks, block{r.Doc, r.Trial.Repeat})
	}
	return s
}

func (g Group) Sum(metric string) (sum float64) {
	m := MetricOf(metric)
	for _, r := range g.Rows {
		if v, ok := m.Value(r); ok && r.Valid() {
			sum += v
		}
	}
	return sum
}

// Stat is the summary of a metric over a group: the median, and the interval that
// holds the true median. No distribution is assumed. From six values on the confidence
// is 95 % or more; of fewer values the interval is the lowest to the highest.
type Stat struct {
	Median, Low, High float64
	N                 int // trials; 0: nothing was measured, and the other fields are NaN
}

// Middle is the median of a metric by its name, NaN if no valid trial has it.
func (g Group) Middle(metric string) float64 { return g.Stat(MetricOf(metric)).Median }

func (g Group) Stat(m *Metric) Stat { return Summary(g.Sample(m).Values) }

func Summary(values []float64) Stat {
	n := len(values)
	if n == 0 {
		return Stat{Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
	}
	s := slices.Sorted(slices.Values(values))
	// The k-th lowest to the k-th highest value hold the median unless fewer than k
	// of n values lie on one side of it: a binomial chance.
	miss, k := 0.0, 0
	for {
		low, _ := math.Lgamma(float64(k + 1))
		high, _ := math.Lgamma(float64(n - k + 1))
		all, _ := math.Lgamma(float64(n + 1))
		next := miss + math.Exp(all-low-high-float64(n)*math.Ln2)
		if k > 0 && 2*next > 1-confidence {
			break
		}
		miss, k = next, k+1
	}
	return Stat{Median: median(values), Low: s[k-1], High: s[n-k], N: n}
}

// median of values, NaN if there are none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	low, high := s[(len(s)-1)/2], s[len(s)/2]
	return low + (high-low)/2
}

// MostFirst are the names of some amounts, that of the largest first.
func MostFirst[N cmp.Ordered](amounts map[string]N) []string {
	return slices.SortedFunc(maps.Keys(amounts), func(a, b string) int {
		return cmp.Or(cmp.Compare(amounts[b], amounts[a]), cmp.Compare(a, b))
	})
}
