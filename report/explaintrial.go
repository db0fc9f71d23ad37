package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// mostRuns bounds the runs of lost sequences that a terminal shows for a line.
const mostRuns = 12

// explainTrial writes one trial: for each flow the account and what stands
// behind it, then what else its hosts' counters did.
func (s *screen) explainTrial(doc model.Document, t rows.Table, at int) {
	r := doc.Results[at]
	for _, f := range r.Flows {
		row := rows.Of(doc, r, f)
		s.line("", "")
		title := fmt.Sprintf("Trial %d: %s, %s", at+1, words.Cell(r.Cell), flowTitle(row))
		for _, other := range t.Rows {
			if n := len(other.Trials); n > 1 && other.Flow == f.Name && other.Cell.Equal(r.Cell) && slices.Contains(other.Trials, at) && worstTrial(doc, other) == at {
				title += fmt.Sprintf("; of its %d trials the one that lost most", n)
			}
		}
		s.wrap(styleVerdict, "", title)
		if r.State != model.Valid {
			s.wrap(styleYellow, "! ", strings.TrimSuffix(words.Plain(string(r.State))+": "+words.Plain(r.Why), ": "))
		}
		if f.Protocol == model.TCP {
			text := "TCP: lost segments were sent again, and their places are not known."
			if f.Connections != nil {
				text = "Connections have no ledger: " + connectionsLine(f) + "."
			}
			s.wrap("", "", text)
			continue
		}
		s.account(row, f)
		for i, l := range row.Ledger.Lines {
			s.ledgerLine(row, i+1, l)
		}
		s.checks(f.Ledger.Checks)
	}
	if len(r.Flows) == 0 {
		s.line("", "")
		s.wrap(styleVerdict, "", fmt.Sprintf("Trial %d: %s", at+1, words.Cell(r.Cell)))
		s.wrap("", "", "Nothing was measured.")
	}
	if len(r.Observed) > 0 || slices.ContainsFunc(r.Flows, func(f model.FlowResult) bool { return f.Protocol == model.UDP }) {
		s.watched(r.Observed, r.SoFar())
	}
	s.moved(r)
}

// account is the balance: attempted = received + lines + unattributed.
func (s *screen) account(row rows.Row, f model.FlowResult) {
	type entry struct{ name, packets, share, text string }
	share := map[int]string{}
	for _, p := range words.LossParts(row) {
		share[p.Line] = p.Share
	}
	ratio := func(n uint64) string {
		if f.Attempted == 0 {
			return ""
		}
		return unit.FormatRatio(float64(n) / float64(f.Attempted))
	}
	entries := []entry{{"attempted", unit.FormatCount(f.Attempted), "", ""}}
	if f.Planned > f.Attempted {
		entries[0].text = fmt.Sprintf("of %s planned: the sender missed the rest of its schedule, which is no loss", unit.FormatCount(f.Planned))
	}
	entries = append(entries, entry{"received", unit.FormatCount(f.Received), ratio(f.Received), ""})
	entries = append(entries, entry{"lost", unit.FormatCount(f.Lost), words.Total(row), ""})
	for i, l := range row.Ledger.Lines {
		entries = append(entries, entry{"  " + words.Shorten(words.Name(l.Layer), 18), unit.FormatCount(l.Packets), share[i], fmt.Sprintf("%d  %s", i+1, words.Line(l))})
	}
	if f.Lost > 0 {
		rest := entry{"  " + words.Unattributed, unit.FormatCount(f.Ledger.Unattributed), share[-1], ""}
		if f.Ledger.Unattributed == 0 {
			rest.text = "each lost packet is accounted for"
		}
		entries = append(entries, rest)
	}
	var name, packets, part field
	for _, e := range entries {
		name.cells, packets.cells, part.cells = append(name.cells, e.name), append(packets.cells, e.packets), append(part.cells, e.share)
	}
	name.left = true
	for i, e := range entries {
		head := lay([]field{name, packets, part}, func(f field) string { return f.cells[i] }, "  ")
		if e.text == "" {
			s.line("", "  "+head)
			continue
		}
		s.wrap("", "  "+head+"  ", e.text)
	}
}

// ledgerLine is all that is known of one line.
func (s *screen) ledgerLine(row rows.Row, number int, l model.Line) {
	s.line("", "")
	s.wrap(styleBold, fmt.Sprintf("  %d  ", number), words.Line(l))
	const indent = "     "
	facts := []string{words.Name(l.Layer)}
	if l.Host != "" {
		facts[0] += " of " + words.Name(l.Host)
	}
	facts = append(facts, packetCount(l.Packets), words.Sure(l))
	s.wrap("", indent, strings.Join(facts, "; "))
	var place []string
	if l.Function != "" {
		place = append(place, "dropped by the kernel's "+words.Name(l.Function))
	}
	if l.Interface != "" {
		place = append(place, "interface "+words.Name(l.Interface))
	}
	if len(place) > 0 {
		s.wrap(styleDim, indent, strings.Join(place, ", "))
	}
	if text := sequencesText(l, row.Streams > 1); text != "" {
		s.wrap(styleDim, indent, text)
	}
	s.evidence(l)
	for _, a := range l.Advice {
		s.advice(a)
	}
}

func packetCount(n uint64) string {
	if n == 1 {
		return "1 packet"
	}
	return unit.FormatCount(n) + " packets"
}

// sequencesText lists the first lost sequences of a line: "sequences 7, 12–19".
func sequencesText(l model.Line, streams bool) string {
	if len(l.Sequences) == 0 {
		return ""
	}
	var list []string
	var listed uint64
	for _, s := range l.Sequences[:min(len(l.Sequences), mostRuns)] {
		text := strconv.FormatUint(s.From, 10)
		if s.Count > 1 {
			text += "–" + strconv.FormatUint(s.From+s.Count-1, 10)
		}
		if streams {
			text = fmt.Sprintf("%d:%s", s.Stream, text)
		}
		list = append(list, text)
		listed += s.Count
	}
	text := "sequences "
	if streams {
		text = "stream:sequences "
	}
	text += strings.Join(list, ", ")
	if listed < l.Packets {
		text += fmt.Sprintf(" and %s more", unit.FormatCount(l.Packets-listed))
	}
	return text
}

// evidence is the counters behind a line.
func (s *screen) evidence(l model.Line) {
	if len(l.Evidence) == 0 {
		return
	}
	var name, scope, before, after, moved, excess, role field
	name.head, name.left = "counter", true
	scope.head, scope.left, scope.drop = "of the", true, 2
	before.head, before.drop = "before", 1
	after.head, after.drop = "after", 1
	moved.head, excess.head = "moved by", "not ours"
	role.head, role.left, role.drop = "role", true, 3
	for _, e := range l.Evidence {
		label := words.Plain(e.Counter)
		if before, _, cut := strings.Cut(label, " @ "); cut && l.Function != "" && strings.Contains(label, l.Function) {
			label = before // the function stands above
		}
		label = words.Shorten(label, 48)
		if e.Host != "" && e.Host != l.Host {
			label = words.Name(e.Host) + ": " + label
		}
		was, is := "", ""
		if e.Before != 0 || e.After != 0 {
			was, is = unit.FormatCount(e.Before), unit.FormatCount(e.After)
		}
		over := ""
		if e.Excess > 0 {
			over = unit.FormatCount(e.Excess)
		}
		name.cells = append(name.cells, label)
		scope.cells = append(scope.cells, words.Name(e.Scope))
		before.cells, after.cells = append(before.cells, was), append(after.cells, is)
		moved.cells = append(moved.cells, strings.TrimSpace(unit.FormatCount(e.Delta)+" "+unitOf(e.Unit)))
		excess.cells = append(excess.cells, over)
		role.cells = append(role.cells, words.Name(e.Role))
	}
	const indent = "       "
	fields := fit([]field{name, scope, before, after, moved, excess, role}, s.width-len(indent)-6)
	s.line(styleDim, indent+lay(fields, func(f field) string { return f.head }, "  "))
	for i := range l.Evidence {
		s.line("", indent+lay(fields, func(f field) string { return f.cells[i] }, "  "))
	}
}

// unitOf is the unit of a counter where it is not plain packets.
func unitOf(unit string) string {
	if unit == "" || unit == "datagram" {
		return ""
	}
	return words.Name(unit)
}

// advice is one thing to change. Its commands stay whole, to be copied.
func (s *screen) advice(a model.Advice) {
	const indent = "     "
	where := ""
	if a.Host != "" {
		where = " on " + words.Name(a.Host)
	}
	s.wrap(styleYellow, indent, fmt.Sprintf("to change%s: %s from %s to %s", where, words.Name(a.Knob), orUnknown(a.Present), words.Plain(a.Value)))
	for _, x := range []struct {
		name, text string
		whole      bool
	}{{"why ", a.Why, false}, {"run ", a.Command, true}, {"undo", a.Undo, true}, {"note", a.Note, false}} {
		text := words.Plain(x.text)
		switch {
		case text == "":
		case x.whole:
			s.line("", indent+"  "+x.name+"  "+text)
		default:
			s.wrap("", indent+"  "+x.name+"  ", text)
		}
	}
}

func orUnknown(value string) string {
	if value == "" {
		return "an unknown value"
	}
	return words.Plain(value)
}

func (s *screen) checks(all []model.Check) {
	if len(all) == 0 {
		return
	}
	s.line("", "")
	s.line(styleBold, "  Identities between counters")
	for _, c := range all {
		if c.Held {
			s.wrap("", "    held    ", words.Plain(c.Text))
		} else {
			s.wrap(styleYellow, "    BROKEN  ", strings.TrimPrefix(words.Plain(c.Text), "broken: "))
		}
	}
}

// watched says how closely each host was observed. Of a trial so far nobody has told
// that yet.
func (s *screen) watched(all []model.Observed, soFar bool) {
	s.line("", "")
	s.line(styleBold, "  How each host was observed")
	switch {
	case len(all) == 0 && soFar:
		s.wrap("", "    ", "A host tells that when its trial ends, and this one had not. Of losses it is known by then how many packets counters name, not which, nor in which seconds.")
		return
	case len(all) == 0:
		s.wrap("", "    ", "This run was made before pelt kept that: by its ends only.")
		return
	}
	width := 0
	for _, o := range all {
		width = max(width, len([]rune(words.Name(o.Node))))
	}
	for _, o := range all {
		style := ""
		if o.Mode != model.DropsSeq {
			style = styleYellow
		}
		for i, text := range watchWords(o) {
			head := "    " + pad("", width, true) + "  "
			if i == 0 {
				head = "    " + pad(words.Name(o.Node), width, true) + "  "
			}
			s.wrap(style, head, text)
			style = ""
		}
	}
}

// watchWords says how a host was observed, and what that missed, one sentence each.
func watchWords(o model.Observed) []string {
	list := []string{map[model.DropMode]string{
		model.DropsSeq:   "every dropped packet by its sequence (eBPF), and counters",
		model.DropsCount: "dropped packets by place (eBPF), and counters",
		model.DropsOff:   "counters only",
		"":               "not observed: nothing is known of it",
	}[o.Mode]}
	if list[0] == "" {
		list[0] = words.Name(string(o.Mode))
	}
	if o.Why != "" {
		list[0] += ": " + words.Plain(o.Why)
	}
	count := func(n uint64, text string) {
		if n > 0 {
			list = append(list, unit.FormatCount(n)+" "+text)
		}
	}
	count(o.Unreadable, "dropped packets had no sequence in reach: counted, not named")
	count(o.Overwritten, "verdicts were lost, for the list's window had moved on")
	count(o.SitesLost, "dropped packets found no room in the table of places")
	count(o.Missed, "drops of any traffic went unseen, for the program ran on that processor already")
	if o.Unsettled {
		list = append(list, "its counters still moved when the wait for them was over")
	}
	for _, u := range o.Unread {
		list = append(list, "not read: "+words.Plain(u))
	}
	return list
}

// moved lists the counters that moved and stand behind no line.
func (s *screen) moved(r model.Result) {
	told := map[string]bool{}
	for _, f := range r.Flows {
		for _, l := range f.Ledger.Lines {
			for _, e := range l.Evidence {
				told[e.Host+"\x00"+e.Counter] = true
			}
		}
	}
	name, before, after, by, idle := field{head: "counter", left: true}, field{head: "before", drop: 1}, field{head: "after", drop: 1}, field{head: "moved by"}, field{head: "idle rate", drop: 2}
	for _, c := range r.Counters {
		if told[c.Host+"\x00"+c.Name] || c.Whole == 0 && !c.Reset {
			continue
		}
		by.cells = append(by.cells, movedBy(c))
		name.cells = append(name.cells, words.Name(c.Host)+": "+words.Shorten(words.Plain(c.Name), 48))
		before.cells, after.cells = append(before.cells, unit.FormatCount(c.Before)), append(after.cells, unit.FormatCount(c.After))
		rate := ""
		if c.IdleHz > 0 {
			rate = words.PerSecond(c.IdleHz)
		}
		idle.cells = append(idle.cells, rate)
	}
	if len(name.cells) == 0 {
		return
	}
	s.line("", "")
	s.wrap(styleBold, "  ", "Other counters that moved, warm-up included")
	fields := fit([]field{name, before, after, by, idle}, s.width-12)
	s.line(styleDim, "    "+lay(fields, func(f field) string { return f.head }, "  "))
	for i := range name.cells {
		s.line("", "    "+lay(fields, func(f field) string { return f.cells[i] }, "  "))
	}
}

func movedBy(c model.Counter) string {
	if c.Reset {
		return "made anew"
	}
	return unit.FormatCount(c.Whole)
}
