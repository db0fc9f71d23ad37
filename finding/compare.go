package finding

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

// Question says what to compare: runs, or the levels of a setting of one run.
type Question struct {
	Docs    []*model.Document // the first of several is the baseline
	Key     string            // of one run: the setting; "" is its variants
	Base    string            // the level that is the baseline; "" is the first of the plan
	Metrics []*table.Metric   // the foremost first; those of limits are added
	Limits  []table.Bound
}

// In is the question whose answer is to be in a language.
func (q Question) In(l words.Language) Question {
	q.Docs = slices.Clone(q.Docs)
	for i, d := range q.Docs {
		said := *d
		said.Language, q.Docs[i] = l, &said
	}
	return q
}

// Comparison is how the other sides differ from the first, which is the baseline.
type Comparison struct {
	By           string // a setting, or "run"
	Sides        []Side
	Metrics      []*table.Metric
	table.Layout          // its conditions are the places that trials of the sides have in common, its choices the sides
	Effects      []Effect // by metric, condition and side
	Differ       []Difference
	Limits       []Judged
	Flooded      []Effect // that were not made: nobody asked for the rate of which a share is lost

	missing []Effect // that could not be made: one side has no figure
}

type Side struct {
	Name string
	Doc  *model.Document
	Rows []table.Row
}

type Effect struct {
	table.Effect
	Metric          *table.Metric
	Condition, Side int
}

// Refusal says why there is no comparison, or no page. With Ask, the user asked for
// what is not there; else nothing usable was measured.
type Refusal struct {
	Finding
	Ask bool
}

func (r *Refusal) Error() string { return r.Text() }

// SaidIn says the error in a language; see words.Language.Error.
func (r *Refusal) SaidIn(l words.Language) string { return r.In(l).Text() }

func refuse(ask bool, code string, named ...any) error {
	return &Refusal{say(code, Answer, named...), ask}
}

// Compare answers a question. Its error is a *Refusal.
func Compare(q Question) (Comparison, error) {
	for _, l := range q.Limits {
		for _, m := range l.Metrics {
			if !slices.Contains(q.Metrics, m) {
				q.Metrics = append(slices.Clone(q.Metrics), m)
			}
		}
	}
	by := Comparison.byLevels
	if len(q.Docs) > 1 {
		by = Comparison.byRuns
	}
	c, keys, err := by(Comparison{Metrics: q.Metrics}, q)
	if err != nil {
		return c, err
	}
	c.compare(keys)
	if len(c.Effects) == 0 {
		return c, c.nothing()
	}
	c.judge(q.Limits)
	return c, nil
}

func (c Comparison) byLevels(q Question) (Comparison, []table.Key, error) {
	rows := comparedRows(q.Docs[0])
	settings := table.Settings(rows)
	var names []string
	for _, k := range table.Varying(rows, settings...) {
		if k.Name != "direction" {
			names = append(names, k.Name)
		}
	}
	varies := []any{"run", q.Docs[0].ID, "varies", fewNames(q.Docs[0].Language, names)}
	if q.Key == "" && !slices.Contains(names, "variant") {
		return c, nil, refuse(true, "compare.ask", varies...)
	}
	c.By = cmp.Or(q.Key, "variant")
	i := slices.IndexFunc(settings, func(k table.Key) bool {
		return k.Name == c.By || strings.EqualFold(k.Label, c.By)
	})
	if i < 0 || settings[i].Name == "direction" {
		return c, nil, refuse(true, "compare.setting", append(varies, "setting", c.By)...)
	}
	key := settings[i]
	c.By = key.Name
	for _, g := range table.By(rows, key) {
		if l := g.Level(key.Name); l.Known {
			s := Side{key.FormatIn(q.Docs[0].Language, l), q.Docs[0], g.Rows}
			c.Sides = append(c.Sides, s)
			if q.Base != "" && (q.Base == s.Name || q.Base == l.String()) {
				c.Sides = append([]Side{s}, c.Sides[:len(c.Sides)-1]...)
				q.Base = ""
			}
		}
	}
	if q.Base != "" {
		var levels []string
		for _, s := range c.Sides {
			levels = append(levels, s.Name)
		}
		return c, nil, refuse(true, "compare.level", "setting", c.By, "level", q.Base,
			"levels", fewNames(q.Docs[0].Language, levels))
	}
	if len(c.Sides) < 2 {
		return c, nil, refuse(true, "compare.setting", append(varies, "setting", c.By)...)
	}
	c.Differ = differences(c.Sides, nil, false)
	return c, append(table.Settings(rows, key.Name), table.KeyOf("goal_loss_ratio"), table.KeyOf("flow")), nil
}

// ofTraffic are the roles of settings in which runs that are compared never differ.
var ofTraffic = []model.Role{model.Traffic, model.Way}

// byRuns makes a side of each run. The keys are those by which trials of the runs are
// matched; a setting of which each run has one level is what differs.
func (c Comparison) byRuns(q Question) (Comparison, []table.Key, error) {
	c.By = "run"
	var rows []table.Row
	for i, d := range q.Docs {
		again := func(o *model.Document) bool { return o == d || o.ID == d.ID && d.ID != "" }
		if slices.ContainsFunc(q.Docs[:i], again) {
			return c, nil, refuse(true, "compare.twice", "run", d.ID)
		}
		c.Sides = append(c.Sides, Side{d.ID, d, comparedRows(d)})
		rows = append(rows, c.Sides[i].Rows...)
	}
	var keys, apart []table.Key
	for _, k := range table.Settings(rows) {
		known, several, first, same := true, "", "", true
		for i, s := range c.Sides {
			levels := levelsOf(s.Rows, k)
			if i == 0 {
				first = strings.Join(levels, "\x00")
			}
			if len(levels) > 1 {
				several = s.Name
			}
			known, same = known && len(levels) > 0, same && strings.Join(levels, "\x00") == first
		}
		switch {
		case known && (same || several != "" || slices.Contains(ofTraffic, model.RoleOf(k.Name))):
			keys = append(keys, k)
		case several == "":
			apart = append(apart, k)
		default:
			return c, nil, refuse(true, "compare.silent", "run", several, "setting", k.Name)
		}
	}
	size := func(k table.Key) bool { return k.Name == "payload_bytes" || k.Name == "frame_bytes" }
	if !slices.ContainsFunc(keys, size) {
		keys = append(keys, table.KeyOf("payload_bytes"))
	}
	c.Differ = differences(c.Sides, apart, true)
	c.nameRuns(apart)
	return c, append(keys, table.KeyOf("goal_loss_ratio"), table.KeyOf("flow")), nil
}

// comparedRows are the rows of a run's trials; of its searches those with what was found, without the figures of a
// trial. Each of several searches is a repeat: those count of which a report takes the middle one, by the same rates.
func comparedRows(d *model.Document) []table.Row {
	rows := table.Unsearched(table.Rows(d))
	searches := table.Searches(rows)
	for _, g := range table.By(searches, SearchKeys(searches)...) {
		for _, r := range counting(g) {
			flow, found := r.Flow.Bare(), *r.Search
			found.Throughput, r.Flow, r.Search = found.Rate(), &flow, &found
			rows = append(rows, r)
		}
	}
	return rows
}

func levelsOf(rows []table.Row, k table.Key) []string {
	var out []string
	for _, g := range table.By(rows, k) {
		if l := g.Level(k.Name); l.Known {
			out = append(out, k.Format(l))
		}
	}
	return out
}

// compare compares all sides with the first, under each level of the keys that varies.
func (c *Comparison) compare(keys []table.Key) {
	side := map[*model.Result]int{}
	var rows []table.Row
	for i, s := range c.Sides {
		for _, r := range s.Rows {
			side[r.Trial] = i
		}
		rows = append(rows, s.Rows...)
	}
	of := table.Key{Name: "side", Of: func(r table.Row) table.Level {
		return table.Level{Value: model.Number(float64(side[r.Trial])), Known: true}
	}}
	c.Layout = table.LayBy(rows, table.Varying(rows, keys...), []table.Key{of})
	c.Layout.Compare(c.Metrics...)
	for _, m := range c.Metrics {
		for i, under := range c.Conditions {
			for _, p := range under.Places {
				e := Effect{p.Effects[m], m, i, int(p.Level(of.Name).Number)}
				base, other := c.Stat(e, 0).N, p.Stat(m).N
				switch {
				case e.Side == 0 || base == 0 && other == 0:
				case base == 0 || other == 0:
					c.missing = append(c.missing, e)
				case table.FloodLoss(m, p.Group, c.Group(i, 0)):
					c.Flooded = append(c.Flooded, e)
				default:
					c.Effects = append(c.Effects, e)
				}
			}
		}
	}
}

// Group is what a side measured under a condition.
func (c Comparison) Group(condition, side int) table.Group {
	under := c.Conditions[condition]
	out := table.Group{Keys: under.Keys, Levels: under.Levels}
	for _, p := range under.Places {
		if int(p.Choice.Levels[0].Number) == side {
			out.Rows = p.Rows
		}
	}
	return out
}

// at says under which condition an effect is, as the end of a sentence.
func (c Comparison) at(e Effect) string { return at(c.Conditions[e.Condition].Group) }

func (c *Comparison) nothing() error {
	if len(c.Flooded) > 0 {
		return refuse(false, "compare.flood")
	}
	for _, s := range c.Sides {
		if len(table.Usable(s.Rows)) == 0 {
			return refuse(false, "compare.unusable", "side", s.Name, "run", s.Doc.ID)
		}
	}
	if slices.ContainsFunc(c.Conditions, func(u table.Condition) bool { return len(u.Tried()) > 1 }) {
		return refuse(false, "compare.unmeasured")
	}
	return refuse(false, "compare.apart")
}

func (c Comparison) Stat(e Effect, side int) table.Stat {
	return c.Group(e.Condition, side).Stat(e.Metric)
}

// few reports whether an effect rests on too few repeats to be told at all.
func (e Effect) few() bool { return math.IsNaN(e.Low) }

func (c Comparison) TooFew() bool {
	return !slices.ContainsFunc(c.Effects, func(e Effect) bool { return !e.few() })
}

// size orders effects of one metric; of several, as a part of the metric's resolution.
func (e Effect) size() float64 {
	if e.Points {
		return math.Abs(e.Change)
	}
	return math.Abs(math.Log(max(1+e.Change, 0)))
}

// phrase names an effect with its figures: "Goodput -78 %, at 64 B (21 Mbit/s against 97 Mbit/s)".
func (c Comparison) phrase(e Effect) string {
	l := c.language()
	if place := within(c.Conditions[e.Condition].Group); place != "" {
		return l.Sayf("%s, %s (%s)", e.figure(l), place, c.values(e))
	}
	return l.Sayf("%s (%s)", e.figure(l), c.values(e))
}

func (c Comparison) values(e Effect) string {
	other, base := e.Metric.Format(c.Stat(e, e.Side).Median), e.Metric.Format(c.Stat(e, 0).Median)
	return c.language().Sayf("%s against %s", unit.Bare(other, base), base)
}

// figure names an effect in two words: "Goodput -78 %".
func (e Effect) figure(l words.Language) string {
	change := unit.Change(e.Change, e.Points)
	if strings.HasSuffix(change, " times") {
		return l.Say(e.Metric.Label) + " " + l.Sayf("%s as high", l.Say(change))
	}
	return l.Say(e.Metric.Label) + " " + l.Say(change)
}

// language is what a report of the comparison is to be written in.
func (c Comparison) language() words.Language { return c.Sides[0].Doc.Language }

func (c Comparison) Findings() []Finding {
	var out []Finding
	together := map[string][]string{} // sides that one answer tells of, by code
	more := 0
	for i, s := range c.Sides[1:] {
		f := c.side(i + 1)
		if n, ok := f.Number("repeats_count", "more"); ok && f.Code != "compare.near" {
			more = max(more, int(n)+c.Stat(c.Effects[0], i+1).N)
		}
		names := append(together[f.Code], s.Name)
		together[f.Code] = names
		if at := slices.IndexFunc(out, func(o Finding) bool { return o.Code == f.Code }); at >= 0 &&
			(f.Code == "compare.tied" || f.Code == "compare.few") {
			out[at] = out[at].with("side", fewNames(c.language(), names), "first", names[0])
			continue
		}
		out = append(out, f)
	}
	out = append(out, c.differ()...)
	for _, l := range c.Limits {
		out = append(out, l.Finding)
	}
	proven := len(only(c.Effects, func(e Effect) bool { return e.Proven() && e.Verdict != table.Tied }))
	out = append(out, say("compare.family", Fact, "proven_count", float64(proven), "tests_count", len(c.Effects),
		"none", when(proven == 0, "yes")))
	if more > 0 && c.By != "run" {
		out = append(out, runAgain(more))
	}
	return append(out, c.doubts()...)
}

func (c Comparison) side(i int) Finding {
	f := say("compare.tied", Answer, "side", c.Sides[i].Name, "base", c.Sides[0].Name)
	worst := map[table.Verdict]Effect{} // the largest of the foremost metric; of what is open, of all metrics
	effects := only(c.Effects, func(e Effect) bool { return e.Side == i })
	few, judged := 0, slices.ContainsFunc(effects, func(e Effect) bool { return !e.few() })
	for _, e := range effects {
		if few = max(few, e.Needed); e.few() {
			e.Needed = 0 // so many would let it be judged, and need not prove it
		}
		w, ok := worst[e.Verdict]
		switch {
		case !ok, w.Metric == e.Metric && e.size() > w.size(),
			judged && e.Verdict == table.TooFew && e.size()/e.Matters > w.size()/w.Matters:
			worst[e.Verdict] = e
		}
	}
	tell := func(code string, e Effect) {
		other, base := c.Group(e.Condition, i), c.Group(e.Condition, 0)
		f.Code = code
		f = f.with("what", c.phrase(e), "figure", e.figure(c.language()), "metric", e.Metric.Name,
			"place", Capital(within(c.Conditions[e.Condition].Group)), "best", other, "base", base,
			"change_ratio:"+e.Metric.Name, e.Change)
		if e.Needed < table.MostNeeded {
			f = f.with("repeats_count:more", some(e.Needed))
		} else {
			f = f.with("never", "yes")
		}
	}
	better, isBetter := worst[table.BetterThan]
	worse, isWorse := worst[table.WorseThan]
	differs, isDifferent := worst[table.Differs]
	open, isOpen := worst[table.TooFew]
	switch {
	case isBetter && isWorse:
		tell("compare.mixed", better)
		f.Words["better"] = f.Words["what"]
		tell("compare.mixed", worse)
	case isBetter:
		tell("compare.better", better)
	case isWorse:
		tell("compare.worse", worse)
	case isDifferent:
		tell("compare.differs", differs)
	case isOpen && !judged:
		open.Needed = few
		tell("compare.few", open)
	case isOpen && open.size() > open.Matters:
		tell("compare.open", open)
	case isOpen && open.Needed >= table.MostNeeded:
		tell("compare.small", open)
	case isOpen:
		tell("compare.near", open)
	}
	return f
}

// farApart is how long after each other two runs may be made before it is a doubt, in seconds.
const farApart = 60

func (c Comparison) doubts() []Finding {
	var out []Finding
	var rows []table.Row
	apart := 0.0
	for i, s := range c.Sides {
		rows = append(rows, s.Rows...)
		apart = max(apart, math.Abs(s.Doc.Started.Sub(c.Sides[0].Doc.Started).Seconds()))
		if i == 0 {
			continue
		}
		for _, x := range []struct{ has, lacks int }{{0, i}, {i, 0}} {
			var names []string
			for at, under := range c.Conditions {
				if len(c.Group(at, x.has).Rows) > 0 && len(c.Group(at, x.lacks).Rows) == 0 {
					names = append(names, cmp.Or(PlaceName(under.Group), c.Sides[x.has].Name))
				}
			}
			if len(names) > 0 {
				out = append(out, say("compare.only", Doubt, "side", c.Sides[x.has].Name,
					"other", c.Sides[x.lacks].Name, "places", fewNames(c.language(), names)))
			}
		}
	}
	if apart > farApart {
		out = append(out, say("compare.time", Doubt, "apart_s", apart, "apart", length(c.language(), apart)))
	}
	return append(out, leftOutRule(rows)...)
}

// DefaultMetrics are the words for what is compared if nobody says. Packets a second
// change as goodput does, and fewer comparisons tell more.
const DefaultMetrics = "loss_free,goodput,loss,delay,cpu"

// Metrics are those that a text names, with commas between them.
func Metrics(text string) (all []*table.Metric, err error) {
	for word := range strings.SplitSeq(text, ",") {
		named := table.Named(strings.TrimSpace(word))
		if len(named) == 0 {
			return nil, words.Errorf("no figure %q; want one of %s", word, strings.Join(table.Words(), ", "))
		}
		all = append(all, named...)
	}
	return all, nil
}
