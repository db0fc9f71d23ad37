package finding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
	"pelt/words"
)

// Ask says which trials of a run are to be explained. The zero value asks for the trial
// that lost most, of each setting that lost anything.
type Ask struct {
	Trial int        // by its number in the run, from 1; 0 leaves it open
	Cell  model.Cell // only trials with these settings
	All   bool       // every trial
}

func (a Ask) fits(t *model.Result) bool {
	for knob, v := range a.Cell {
		if t.Cell[knob] != v {
			return false
		}
	}
	return true
}

// picks reports whether the trial of a row is asked for.
func (a Ask) picks(r table.Row) bool {
	return a.fits(r.Trial) && (a.Trial == 0 || r.TrialNumber() == a.Trial)
}

// Trials are the numbers, from 1, of the trials to explain. Its error is a *Refusal.
func (a Ask) Trials(d *model.Document) ([]int, error) {
	var all []int
	for i := range d.Results {
		if a.fits(&d.Results[i]) {
			all = append(all, i+1)
		}
	}
	switch {
	case a.Trial < 0 || a.Trial > len(d.Results):
		return nil, refuse(true, "explain.trial", "trials", fmt.Sprint(len(d.Results)), "trial", fmt.Sprint(a.Trial))
	case a.Trial > 0:
		return []int{a.Trial}, nil
	case len(all) == 0 && len(a.Cell) > 0:
		return nil, refuse(true, "explain.cell", "run", d.ID)
	case a.All:
		return all, nil
	}
	var worst []table.Row
	for _, g := range Ledgers(d, a) {
		r := slices.MaxFunc(g.Rows, func(x, y table.Row) int { return cmp.Compare(x.Flow.Lost, y.Flow.Lost) })
		if r.Flow.Lost > 0 || len(a.Cell) > 0 {
			worst = append(worst, r)
		}
	}
	rows := only(table.Rows(d), a.picks)
	var numbers []int
	for _, r := range slices.Concat(worst, FirstBlocked(rows), FirstStuck(rows)) {
		if n := r.TrialNumber(); !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// Ledgers are the accounted flows of each setting: of its valid trials, or of all where none is valid.
func Ledgers(d *model.Document, a Ask) []table.Group {
	rows := table.Accounted(only(table.Rows(d), func(r table.Row) bool { return r.Flow.Attempted > 0 && a.picks(r) }))
	out := table.By(rows, table.Varying(table.Rows(d), append(table.Settings(rows), table.KeyOf("flow"))...)...)
	for i, g := range out {
		if valid := table.Usable(g.Rows); len(valid) > 0 {
			out[i].Rows = valid
		}
	}
	return out
}

func Explain(d *model.Document, a Ask) []Finding {
	if len(d.Results) == 0 {
		return noTrial(d)
	}
	if d.Tool.Name != "" {
		return []Finding{say("foreign.silent", Answer, "tool", d.Tool.Name)}
	}
	rows := only(table.Rows(d), a.picks)
	udp := only(rows, func(r table.Row) bool { return r.Flow.Protocol == model.UDP })
	tcp := len(table.Usable(rows)) > len(table.Usable(udp))
	out := []Finding{lostOf(table.Accounted(rows))}
	blocked := only(nothingRule(rows), func(f Finding) bool { return f.Code != "explain" })
	switch {
	case NothingThrough(rows):
		out = nil
	case len(rows) == 0:
		out[0] = say("explain.nothing", Answer)
	case len(udp) == 0 && len(table.Accounted(rows)) > 0:
		out = append(out, linkLosses(rows)...)
	case len(udp) == 0:
		out = append([]Finding{sentAgain(rows, Answer)}, linkLosses(rows)...)
	case tcp:
		out = append(out, sentAgain(rows, Fact))
	}
	out = append(out, blocked...)
	doubts := applied(rows, unexplainedRule, grownRule, unevenRule, unacceptedRule, carriersRule, movesRule,
		leftOutRule, accountsRule, watchingRule)
	for _, f := range doubts {
		unknown := f.Code == "loss.unknown" || f.Code == "loss.again"
		if f.Level == Doubt && !(unknown && out[0].Has("unknown_ratio", "")) {
			out = append(out, f) // where packets were lost is the answer
		}
	}
	if slices.ContainsFunc(table.Lines(rows), func(r table.Row) bool { return len(r.Line.Advice) > 0 }) {
		out = append(out, nextOf("advice.see", d))
	}
	return out
}

// sentAgain says how much TCP sent again, where no ledger tells more.
func sentAgain(rows []table.Row, level Level) Finding {
	resent := table.MetricOf("retransmit_ratio")
	rows = only(rows, func(r table.Row) bool { return r.Flow.Protocol == model.TCP })
	var sent, again uint64
	for _, r := range rows {
		if _, known := resent.Value(r); known {
			sent, again = sent+r.Flow.TCP.SegmentsOut, again+r.Flow.TCP.Retransmits
		}
	}
	switch {
	case sent == 0:
		return say("explain.tcp", level)
	case again == 0:
		return say("explain.no-again", level)
	}
	return say("explain.again", level, "lost_packets", again, "attempted_packets", sent, "unplaced", "all",
		"loss_ratio", float64(again)/float64(sent)).In(table.Language(rows))
}

// lostOf says how much of some rows was lost, and where most of it was. Trials that are not
// valid count where no other is there.
func lostOf(rows []table.Row) Finding {
	if len(table.Usable(rows)) > 0 {
		rows = table.Usable(rows)
	}
	var attempted, lost uint64
	for _, r := range rows {
		attempted, lost = attempted+r.Flow.Attempted, lost+r.Flow.Lost
	}
	f := say("explain.lost", Answer, "lost_packets", lost, "attempted_packets", attempted,
		"loss_ratio", float64(lost)/float64(max(attempted, 1))).In(table.Language(rows))
	switch {
	case attempted == 0:
		return say("explain.nothing", Answer)
	case lost == 0:
		f.Code = "explain.whole"
		return f
	}
	if ofTCP(rows) {
		f.Code = "explain.again"
	}
	known, unknown := sharesOf(AsValid(rows))
	switch {
	case unknown > 0.5:
		f = f.with("unknown_ratio", unknown, "none", when(unknown > almostAll, "yes"))
	case len(known) > 0:
		first := known[0]
		f = f.with("share_ratio", first.Packets, "first", where(first.Loss),
			"whole", when(first.Packets > almostAll, "yes"))
		known = known[1:]
	}
	return f.with("places", listed(known))
}

// AsValid makes the figures of trials count that are not valid, for their own page.
func AsValid(rows []table.Row) []table.Row {
	copies := map[*model.Result]*model.Result{}
	out := slices.Clone(rows)
	for i, r := range out {
		if copies[r.Trial] == nil {
			trial := *r.Trial
			trial.State = model.Valid
			copies[r.Trial] = &trial
		}
		out[i].Trial = copies[r.Trial]
	}
	return out
}

func sequences(l *model.Line, streams bool) (first string, more float64) {
	const most = 6
	var words []string
	told := uint64(0)
	for _, s := range l.Sequences[:min(len(l.Sequences), most)] {
		text := fmt.Sprint(s.From)
		if s.Count > 1 {
			text += fmt.Sprintf("–%d", s.From+s.Count-1)
		}
		if streams {
			text = fmt.Sprintf("%d:%s", s.Stream+1, text)
		}
		words, told = append(words, text), told+s.Count
	}
	return strings.Join(words, ", "), float64(l.Packets - min(told, l.Packets))
}

// Account says of each loss of one flow how it is known, and what would help; then what was not sent at all.
func Account(r table.Row) []Finding {
	var out []Finding
	f, in := r.Flow, r.Language()
	for i := range f.Ledger.Lines {
		l := &f.Ledger.Lines[i]
		first, more := sequences(l, f.Streams > 1)
		place := phrase(in, l.Layer, l.Cause, spoken(r, l.Host))
		line := say("explain.line", Fact, "lost_packets", l.Packets, "lost_packets:more", some(more), "place", place,
			"cause", when(!strings.Contains(place, l.Cause) && l.Cause != model.CauseElimination, l.Cause),
			"function", l.Function, "interface", l.Interface, "sequences", first, "figures", figures(in, l),
			"sure", confidence(l, f.TCP != nil).In(in).Text())
		if rule := ruleOf(l); rule != nil {
			line = line.with("table", rule[2], "chain", rule[3])
		}
		out = append(out, line)
		for _, a := range l.Advice {
			code := "explain.help"
			if !a.Proposes() {
				code = "advice.not"
			}
			out = append(out, Finding{Code: code, Words: adviceWords(in, a)})
		}
	}
	for _, p := range f.Ledger.Possible {
		out = append(out, say("explain.possible", Fact, "place", phrase(in, p.Layer, p.Cause, spoken(r, p.Host)),
			"lost_packets:most", p.Most, "unattributed_packets", f.Ledger.Unattributed))
	}
	if f.Planned > f.Attempted {
		var why []string
		for _, l := range f.Ledger.Pacing {
			why = append(why, said(r, l))
		}
		out = append(out, say("explain.pacing", Fact, "why", in.Join(why),
			"planned_packets:missed", f.Planned-f.Attempted, "planned_packets", f.Planned))
	}
	for i := range out {
		out[i].Language = in
	}
	return out
}

func Watched(l words.Language, o model.Observed) Finding {
	return say("watched."+cmp.Or(string(o.Mode), "none"), Fact, "node", l.Say(o.Node), "mode", string(o.Mode),
		"why", WhyIn(l, model.Reasons(o.Why)), "unread", WhyIn(l, model.Reasons(o.Unread)),
		"lost_packets:unseen", some(o.Missed), "lost_packets:overwritten", some(o.Overwritten),
		"lost_packets:nameless", some(o.Unreadable+o.SitesLost), "unsettled", when(o.Unsettled, "yes")).In(l)
}

// KnownFrom says in few words what a line's confidence rests on.
func KnownFrom(l words.Language, confidence string) string {
	if code := "known." + confidence; sentences[code] != "" {
		return say(code, Fact).In(l).Text()
	}
	return confidence // of another version
}

func confidence(l *model.Line, tcp bool) Finding {
	f := say("sure."+l.Confidence, Fact, "sure", l.Confidence)
	foreign := func(e model.Evidence) bool { return e.Excess > 0 }
	told := func(e model.Evidence) bool { return e.Role == "primary" && e.Counter == "ICMP errors" }
	switch {
	case l.Cause == model.CauseStillQueued:
		f.Code = "sure.waiting"
	case l.Confidence == "inferred" &&
		(strings.HasPrefix(l.Cause, model.CauseICMP) || slices.ContainsFunc(l.Evidence, told)):
		f.Code = "sure.answered"
	}
	counter := func(e model.Evidence) bool { return e.Role == "primary" && e.Scope != "packet" }
	switch {
	case l.Most > 0:
		return say("sure.least", Fact, "lost_packets:most", l.Most)
	case l.Confidence != "bounded":
	case slices.ContainsFunc(l.Evidence, foreign):
		f.Code = "sure.shared"
	case tcp && !slices.ContainsFunc(l.Evidence, counter):
		f.Code = "sure.dropped"
	}
	return f
}

// linkLosses say what emulated links did to the frames of valid trials: for TCP theirs
// are the only names that losses have.
func linkLosses(rows []table.Row) []Finding {
	var out []Finding
	for _, r := range table.OneEach(only(rows, table.Row.Valid)) {
		for _, l := range r.Trial.Links {
			in := r.Language()
			way := map[string]string{"from": in.Say(l.From), "to": in.Say(l.To)}
			i := slices.IndexFunc(out, func(f Finding) bool { return maps.Equal(f.Words, way) })
			if i < 0 {
				i = len(out)
				zero := []Number{{"frames_count", "", 0}, {"frames_count", "lost", 0}, {"frames_count", "full", 0}}
				out = append(out, Finding{Code: "explain.frames", Level: Fact, Words: way, Numbers: zero})
			}
			for j, n := range []*uint64{&l.Frames, l.Lost, l.QueueFull} {
				if n != nil {
					out[i].Numbers[j].Value += float64(*n)
				}
			}
		}
	}
	return out
}

// bufferKnob is the receive buffer of pelt's own socket, which a flag sets.
const bufferKnob = "socket.receive_buffer"

// Advise says which settings would reduce the losses of a run, with commands that do
// what they say on the host that they name. No command is given for the
// interfaces of a lab's nodes: this host may have others of the same names.
func Advise(d *model.Document, list []model.Advised) []Finding {
	var out []Finding
	apply := false
	for _, a := range list {
		f := Finding{Code: "advice.set", Level: Next, Words: adviceWords(d.Language, a.Advice)}.with(
			"lost_packets", a.Packets, "attempted_packets", a.Attempted, "host", hostOf(d, a),
			"place", phrase(d.Language, a.Layer, a.Cause, a.Host), "command", a.Command)
		switch {
		case !a.Proposes():
			f.Code, f.Level = "advice.not", Fact
		case a.Knob == bufferKnob:
			f.Code = "advice.socket"
		case d.Lab != nil && !a.Apply: // the nodes of a lab are made anew for each run
			continue
		}
		apply = apply || a.Apply
		out = append(out, f)
	}
	answer := say("advice.none", Answer)
	if d.Tool.Name != "" && len(out) == 0 {
		answer = say("foreign.silent", Answer, "tool", d.Tool.Name)
	}
	switch best := slices.IndexFunc(out, func(f Finding) bool { return f.Level == Next }); {
	case best >= 0:
		answer = out[best]
		answer.Code, answer.Level = strings.Replace(answer.Code, "advice.", "advice.best-", 1), Answer
	case len(d.Results) == 0:
		return noTrial(d)
	case lostOf(table.Rows(d)).Code == "explain.whole":
		answer.Code = "advice.whole"
	}
	out = append([]Finding{answer}, out...)
	if apply {
		out = append(out, nextOf("advice.apply", d))
	}
	if d.Lab != nil {
		for _, r := range table.Lines(table.Usable(table.Rows(d))) {
			if r.Line.Cause == model.CauseLinkQueue && r.Line.Packets > 0 {
				return append(out, say("advice.link", Fact))
			}
		}
	}
	return out
}

func adviceWords(l words.Language, a model.Advice) map[string]string {
	return map[string]string{"host": l.Say(a.Host), "knob": a.Knob, "present": l.Say(a.Present),
		"value": l.Say(a.Value), "why": WhyIn(l, model.Reasons(a.Why)), "note": WhyIn(l, model.Reasons(a.Note))}
}

func hostOf(d *model.Document, a model.Advised) string {
	if a.Here && d.Lab == nil || a.Apply {
		return d.Language.Say(nearHost)
	}
	for _, h := range d.Host {
		if h.Node == a.Host && h.Name != "" && d.Lab == nil {
			return d.Language.Bracketed(h.Name, d.Language.Say(a.Host))
		}
	}
	return d.Language.Say(a.Host)
}
