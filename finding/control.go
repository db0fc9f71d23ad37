package finding

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/plan"
	"pelt/table"
)

func controlKind() Kind {
	return Kind{
		Preset: plan.Control,
		Use:    "cc TARGET",
		Short:  "Compare congestion controls: BBR against CUBIC under loss",
		Long: `cc transfers data by TCP under each congestion control in turn, with the same losses. It
shows which is faster, by how much, whether that may be chance, and how much each delays
other packets. TARGET is as for pelt curve.`,
		Example: `  pelt cc lab:direct --control cubic,bbr,reno --loss 0,1%,10% --bytes 640MB`,
		Title:   "Congestion controls",
		Rules:   []Rule{controlRule, controlStreams, controlDoubts},
	}
}

// Parts of sentences.
const (
	ccSpeed = `[{speed_index range} times as fast as {base}|{speed_ratio:more range} faster than {base}|` +
		`{speed_ratio:less range} slower than {base}]`
	ccLooks = `{who} [looks {speed_index} times as fast as {base}|looks {speed_ratio:more} faster than {base}|` +
		`looks {speed_ratio:less} slower than {base}|and {base} look alike][ with {where}]`
)

var controlSentences = map[string]string{
	"cc.told":    `{who} is ` + ccSpeed + `[ with {where}].`,
	"cc.nothing": `{base} carried nothing[ with {where}], and {who} carried data.`,
	"cc.looks":   ccLooks + `.¶{more_count # more repeat/# more repeats} would probably prove it.`,
	"cc.few":     ccLooks + `.¶Too few repeats to tell: at least {more_count # more is/# more are} needed.`,
	"cc.tied":    `{who} and {base} are statistically tied[ with {where}].`,
	"cc.noise": `{who} and {base} cannot be told apart[ with {where}].¶Repeats of one control differ more than ` +
		`the two do.`,
	"cc.alone": `{who} [{timed ?}takes|carries] {*metric:best range}[ with {where}].` +
		`[¶[{base}|It] [{timed ?}takes|carries] {*metric:worst}[ with {worst}].]`,
	"cc.none": `No trial says which congestion control it used.`,
	"cc.queue": `95 % of small packets waited [{none ?}less than 1 µs|at most {queueing_p95_ns:most}] in queues with ` +
		`{who}[, and {queueing_p95_ns:least} with {base}][ ({where})].`,
	"cc.share": `Side by side {who} takes {control_share_ratio:most} of the goodput and {base} ` +
		`{control_share_ratio:least}[ with {where}].`,
	"cc.unfair": `Streams of {who} share unevenly[ with {where}] (Jain's index {stream_fairness_index}; 1 is even).`,
	"cc.cut": `[{all ?}All transfers were|{cut_count} of {trials_count} transfers {cut_count was/were}] cut by ` +
		`--time, so controls are compared by goodput, not by time.`,
	"cc.cut-time": `[{all ?}All transfers were|{cut_count} of {trials_count} transfers {cut_count was/were}] cut by ` +
		`--time: the times of their controls are at least the times shown.`,
	"cc.held": `TCP waited for buffers up to {tcp_held_back_ratio:worst} of the time ({where}): the congestion ` +
		`control was not the only limit.`,
	"cc.other": `Where {who} was asked for, the kernel used {used}: figures called {who} are of {used}.`,
	"cc.memory": `The {host}'s kernel starts a connection with what earlier ones to the same address learnt, so ` +
		`controls may influence each other. To turn that off there: sysctl -w net.ipv4.tcp_no_metrics_save=1`,
	"cc.page": `See rates and queues over time:`,
}

// Controls is how the congestion controls of a run compare with the first of them, the baseline. A change above 0 is
// faster, whatever the metric.
type Controls struct {
	table.Layout               // a condition is all that varies beside the control
	Metric       *table.Metric // that they are compared by
	Baseline     string
	Groups       []table.Group // by condition, then by control
	Speeds       []table.Effect
}

func CompareControls(rows []table.Row) (c Controls) {
	if rows = transfers(rows); len(rows) == 0 {
		return c
	}
	under := table.Vary(table.Rows(rows[0].Doc), "control") // also where only one condition has usable trials
	c.Layout = table.LayBy(rows, under, []table.Key{table.KeyOf("control")})
	c.Metric = speedMetric(rows)
	c.Baseline = c.Conditions[0].Places[0].Choice.Name()
	c.Compare(c.Metric)
	for _, under := range c.Conditions {
		for i, p := range under.Places {
			e := p.Effects[c.Metric]
			if i > 0 && c.Metric.Name == "completion_s" && !math.IsNaN(e.Change) {
				e = speed(e, p.Group, under.Places[0].Group)
			}
			if len(p.Rows) > 0 {
				c.Groups, c.Speeds = append(c.Groups, p.Group), append(c.Speeds, e)
			}
			p.Effects[c.Metric] = e
		}
	}
	return c
}

func transfers(rows []table.Row) []table.Row {
	return only(table.Usable(rows), func(r table.Row) bool {
		return r.Flow.TCP != nil && table.KeyOf("control").Of(r).Known
	})
}

// speedMetric is the time of transfers that have an end. Of a transfer that was cut the
// time is not known, so then it is the goodput, if every transfer has one.
func speedMetric(rows []table.Row) *table.Metric {
	completion, goodput := table.MetricOf("completion_s"), table.MetricOf("goodput_bps")
	timed, cut, carried := true, false, true
	for _, r := range rows {
		_, ends := completion.Value(r)
		_, bits := goodput.Value(r)
		timed, carried, cut = timed && ends, carried && bits, cut || cutShort(r)
	}
	if timed && !(cut && carried) {
		return completion
	}
	return goodput
}

func cutShort(r table.Row) bool {
	v, ok := table.MetricOf("unfinished_ratio").Value(r)
	return ok && v > 0
}

// speed turns an effect on times into one on speeds. Two that were both cut are never
// told apart by their times, and no repeats would help.
func speed(e table.Effect, g, base table.Group) table.Effect {
	e.Change, e.Low, e.High = 1/(1+e.Change)-1, 1/(1+e.High)-1, 1/(1+e.Low)-1
	if slices.ContainsFunc(g.Rows, cutShort) && slices.ContainsFunc(base.Rows, cutShort) {
		e.Verdict, e.Needed, e.Low, e.High = table.TooFew, 0, math.NaN(), math.NaN()
	}
	return e
}

// Where names the condition of a group; "" where nothing but the control varies.
func (c Controls) Where(g table.Group) string {
	n := len(c.Under)
	return table.Group{Keys: g.Keys[:n], Levels: g.Levels[:n], Rows: g.Rows}.Name()
}

// ControlOf names the congestion control of a group.
func ControlOf(g table.Group) string { return table.KeyOf("control").Format(g.Level("control")) }

func controlRule(rows []table.Row) []Finding {
	c := CompareControls(rows)
	if len(c.Groups) == 0 {
		if len(table.Usable(rows)) == 0 {
			return nil
		}
		return []Finding{say("cc.none", Answer), nextOf("none.next", rows[0].Doc)}
	}
	out := c.contrasts()
	if !slices.ContainsFunc(out, func(f Finding) bool { return f.Level == Answer }) {
		out = append(c.alone(), out...)
	}
	focus := c.Where(c.Groups[0])
	if contrastRank[out[0].Code] > 0 {
		focus = c.Where(*out[0].Places[""])
	}
	fastest := table.Rank(c.Metric, c.groupsUnder(focus))[0]
	limit := heldBackBy(fastest.Limit(), fastest)
	if focus != "" {
		limit = limit.with("where", fastest.Sayf("%s (%s)", ControlOf(fastest), focus))
	}
	out = slices.Concat(out, []Finding{limit}, c.queues(), c.cut())
	return append(out, c.more(out)...)
}

// contrasts says how each control compares with the baseline, what says most first. The answer is the foremost of one
// control, and what is as sure: of another control, or of the same one that is faster under one condition and slower
// under another. Of controls that compete the answer is how they share: see controlStreams.
func (c Controls) contrasts() []Finding {
	var all []Finding
	weights := map[string]float64{} // what is proved before what is not, then the larger difference
	for i, e := range c.Speeds {
		if g := c.Groups[i]; ControlOf(g) != c.Baseline && !math.IsNaN(e.Change) {
			f := c.contrast(g, e)
			all = append(all, f)
			weights[g.Name()] = contrastRank[f.Code] + min(math.Abs(math.Log1p(e.Change)), 100)
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(weights[b.Places[""].Name()], weights[a.Places[""].Name()])
	})
	slower, code := map[string]bool{}, "" // as each control was first told of
	for i, f := range all {
		who := f.Words["who"]
		alike := func(o Finding) bool { return o.Words["who"] == who && o.Code == f.Code && len(o.Numbers) == 0 }
		if len(only(all, alike)) == len(c.Conditions) { // the same under each, without a number
			all[i].Words["where"] = ""
		}
		sure := code == "" || code == f.Code && !f.Has("more_count", "")
		competes := strings.Contains(who, model.MixSeparator)
		before, seen := slower[who]
		turns := f.Code == "cc.told" && f.Has("speed_ratio", "less") != before
		if (!seen || turns) && len(Of(all, Answer)) < mostAnswers && sure && !competes {
			all[i].Level, code = Answer, f.Code
		}
		if !seen {
			slower[who] = f.Has("speed_ratio", "less")
		}
	}
	return only(all, func(f Finding) bool { return f.Code != "cc.few" || f.Level == Answer }) // it says it for all
}

const mostAnswers = 2

// contrastRank has the codes of contrasts that tell two controls apart, by how sure they are.
var contrastRank = map[string]float64{"cc.nothing": 2000, "cc.told": 1000, "cc.looks": 500, "cc.few": 200}

func (c Controls) contrast(g table.Group, e table.Effect) Finding {
	f := say("cc.looks", Fact, "", g, "who", ControlOf(g), "base", c.Baseline, "where", c.Where(g))
	told := e.Verdict == table.BetterThan || e.Verdict == table.WorseThan
	switch {
	case math.IsInf(e.Change, 1):
		f.Code = "cc.nothing"
		return f
	case told:
		f.Code = "cc.told"
	case e.Verdict == table.Tied:
		f.Code = "cc.tied"
		return f
	case e.Needed == 0 || e.Needed >= table.MostNeeded:
		f.Code = "cc.noise"
		return f
	default:
		f = f.with("more_count", e.Needed)
		if math.IsNaN(e.Low) {
			f.Code = "cc.few"
		}
	}
	metric, role, value, low, high := "speed_ratio", "more", e.Change, e.Low, e.High
	switch {
	case !told && math.Abs(e.Change) < c.Metric.Resolution: // looks alike
		return f
	case e.Change >= 1:
		metric, role, value, low, high = "speed_index", "", 1+e.Change, 1+e.Low, 1+e.High
	case e.Change < 0:
		role, value, low, high = "less", -e.Change, -e.High, -e.Low
	}
	f = f.with(metric+":"+role, value)
	if told {
		f = f.with(metric+":"+role+"-low", low, metric+":"+role+"-high", high)
	}
	return f
}

func (c Controls) alone() []Finding {
	ranked := table.Rank(c.Metric, c.Groups)
	best, worst := ranked[0], ranked[len(ranked)-1]
	f := say("cc.alone", Answer, "best", best, "who", ControlOf(best), "where", c.Where(best), "metric", c.Metric.Name,
		"timed", when(c.Metric.Name == "completion_s", "yes"))
	if s := worst.Stat(c.Metric); len(ranked) > 1 && s.N > 0 {
		f = f.with("worst", worst, "worst", c.Where(worst),
			"base", when(ControlOf(worst) != ControlOf(best), ControlOf(worst)))
	}
	return []Finding{f}
}

func (c Controls) groupsUnder(under string) []table.Group {
	return only(c.Groups, func(g table.Group) bool { return c.Where(g) == under })
}

// queues says how long small packets waited beside the transfers, under the condition with the longest wait.
func (c Controls) queues() []Finding {
	const queueing = "queueing_p95_ns"
	most := largest(c.Groups, queueing)
	if math.IsNaN(most.Middle(queueing)) {
		return nil
	}
	f := say("cc.queue", Fact, "most", most, "who", ControlOf(most), "where", c.Where(most),
		"none", when(most.Middle(queueing) < 1000, "yes"))
	known := only(c.groupsUnder(c.Where(most)), func(g table.Group) bool { return !math.IsNaN(g.Middle(queueing)) })
	if least := smallest(known, queueing); ControlOf(least) != ControlOf(most) {
		f = f.with("least", least, "base", ControlOf(least))
	}
	return []Finding{f}
}

func (c Controls) cut() []Finding {
	cut, all := 0, 0
	for _, g := range c.Groups {
		for _, v := range g.Sample(table.MetricOf("unfinished_ratio")).Values {
			cut, all = cut+int(v), all+1
		}
	}
	if cut == 0 {
		return nil
	}
	f := say("cc.cut", Doubt, "cut_count", cut, "trials_count", all, "all", when(cut == all && all > 1, "yes"))
	if c.Metric.Name == "completion_s" {
		f.Code = "cc.cut-time"
	}
	return []Finding{f}
}

// more is what to run next: the repeats that would tell what the answer left open, else the page with the charts.
func (c Controls) more(found []Finding) []Finding {
	d, need := c.Groups[0].Rows[0].Doc, 0
	for _, f := range Of(found, Answer) {
		if n, ok := f.Number("more_count", ""); ok {
			need = max(need, f.Places[""].Stat(c.Metric).N+int(n))
		}
	}
	if need == 0 || need > model.MaxRepeats {
		return []Finding{nextOf("cc.page", d)}
	}
	seconds, trials := 0.0, table.OneEach(table.RowsOf(c.Groups))
	for _, r := range trials {
		seconds += r.Flow.DurationS
	}
	t := d.Plan.Timing
	each := seconds/float64(len(trials)) + t.WarmupSeconds + t.DrainSeconds
	return []Finding{runAgain(need).with("time", length(d.Language, each*float64(need*len(c.Groups))))}
}

func controlDoubts(rows []table.Row) []Finding {
	c := CompareControls(rows)
	var out []Finding
	held := only(c.Groups, func(g table.Group) bool { return g.Middle("tcp_held_back_ratio") >= table.HeldOften })
	if len(held) > 0 {
		out = append(out, say("cc.held", Doubt, "worst", largest(held, "tcp_held_back_ratio"),
			"where", span(table.Language(rows), namesOf(held))))
	}
	for _, g := range c.Groups {
		if used := unasked(g); len(used) > 0 {
			out = append(out, say("cc.other", Doubt, "who", ControlOf(g), "used", fewNames(g.Language(), used)))
		}
	}
	return append(out, c.memory()...)
}

// unasked are the congestion controls that the trials of a group used in place of its own: an iperf3 server whose
// kernel lacks one uses what it has.
func unasked(g table.Group) (names []string) {
	key := table.KeyOf("control")
	asked := strings.Split(g.Level(key.Name).Text, model.MixSeparator)
	for _, r := range g.Rows {
		for used := range strings.SplitSeq(r.Flow.TCP.Control, model.MixSeparator) {
			name := key.Format(table.Level{Value: model.Word(used), Known: true})
			if used != "" && !slices.Contains(asked, used) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// memory doubts transfers between real hosts that begin with what those before them learnt.
func (c Controls) memory() []Finding {
	for _, g := range c.Groups {
		d, from := g.Rows[0].Doc, g.Rows[0].Flow.From
		if d.Lab == nil && slices.ContainsFunc(d.Host, func(h model.Host) bool {
			return h.Node == from && h.TCPSettings["no_metrics_save"] == "0"
		}) {
			return []Finding{say("cc.memory", Doubt, "host", g.Say(from))}
		}
	}
	return nil
}

func controlStreams(rows []table.Row) []Finding {
	c := CompareControls(rows)
	var out []Finding
	for _, g := range c.Groups {
		fair := g.Middle("stream_fairness_index")
		if g.Rows[0].Flow.Streams < 2 || math.IsNaN(fair) {
			continue
		}
		f := say("cc.unfair", Fact, "", g, "who", ControlOf(g), "where", c.Where(g))
		if parts := table.By(table.Mixes(g.Rows), table.KeyOf("control_part")); len(parts) > 1 {
			ranked := table.Rank(table.MetricOf("goodput_bps"), parts)
			most, least := ranked[0], ranked[len(ranked)-1]
			f.Code, f.Words["who"], f.Words["base"] = "cc.share", most.Name(), least.Name()
			if len(Of(out, Answer)) == 0 {
				f.Level = Answer
			}
			f = f.with("most", most, "least", least)
		}
		if f.Code == "cc.share" || fair < evenShares {
			out = append(out, f)
		}
	}
	return out
}

// evenShares is Jain's index from which on shares count as even.
const evenShares = 0.9
