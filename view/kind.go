package view

import (
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/words"
)

// page makes the sections of a run's usable rows, of which there is one at least.
type page func(rows []table.Row, found []finding.Finding) []Section

// ownPages are the pages of kinds of test by their commands; others have a plain one.
func ownPages() map[string]page {
	return map[string]page{"curve": curvePage, "ndr": ndrPage, "latency": latencyPage, "sweep": sweepPage,
		"router": routerPage, "cc": controlPage, "soak": soakPage, "mesh": meshPage}
}

func pageOf(k finding.Kind) page {
	if own := ownPages()[k.Command]; own != nil {
		return own
	}
	return plainPage(k)
}

func Run(d *model.Document) Page {
	k, found := finding.KindOf(d), finding.OfRun(d)
	rows := k.RowsOf(d)
	p := Page{Language: d.Language, Title: k.Title, Subject: subject(d)}
	p.say(found)
	usable := table.Usable(rows)
	if len(usable) == 0 && d.Tool.Name != "" { // what another tool measured until it was stopped
		usable = finding.AsValid(rows)
	}
	if len(usable) > 0 && !finding.NothingThrough(rows) {
		p.Sections = shown(pageOf(k)(usable, found)...)
	} else if searches := finding.TypicalSearches(rows); len(searches) > 0 { // whose floods are not usable
		p.Sections = shown(searchTable(searches, finding.SearchKeys(searches)))
	}
	for _, s := range p.Sections {
		if t, ok := s.(Table); ok && len(found) > 0 {
			t.mark(found[0])
		}
	}
	p.Sections = slices.Concat(p.Sections, nothing(rows), leftOut(rows))
	p.SetUp = setUp(d, found)
	if len(d.Results) > 0 { // else its verdict says them
		for _, w := range finding.Warnings(d) {
			p.Doubts = append(p.Doubts, sentence(d.Language, w))
		}
	}
	return p.translated()
}

// sentence makes one of a clause. A name at its begin stays as it is.
func sentence(l words.Language, clause string) string {
	if word, _, _ := strings.Cut(clause, " "); !strings.HasSuffix(word, ":") {
		clause = finding.Capital(clause)
	}
	if last, _ := utf8.DecodeLastRuneInString(clause); strings.ContainsRune(".?。？", last) {
		return clause
	}
	return clause + l.Say(".")
}

// say puts the words of findings where readers look for them.
func (p *Page) say(found []finding.Finding) {
	var headlines, rest, facts []string
	for _, f := range found {
		switch f = f.In(p.Language); f.Level {
		case finding.Answer:
			parts := f.Parts()
			headlines, rest = append(headlines, parts[0]), append(rest, parts[1:]...)
		case finding.Fact:
			facts = append(facts, f.Text())
		case finding.Doubt:
			p.Doubts = append(p.Doubts, f.Text())
		case finding.Next:
			if run, named := f.Words["run"]; !named || run != "" { // else it was not kept
				p.Next = append(p.Next, Step{Text: f.Text(), Command: f.Command()})
			}
		}
	}
	p.answer(append(headlines, rest...))
	p.Facts = append(p.Facts, facts...)
}

// answer puts the first sentence of an answer above the page, the second below it, and the others among the facts.
func (p *Page) answer(sentences []string) {
	if len(sentences) > 0 {
		p.Verdict, sentences = sentences[0], sentences[1:]
	}
	if len(sentences) > 0 {
		p.Why, sentences = sentences[0], sentences[1:]
	}
	p.Facts = append(p.Facts, sentences...)
}

// TargetOf is the target of a run, with the address that its name stood for.
func TargetOf(d *model.Document) string {
	target := d.Plan.Target
	host, _, err := model.HostPort(target)
	if _, address := netip.ParseAddr(host); err != nil || address == nil || d.Lab != nil {
		return target
	}
	for _, h := range d.Host {
		if h.Node != model.Receiver || h.Address == "" {
			continue
		}
		address := h.Address
		if a, err := netip.ParseAddr(address); err == nil && len(h.OtherAddresses) > 0 {
			family := "IPv6"
			if a.Is4() {
				family = "IPv4"
			}
			address = d.Language.Sayf("%s, %s, reached first of its %d addresses", address, family,
				len(h.OtherAddresses)+1)
		}
		return d.Language.Bracketed(target, address)
	}
	return target
}

func subject(d *model.Document) string {
	var parts []string
	if target := TargetOf(d); target != "" {
		parts = append(parts, target)
	}
	if d.Lab != nil {
		parts = append(parts, Way(d.Language, d.Lab.Nodes))
	}
	if !d.Started.IsZero() {
		parts = append(parts, d.Language.Time("2 January 2006, 15:04 UTC", d.Started))
	}
	if d.ID != "" {
		parts = append(parts, d.Language.Sayf("run %s", d.ID))
	}
	return strings.Join(parts, " · ")
}

func setUp(d *model.Document, found []finding.Finding) []Section {
	t := listing("Hosts", "node Node", "host Host", "system System", "cpu Processor", "interface Interface")
	t.Fold = true
	for _, h := range d.Host {
		system := strings.TrimSpace(h.OS + " " + h.Kernel)
		processor := ""
		if h.Cores > 0 {
			processor = d.Language.Sayf("%s, %d cores", h.CPU, h.Cores)
		}
		t.add(h.Node, h.Name, system, processor, h.Interface)
	}
	out := shown(Heading{"How it was measured"}, t)
	for _, f := range finding.Of(found, finding.SetUp) {
		out = append(out, Text{f.Text()})
	}
	return out
}

// mostLeftOut is how many trials without a figure a page lists.
const mostLeftOut = 100

// leftOut lists the trials that make no figure, with the reason of each.
func leftOut(rows []table.Row) []Section {
	t := listing("Trials left out", "setting Setting", "state State", "why Why")
	keys := append(table.Varying(rows, table.Settings(rows)...), table.KeyOf("repeat"))
	left := slices.DeleteFunc(table.OneEach(rows), table.Row.Valid)
	for _, r := range left[:min(len(left), mostLeftOut)] {
		t.add(table.By([]table.Row{r}, keys...)[0].Name(), string(r.Trial.State),
			finding.WhyIn(r.Language(), r.Trial.Why))
	}
	if len(left) > mostLeftOut {
		l := table.Language(rows)
		t.Title = l.Sayf("%s (the first %d of %d)", l.Say(t.Title), mostLeftOut, len(left))
	}
	return shown(t)
}

// tile is what a finding knows in large type; one that lacks it has an empty tile.
func tile(label string, f finding.Finding, value, note string) Tile {
	return Tile{Label: label, Value: f.Say(value), Note: f.Say(note)}
}

func limitTile(limit finding.Finding) Tile { return tile("Limited by", limit, "{limit}", "") }

// greatest returns the finding whose code begins so and that has the largest number, and an empty one if there is none.
func greatest(found []finding.Finding, code, metric, role string) (most finding.Finding) {
	for _, f := range found {
		n, _ := f.Number(metric, role)
		if m, _ := most.Number(metric, role); strings.HasPrefix(f.Code, code) && (most.Code == "" || n > m) {
			most = f
		}
	}
	return most
}

// first returns the first finding whose code begins so, and an empty one if there is none.
func first(found []finding.Finding, code string) finding.Finding {
	for _, f := range found {
		if strings.HasPrefix(f.Code, code) {
			return f
		}
	}
	return finding.Finding{}
}
