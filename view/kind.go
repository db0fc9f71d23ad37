package view

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/plan"
	"pelt/table"
)

// Kind is one kind of test: its command, its plan, what it looks for and what it shows.
type Kind struct {
	plan.Preset
	Use, Short, Long, Example string // of its --help

	Title string
	Rules []finding.Rule
	// Sentences are those of the findings that the kind's own rules make, by code: its command, a dot, and more.
	Sentences map[string]string
	// Repeats is the metric of which a setting needs some repeats that agree; "" for none.
	Repeats string
	// Rows are the rows of a run; nil: those of table.Rows, but for the trials of searches.
	Rows     func(*model.Document) []table.Row
	Searches bool // floods only begin searches
	// Cycles finds what changed over several runs, which are shown as one run of so many cycles; nil: they are shown
	// side by side.
	Cycles finding.Rule
	// Line are the metrics of the line that tells of a trial, LinePart what each flow's part of it begins with;
	// nil: the usual.
	Line     []string
	LinePart func(table.Group) string
	// View makes the sections of a run's usable rows, of which there is one at least.
	View func(rows []table.Row, found []finding.Finding) []Section
}

// Kinds are all kinds of test, in display order. They are made by functions so that a build that shows none links none.
func Kinds() []Kind {
	return []Kind{curve(), ndr(), latency(), sweep(), router(), control(), soak(), mesh()}
}

// kindOf returns the kind of a run's test. A command without a kind of its own is shown as a curve.
func kindOf(d *model.Document) Kind {
	if d.Tool.Name != "" {
		return ofTool(d.Tool.Name)
	}
	for _, k := range Kinds() {
		if k.Command == d.Plan.Command {
			return k
		}
	}
	return curve()
}

func (k Kind) rows(d *model.Document) []table.Row {
	if k.Rows != nil {
		return k.Rows(d)
	}
	return table.Unsearched(table.Rows(d))
}

// said makes a rule say its findings in the kind's sentences.
func (k Kind) said(rule finding.Rule) finding.Rule {
	return func(rows []table.Row) []finding.Finding {
		found := rule(rows)
		for i := range found {
			found[i].English = k.Sentences[found[i].Code]
		}
		return found
	}
}

// FromStored is a finding that a file kept, without its groups.
func FromStored(m model.Finding) finding.Finding {
	f := finding.FromStored(m)
	for _, k := range Kinds() {
		f.English = cmp.Or(f.English, k.Sentences[f.Code])
	}
	return f
}

func Findings(d *model.Document) []finding.Finding {
	k := kindOf(d)
	if len(d.Results) == 0 {
		return finding.NoTrial(d)
	}
	rows := k.rows(d)
	if d.Tool.Name != "" {
		return finding.All(rows, k.Rules...)
	}
	if finding.NothingThrough(rows) {
		k.Rules, k.Repeats = nil, ""
	}
	rules := []finding.Rule{finding.Nothing}
	for _, rule := range k.Rules {
		rules = append(rules, k.said(rule))
	}
	if k.Repeats != "" {
		rules = append(rules, finding.Repeats(k.Repeats))
	}
	return finding.All(rows, append(rules, finding.Common()...)...)
}

// Failed counts the trials that are not valid and that an answer of the run lacks, and how many there are.
func Failed(d *model.Document) (failed, trials int) {
	found := map[string]bool{} // a rate for each goal, by the cell of the flood
	if kindOf(d).Searches {
		for _, r := range finding.TypicalSearches(table.Rows(d)) {
			key := r.Trial.Cell.Key()
			before, known := found[key]
			found[key] = (before || !known) && !math.IsNaN(r.Search.Throughput)
		}
	}
	rest := *d
	rest.Results = slices.DeleteFunc(slices.Clone(d.Results), func(r model.Result) bool {
		return r.State == model.Invalid && found[r.Cell.Key()]
	})
	return rest.Failed()
}

// Stored are the findings of a run as files have them, with their sentences if readers are to have them.
func Stored(d *model.Document, words bool) []model.Finding { return finding.Stored(Findings(d), words) }

func Run(d *model.Document) Page {
	k, found := kindOf(d), Findings(d)
	rows := k.rows(d)
	p := Page{Language: d.Language, Title: k.Title, Subject: subject(d)}
	p.say(found)
	usable := table.Usable(rows)
	if len(usable) == 0 && d.Tool.Name != "" { // what another tool measured until it was stopped
		usable = finding.AsValid(rows)
	}
	if len(usable) > 0 && !finding.NothingThrough(rows) {
		p.Sections = shown(k.View(usable, found)...)
	} else if searches := finding.TypicalSearches(rows); len(searches) > 0 { // the floods that these began with are not usable
		p.Sections = shown(searchTable(searches, finding.SearchKeys(searches)))
	}
	p.Sections = slices.Concat(p.Sections, nothing(rows), leftOut(rows))
	p.SetUp = setUp(d, found)
	if len(d.Results) > 0 { // else its verdict says them
		p.Doubts = append(p.Doubts, finding.Warnings(d)...)
	}
	return p.translated()
}

// say puts the words of findings where readers look for them.
func (p *Page) say(found []finding.Finding) {
	found = slices.Clone(found)
	for i := range found {
		found[i] = found[i].In(p.Language)
	}
	var headlines, rest []string
	for _, f := range finding.Of(found, finding.Answer) {
		parts := f.Parts()
		headlines, rest = append(headlines, parts[0]), append(rest, parts[1:]...)
	}
	p.answer(append(headlines, rest...))
	for _, f := range finding.Of(found, finding.Fact) {
		p.Facts = append(p.Facts, f.Text())
	}
	for _, f := range finding.Of(found, finding.Doubt) {
		p.Doubts = append(p.Doubts, f.Text())
	}
	for _, f := range finding.Of(found, finding.Next) {
		if run, named := f.Words["run"]; named && run == "" { // it was not kept
			continue
		}
		p.Next = append(p.Next, Step{Text: f.Text(), Command: f.Command()})
	}
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
			address = d.Language.Sayf("%s, %s, reached first of its %d addresses", address, family, len(h.OtherAddresses)+1)
		}
		return target + " (" + address + ")"
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
		parts = append(parts, d.Started.UTC().Format(d.Language.Say("2 January 2006, 15:04 UTC")))
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
	t, left := listing("Trials left out", "setting Setting", "state State", "why Why"), 0
	seen := map[*model.Result]bool{}
	keys := append(table.Varying(rows, table.Settings(rows)...), table.KeyOf("repeat"))
	for _, r := range rows {
		if !r.Valid() && !seen[r.Trial] {
			seen[r.Trial] = true
			if left++; left > mostLeftOut {
				continue
			}
			t.add(table.By([]table.Row{r}, keys...)[0].Name(), string(r.Trial.State), finding.WhyIn(r.Language(), r.Trial.Why))
		}
	}
	if left > mostLeftOut {
		l := table.Language(rows)
		t.Title = l.Sayf("%s (the first %d of %d)", l.Say(t.Title), mostLeftOut, left)
	}
	return shown(t)
}

// tile is what a finding knows in large type; one that lacks it has an empty tile.
func tile(label string, f finding.Finding, value, note string) Tile {
	return Tile{Label: label, Value: f.Say(value), Note: f.Say(note)}
}

func limitTile(limit finding.Finding) Tile {
	t := Tile{Label: "Limited by"}
	if limit.Code != "" {
		t.Value = finding.LimitName(limit)
	}
	return t
}

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
