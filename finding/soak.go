package finding

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/change"
	"pelt/model"
	"pelt/plan"
	"pelt/table"
	"pelt/words"
)

func soakKind() Kind {
	return Kind{
		Preset: plan.Soak,
		Use:    "soak TARGET | LAN..WAN",
		Short:  "Send at one rate for hours, and tell when something changes",
		Long: `soak sends packets of one size at one rate, keeps every second of both ends, and shows at
any moment how many are lost, and where. TARGET is as for pelt curve, LAN..WAN as for pelt
router.

It stores its figures every ten seconds: pelt report shows them during the soak, and after a
kill. With --every it runs again and again, as every test does, and tells what changed.`,
		Example: `  pelt soak lab:router --rate 40kpps --payload 512 --time 10m
  pelt soak 192.168.1.5 --time 10s --every 5m`,
		Title: "Soak",
		Rows:  soakRows,
		Rules: []Rule{soakRule, grownRule},
	}
}

// Parts of sentences.
const (
	soakWorst = `[TCP carried [{phases_count ?}as little as ]{goodput_bps:worst}|[{phases_count ?}up to ` +
		`]{loss_ratio:worst} was lost]`
	soakRest = `[{phases_count:rest ?}[{goodput_bps:rest ?}at least |{loss_ratio:rest ?}at most ]]` +
		`[{goodput_bps:rest}|{loss_ratio:rest}|none].[¶At that time: {made}.]`
)

var soakSentences = map[string]string{
	"soak.none": `[{flow}: n|N]one of {attempted_packets} packets was lost in {duration_s moment} at {send_pps}.`,
	"soak.lost": `[{flow}: ]{loss_ratio} was lost: {lost_packets} of {attempted_packets} packets in ` +
		`{duration_s moment} at {send_pps}.`,
	"soak.seconds": `[{flow}: p|P]ackets were lost in [{all ?}every second|{lossy_count} of {known_count} seconds, ` +
		`first ` +
		`at {at_s:first moment}]. The worst second, at {at_s:worst moment}, lost {lost_packets:worst} ` +
		`packet{lost_packets:worst /s}[ ({loss_ratio:worst})].`,
	"soak.second": `[{flow}: ]{lost_packets} of {attempted_packets} packets were lost, all in one second, at ` +
		`{at_s:first moment}.¶That is {loss_ratio}.`,
	"soak.from":  `[{flow}: f|F]rom {at_s:from moment} on, ` + soakWorst + `; before that ` + soakRest,
	"soak.until": `[{flow}: u|U]ntil {at_s:to moment}, ` + soakWorst + `; after that ` + soakRest,
	"soak.between": `[{flow}: f|F]rom {at_s:from moment} to {at_s:to moment}, ` + soakWorst + `; at other times ` +
		`` + soakRest,
	"soak.tcp": `[{flow}: ]TCP carried {goodput_bps} for {duration_s moment}[ and sent {retransmit_ratio} of its ` +
		`data again].`,
	"soak.outage": `{outage_s:sum moment} without a path at {at}.`,
	"soak.outages": `{outages_count} times without a path, {outage_s:sum moment} in all; the longest was ` +
		`{outage_s:longest moment} at {at}.`,
	"soak.nopath": `The path did not come back before the time of the test was over.`,
	"soak.unheard": `[{flow}: ][The receiver was not heard from {at_s:from moment} on; {unheard_packets} packets ` +
		`were sent meanwhile.|{unheard_packets} packets were sent while the receiver was not heard.]`,
	"soak.other": `[{whole ?}[{flow}: n|N]one of the {attempted_packets} other packets was|[{flow}: ]{lost_packets} ` +
		`of the {attempted_packets} other packets {lost_packets was/were}] lost.`,
	"soak.cut":     `Not finished: the figures are of the first {duration_s moment}.`,
	"soak.resume":  `Measure the whole time:¶$ pelt run --resume {run argument}`,
	"soak.invalid": `The sender did not run as ordered, so these losses say nothing about the path at the asked rate.`,
	"soak.made":    `At {at_s moment}: {what}.`,
	"soak.failed":  `A planned change failed at {at_s moment} ({what}): {why}.`,
	"soak.more":    `{changes_count} more change{changes_count /s} not listed; the run document has them.`,
	"soak.gap": `The control connection to {nodes} was lost for {gap_s:longest}, at {at_s moment}` +
		`{gaps_count /, the longest of # times}. The test went on.`,
	"soak.page":         `See every second:`,
	"made.router.plain": `router set back to plain`,
	"made.router.rules": `router given {value} firewall rules`,
	"made.router.log":   `router set to log each packet`,
	"made.router.fast":  `router set to use its fast path for known connections`,
	"made.router.other": `router set to {word}`,
	"made.link":         `[link at {node}|all links][ toward {toward}] set to {settings}`,
	"change.shift":      `At {at_s moment}, unplanned: {what} went from {*metric:before} to {*metric:after}.`,
	"change.drift": `From {at_s moment} to {end_s moment} {what} drifted from {*metric:before} to ` +
		`{*metric:after}.`,
	"change.burst": `A burst from {at_s moment} to {end_s moment} lost {more_packets # packet/# packets} more than usual.`,
	"change.bursts": `{events_count} bursts from {at_s moment} to {end_s moment} lost {more_packets} packets more ` +
		`than usual.`,
	"cause.lost": `At the same time loss went from {lost_pps:before} to {lost_pps:after}: {what}.`,
	"cause.dropped": `At the same time the kernel of {who} dropped {dropped_pps:after} ({what}); before that ` +
		`{dropped_pps:before}.`,
	"cause.cpu":   `At the same time {who} went from {*metric:before} to {*metric:after} {what}.`,
	"cause.other": `At the same time {what} at {who} went from {*metric:before} to {*metric:after}.`,
}

// soakRows are the rows of a soak. A trial and those that went on with it are one. If no trial is valid, the last one
// that sent anything counts for what it measured: a soak of hours that was cut has something to tell.
func soakRows(d *model.Document) []table.Row {
	d = Joined(d)
	rows, told := table.Rows(d), reportedTrial(d)
	for i, valid := range AsValid(rows) {
		if rows[i].Trial == told {
			rows[i] = valid
		}
	}
	return rows
}

// reportedTrial is the last valid trial of a soak, else the last that sent anything.
func reportedTrial(d *model.Document) (told *model.Result) {
	for i := range d.Results {
		r := &d.Results[i]
		sent := slices.ContainsFunc(r.Flows, func(f model.FlowResult) bool { return table.Measured(&f) })
		if sent && (told == nil || r.State == model.Valid || told.State != model.Valid) {
			told = r
		}
	}
	return told
}

// SoakTrial returns the rows of the trial that a soak tells of, one for each flow.
func SoakTrial(rows []table.Row) []table.Row {
	var out []table.Row
	for _, r := range table.Usable(rows) {
		if len(out) > 0 && r.Trial != out[0].Trial {
			out = nil
		}
		out = append(out, r)
	}
	return out
}

func soakRule(rows []table.Row) []Finding {
	rows = SoakTrial(rows)
	if len(rows) == 0 {
		return nil
	}
	cut, ran := unfinished(rows)
	var out []Finding
	if !ran {
		out, cut = cut, nil
	}
	out = append(out, outagesOf(rows)...)
	for _, r := range rows {
		name := ""
		if len(rows) > 1 {
			name = Capital(r.Say(r.Flow.Name))
		}
		for _, f := range soakFlow(r, name) {
			if !ran { // what a sender lost that fell short is a fact, and no answer
				f.Level = max(f.Level, Fact)
			}
			out = append(out, f)
		}
	}
	out = append(append(out, cut...), changesOf(rows)...)
	out = append(out, gapsOf(rows[0].Language(), rows[0].Trial)...)
	if whole := (table.Group{Rows: rows}); whole.Sum("lost_packets") > 0 {
		out = append(out, nextOf("explain", rows[0].Doc))
	}
	return append(out, nextOf("soak.page", rows[0].Doc))
}

// unfinished says first that a trial was cut or is not valid; ran is false if it did not run as ordered.
func unfinished(rows []table.Row) (out []Finding, ran bool) {
	t := reportedTrial(rows[0].Doc)
	switch t.State {
	case model.Valid:
		return nil, true
	case model.Aborted:
		if t.Why.Has(model.NoPath) { // its time is over
			return nil, true
		}
		cut := say("soak.cut", Answer, "", table.Group{Rows: rows})
		return []Finding{cut, nextOf("soak.resume", rows[0].Doc)}, true
	}
	invalid := slices.Clone(rows)
	for i := range invalid {
		invalid[i].Trial = t
	}
	return append(unusableRule(invalid), say("soak.invalid", Doubt)), false
}

// soakFlow is what one flow carried: a change of its loss is the answer, where there is
// one, and the whole of its time a fact.
func soakFlow(r table.Row, name string) []Finding {
	whole := table.Group{Rows: []table.Row{r}}
	f := say("soak.none", Fact, "", whole, "flow", name)
	lossy := lossySeconds(r)
	f.Numbers = append(f.Numbers, lossy...)
	tcp := r.Flow.Protocol == model.TCP
	switch n, _ := f.Number("lossy_count", ""); {
	case tcp:
		f.Code = "soak.tcp"
	case r.Flow.Lost > 0 && n == 1:
		f.Code = "soak.second"
	case r.Flow.Lost > 0:
		f.Code = "soak.lost"
	}
	var out []Finding
	if silent := r.Flow.Unheard; silent != nil {
		u := say("soak.unheard", Answer, "flow", name, "unheard_packets", silent.Packets)
		if len(r.Trial.Outages) == 0 || r.Trial.Why.Has(model.NoPath) {
			u = u.with("at_s:from", silent.FromS)
		}
		out = append(out, u)
	}
	if len(out) > 0 || f.Code == "soak.none" && len(r.Trial.Outages) > 0 { // a fact beside the outage
		f.Code = "soak.other"
		return append(out, f.with("whole", when(r.Flow.Lost == 0, "yes")))
	}
	if h, ok := headline(phasesOf(r), tcp); ok {
		from, _ := h.Number("at_s", "from")
		out = append(out, h.with("flow", name, "made", madeAt(r.Language(), r.Trial, from)))
	} else {
		f.Level = Answer
	}
	out = append(out, f)
	if len(lossy) > 0 && f.Code == "soak.lost" {
		bad, _ := f.Number("lossy_count", "")
		known, _ := f.Number("known_count", "")
		seconds := Finding{Code: "soak.seconds", Level: Fact, Numbers: lossy, Words: f.Words, Language: r.Language()}
		out = append(out, seconds.with("all", when(bad == known, "yes")))
	}
	return out
}

// outagesOf are the times without a path.
func outagesOf(rows []table.Row) []Finding {
	t := rows[0].Trial
	var sum float64
	var longest model.Outage
	known := only(t.Outages, func(o model.Outage) bool { return change.Believed(o.DurationS) && o.DurationS > 0 })
	for _, o := range known {
		if sum += o.DurationS; o.DurationS > longest.DurationS {
			longest = o
		}
	}
	if len(known) == 0 {
		return nil
	}
	form, in := "15:04", rows[0].Language()
	if began := t.Started.Local(); longest.From.Local().Format("2 Jan") != began.Format("2 Jan") {
		form = in.Say("15:04 on 2 Jan")
	}
	out := []Finding{say("soak.outage", Answer, "outage_s:sum", sum, "outage_s:longest", longest.DurationS,
		"outages_count", len(known), "at", longest.From.Local().Format(form))}
	if len(known) > 1 {
		out[0].Code = "soak.outages"
	}
	if t.Why.Has(model.NoPath) {
		out = append(out, say("soak.nopath", Fact))
	}
	return out
}

// madeAt names the planned change that was made at a time: "router made plain".
func madeAt(in words.Language, t *model.Result, at float64) string {
	for _, m := range t.Made {
		if len(m.Failure) == 0 && math.Abs(m.AtS-at) <= model.Together {
			return madeWords(in, m.Words)
		}
	}
	return ""
}

// lossySeconds are in how many seconds a flow lost packets, the first of them, and the
// worst; none if losses are not known by the second.
func lossySeconds(r table.Row) []Number {
	lost, sent := table.FlowSeries(r, "lost_pps"), table.FlowSeries(r, "send_pps")
	time := func(i int) float64 { return lost.StartSeconds + lost.StepSeconds*float64(i) }
	known, lossy, first, worst := 0.0, 0.0, 0, 0
	for i, v := range lost.Values {
		if !change.Believed(v) {
			continue
		}
		known++
		if v > 0 {
			if lossy++; lossy == 1 {
				first, worst = i, i
			}
			if v > lost.Values[worst] {
				worst = i
			}
		}
	}
	if lossy == 0 || lost.StepSeconds != 1 {
		return nil
	}
	out := []Number{{"lossy_count", "", lossy}, {"known_count", "", known}, {"at_s", "first", time(first)},
		{"at_s", "worst", time(worst)}, {"lost_packets", "worst", lost.Values[worst]}}
	if i := change.PlaceOf(&sent, time(worst)); i < len(sent.Values) && sent.Values[i] >= lost.Values[worst] {
		out = append(out, Number{"loss_ratio", "worst", lost.Values[worst] / sent.Values[i]})
	}
	return out
}

// phasesOf are the times of a flow between the changes of its trial.
func phasesOf(r table.Row) []table.Group {
	return table.By(table.Windows(r, table.ChangeCuts(r.Trial)), table.KeyOf("window_s"))
}

const leastHeadline = 0.0001

// headline finds the phases that lost far more than the others, or carried far less TCP.
func headline(phases []table.Group, tcp bool) (Finding, bool) {
	var bad []float64 // more is worse
	for _, p := range phases {
		v := p.Middle("loss_ratio")
		if tcp {
			v = -p.Middle("goodput_bps")
		}
		bad = append(bad, v)
	}
	isKnown := func(v float64) bool { return !math.IsNaN(v) }
	known := only(bad, isKnown)
	if len(known) < 2 {
		return Finding{}, false
	}
	worst, best := slices.Max(known), slices.Min(known)
	limit := worst / 2
	if tcp {
		limit = (worst + best) / 2
	}
	at := slices.Index(bad, worst)
	from, to := at, at+1
	for from > 0 && !(bad[from-1] < limit) {
		from--
	}
	for to < len(bad) && !(bad[to] < limit) {
		to++
	}
	rest := only(slices.Concat(bad[:from], bad[to:]), isKnown)
	if len(rest) == 0 {
		return Finding{}, false
	}
	next := slices.Max(rest)
	if next >= limit || !tcp && worst < leastHeadline || tcp && worst < 0.9*next { // both are negative
		return Finding{}, false
	}
	f := say("soak.between", Answer, "at_s:from", phases[from].Rows[0].Window.StartS,
		"at_s:to", phases[to-1].Rows[0].Window.EndS)
	switch {
	case to == len(phases):
		f.Code = "soak.from"
	case from == 0:
		f.Code = "soak.until"
	}
	if to > from+1 {
		f = f.with("phases_count", to-from)
	}
	if len(rest) > 1 { // next is only the nearest of them
		f = f.with("phases_count:rest", len(rest))
	}
	if tcp {
		return f.with("goodput_bps:worst", -worst, "goodput_bps:rest", -next), true
	}
	return f.with("loss_ratio:worst", worst, "loss_ratio:rest", some(next)), true
}

func gapsOf(in words.Language, t *model.Result) []Finding {
	n, longest := 0.0, model.ControlGap{}
	for _, g := range t.Gaps {
		outage := slices.ContainsFunc(t.Outages, func(o model.Outage) bool {
			return g.StartS < o.StartS+o.DurationS && o.StartS < g.StartS+g.DurationS
		})
		if change.Believed(g.StartS) && change.Believed(g.DurationS) && g.DurationS > 0 && !outage {
			n++
			if g.DurationS > longest.DurationS {
				longest = g
			}
		}
	}
	if n == 0 {
		return nil
	}
	return []Finding{say("soak.gap", Doubt, "gaps_count", n, "at_s", longest.StartS,
		"gap_s:longest", longest.DurationS, "nodes", in.Join(in.SayAll(longest.Nodes)))}
}

type LossCause struct {
	Name string
	model.Series
}

// LossCauses are the losses of a row's flow over time, the greatest cause first. The
// last is what no series of a cause has.
func LossCauses(r table.Row) []LossCause {
	all := table.FlowSeries(r, "lost_pps")
	if len(all.Values) == 0 {
		return nil
	}
	rest := slices.Clone(all.Values)
	sums := map[string]float64{}
	var out []LossCause
	for _, s := range r.Trial.Series {
		if s.Metric != "lost_pps" || s.Flow != r.Flow.Name || s.Layer == "" || s.StartSeconds != all.StartSeconds ||
			s.StepSeconds != all.StepSeconds {
			continue
		}
		c := LossCause{placeOfLoss(r, model.Mover{At: s.At, Layer: s.Layer, Cause: s.Cause}), s}
		i := slices.IndexFunc(out, func(o LossCause) bool { return o.Name == c.Name })
		if i < 0 {
			i, c.Values = len(out), make([]float64, len(rest))
			out = append(out, c)
		}
		for k := range min(len(s.Values), len(rest)) {
			if v := s.Values[k]; change.Believed(v) && v > 0 {
				out[i].Values[k] += v
				rest[k] -= v
				sums[c.Name] += v
			}
		}
	}
	slices.SortStableFunc(out, func(a, b LossCause) int { return cmp.Compare(sums[b.Name], sums[a.Name]) })
	some := false
	for k := range rest {
		rest[k] = max(0, rest[k]) // NaN stays
		some = some || rest[k] >= 0.5
	}
	if some {
		all.Values = rest
		out = append(out, LossCause{restName(r, out), all})
	}
	return out
}

// restName names the packets of which only the second is known: the ledger may know the places of all of them together.
// It cannot tell which of these were lost in which second.
func restName(r table.Row, causes []LossCause) string {
	packets := map[string]uint64{}
	for _, l := range r.Flow.Ledger.Lines {
		name := phrase(r.Language(), l.Layer, l.Cause, spoken(r, l.Host))
		if !slices.ContainsFunc(causes, func(c LossCause) bool { return c.Name == name }) {
			packets[name] += l.Packets
		}
	}
	names := table.MostFirst(packets)
	switch {
	case len(names) == 0:
		return maybe([]table.Row{r})
	case len(names) > mostMaybes:
		names = append(names[:mostMaybes], r.Say("other causes"))
	case r.Flow.Ledger.Unattributed > 0:
		names = append(names, maybe([]table.Row{r}))
	}
	return strings.Join(names, r.Say(", or "))
}

// mostMaybes is how many causes are named of which one may have been it.
const mostMaybes = 2
