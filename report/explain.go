package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// ExplainFormat names what ExplainJSON writes.
const ExplainFormat = "pelt/explain/1"

// Ask says which trials of a run are to be explained. The zero value asks for
// the trial that lost most, of each setting that lost anything.
type Ask struct {
	Trial int        // by its number in the run, from 1; 0 leaves it open
	Cell  model.Cell // only trials with these settings
	All   bool       // every trial, not the worst of each setting
}

// AskError says what is wrong with an Ask, in one line.
type AskError struct{ text string }

func (e *AskError) Error() string { return e.text }

// Explanation is the account of a run's lost packets as ExplainJSON writes it.
// Fields that the run document has are named and meant as there.
type Explanation struct {
	Format   string           `json:"format"`
	ID       string           `json:"id"`
	Started  time.Time        `json:"started"`
	Tool     model.Tool       `json:"tool"`
	Command  string           `json:"command"`
	Target   string           `json:"target"`
	Complete bool             `json:"complete"`
	Cells    []ExplainedCell  `json:"cells"`  // every setting and flow, their valid trials taken together
	Trials   []ExplainedTrial `json:"trials"` // those asked for
}

// ExplainedCell is one flow of one setting over all its valid trials, or over all of them
// where none is valid. Where none has a flow, it is the setting alone.
type ExplainedCell struct {
	Cell      model.Cell   `json:"cell"`
	Flow      string       `json:"flow"`
	From      string       `json:"from"`
	To        string       `json:"to"`
	Trials    []int        `json:"trials"` // numbers in the run, from 1
	State     model.State  `json:"state"`  // of these trials
	Why       string       `json:"why"`    // of the first, unless valid
	Attempted uint64       `json:"attempted_packets"`
	Lost      uint64       `json:"lost_packets"`
	LossRatio float64      `json:"loss_ratio"`
	Sentence  string       `json:"sentence"`
	Ledger    model.Ledger `json:"ledger"` // without checks, which hold for one trial
}

// ExplainedTrial is one trial with its whole account.
type ExplainedTrial struct {
	Trial    int              `json:"trial"` // number in the run, from 1
	Cell     model.Cell       `json:"cell"`
	Repeat   int              `json:"repeat"`
	State    model.State      `json:"state"`
	Why      string           `json:"why"`
	Observed []model.Observed `json:"observed"`
	Flows    []ExplainedFlow  `json:"flows"`
	Counters []model.Counter  `json:"counters"`
}

// ExplainedFlow is one flow of one trial.
type ExplainedFlow struct {
	Name       string            `json:"name"`
	Protocol   model.Protocol    `json:"protocol"`
	From       string            `json:"from"`
	To         string            `json:"to"`
	Planned    uint64            `json:"planned_packets"`
	Attempted  uint64            `json:"attempted_packets"`
	Accepted   uint64            `json:"accepted_packets"`
	Received   uint64            `json:"received_packets"`
	Duplicates uint64            `json:"duplicate_packets"`
	Late       uint64            `json:"late_packets"`
	Lost       uint64            `json:"lost_packets"`
	LossRatio  float64           `json:"loss_ratio"`
	SendErrors map[string]uint64 `json:"send_errors,omitempty"`
	Sentence   string            `json:"sentence"`
	Ledger     model.Ledger      `json:"ledger"`
}

// ExplainJSON writes the account of the trials asked for as one JSON document.
// An *AskError means that the run has no such trial.
func ExplainJSON(w io.Writer, doc model.Document, ask Ask) error {
	chosen, err := ask.choose(doc)
	if err != nil {
		return err
	}
	x := Explanation{
		Format: ExplainFormat, ID: doc.ID, Started: doc.Started, Tool: doc.Tool, Command: doc.Plan.Command, Target: doc.Plan.Target, Complete: doc.Complete,
		Cells: []ExplainedCell{}, Trials: []ExplainedTrial{},
	}
	for _, r := range rows.Fold(doc).Rows {
		ratio, _ := r.LossRatio()
		c := ExplainedCell{Cell: r.Cell, Flow: r.Flow, From: r.From, To: r.To, Attempted: r.Attempted, Lost: r.Lost, LossRatio: ratio,
			State: r.State, Why: r.Why, Sentence: words.Below(r), Ledger: r.Ledger}
		for _, i := range r.Trials {
			c.Trials = append(c.Trials, i+1)
		}
		x.Cells = append(x.Cells, c)
	}
	x.Cells = append(x.Cells, unmeasured(doc)...)
	for _, i := range chosen {
		r := doc.Results[i]
		t := ExplainedTrial{Trial: i + 1, Cell: r.Cell, Repeat: r.Repeat, State: r.State, Why: r.Why, Observed: r.Observed, Counters: r.Counters}
		for _, f := range r.Flows {
			t.Flows = append(t.Flows, explainedFlow(doc, r, f))
		}
		x.Trials = append(x.Trials, t)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(model.Finite(x)); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// unmeasured are the settings of which no trial came to a flow.
func unmeasured(doc model.Document) (cells []ExplainedCell) {
	measured, place := map[string]bool{}, map[string]int{}
	for _, r := range doc.Results {
		measured[r.Cell.Key()] = measured[r.Cell.Key()] || len(r.Flows) > 0
	}
	for i, r := range doc.Results {
		key := r.Cell.Key()
		if measured[key] {
			continue
		}
		at, seen := place[key]
		if !seen {
			at, place[key] = len(cells), len(cells)
			cells = append(cells, ExplainedCell{Cell: r.Cell, State: r.State, Why: r.Why, Sentence: "Nothing was measured."})
		}
		cells[at].Trials = append(cells[at].Trials, i+1)
	}
	return cells
}

func explainedFlow(doc model.Document, r model.Result, f model.FlowResult) ExplainedFlow {
	row := rows.Of(doc, r, f)
	ratio, _ := row.LossRatio()
	return ExplainedFlow{
		Name: f.Name, Protocol: f.Protocol, From: f.From, To: f.To, Planned: f.Planned, Attempted: f.Attempted, Accepted: f.Accepted, Received: f.Received,
		Duplicates: f.Duplicates, Late: f.Late, Lost: f.Lost, LossRatio: ratio, SendErrors: f.SendErrors, Sentence: words.Below(row), Ledger: f.Ledger,
	}
}

// fits reports whether a trial's setting is asked for.
func (a Ask) fits(c model.Cell) bool {
	for k, v := range a.Cell {
		if c[k] != v {
			return false
		}
	}
	return true
}

// choose returns indices into the document's results.
func (a Ask) choose(doc model.Document) ([]int, error) {
	if a.Trial != 0 {
		if a.Trial < 1 || a.Trial > len(doc.Results) {
			return nil, &AskError{fmt.Sprintf("the run has %s, not a trial %d", trialCount(len(doc.Results)), a.Trial)}
		}
		return []int{a.Trial - 1}, nil
	}
	var all []int
	for i, r := range doc.Results {
		if a.fits(r.Cell) {
			all = append(all, i)
		}
	}
	if len(all) == 0 && len(a.Cell) > 0 {
		return nil, &AskError{fmt.Sprintf("no trial of this run has %s; pelt explain without --cell lists the settings", words.Cell(a.Cell))}
	}
	if a.All {
		return all, nil
	}
	var worst []int
	for _, r := range rows.Fold(doc).Rows {
		if !a.fits(r.Cell) || r.TCP != nil || len(r.Trials) == 0 || r.Lost == 0 && len(a.Cell) == 0 {
			continue
		}
		if w := worstTrial(doc, r); !slices.Contains(worst, w) {
			worst = append(worst, w)
		}
	}
	return worst, nil
}

// worstTrial is the trial of a row that lost most, as an index into the results.
func worstTrial(doc model.Document, r rows.Row) int {
	return slices.MaxFunc(r.Trials, func(a, b int) int { return cmp.Compare(lostBy(doc.Results[a], r.Flow), lostBy(doc.Results[b], r.Flow)) })
}

func lostBy(r model.Result, flow string) (lost uint64) {
	for _, f := range r.Flows {
		if f.Name == flow {
			lost += f.Lost
		}
	}
	return lost
}

func trialCount(n int) string {
	if n == 1 {
		return "1 trial"
	}
	return strconv.Itoa(n) + " trials"
}

// Explain writes the account for a terminal of width characters: what each
// setting lost, then the whole ledger of the trials asked for. An *AskError
// means that the run has no such trial.
func Explain(w io.Writer, doc model.Document, ask Ask, width int, colour bool) error {
	chosen, err := ask.choose(doc)
	if err != nil {
		return err
	}
	s := newScreen(width, colour)
	s.wrap(styleBold, "", words.Headline(doc))
	s.wrap("", "", words.Path(doc))
	s.wrap(styleDim, "", words.Run(doc))
	t := rows.Fold(doc)
	if len(t.Rows) == 0 {
		s.line("", "")
		s.line("", "No trial was finished.")
	}
	s.lossTable(doc, t)
	if len(chosen) == 0 && len(t.Rows) > 0 {
		s.nothingLost(doc, slices.DeleteFunc(slices.Clone(t.Rows), func(r rows.Row) bool { return !ask.fits(r.Cell) }))
	}
	for _, i := range chosen {
		s.explainTrial(doc, t, i)
	}
	if err := s.flush(w); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

// lossTable is what each setting lost, one line each.
func (s *screen) lossTable(doc model.Document, t rows.Table) {
	for _, of := range t.Groups() {
		s.line("", "")
		s.wrap(styleBold, "", flowTitle(of[0])+": what was lost")
		fields := knobFields(of, t.Keys)
		fields = append(fields,
			col(of, "payload", 0, func(r rows.Row) string { return strconv.Itoa(r.Payload) + mark(r) }),
			col(of, "trials", 2, func(r rows.Row) string { return trialNumbers(r) }),
			col(of, "attempted", 4, func(r rows.Row) string { return unit.FormatCount(r.Attempted) }),
			col(of, "lost", 0, func(r rows.Row) string { return unit.FormatCount(r.Lost) }),
			col(of, "share", 0, lossCell),
			col(of, "unattributed", 3, func(r rows.Row) string {
				if r.TCP != nil {
					return ""
				}
				return unit.FormatCount(r.Ledger.Unattributed)
			}),
		)
		fields = fit(fields, s.width-38)
		room := s.width - 2
		for _, f := range fields {
			room -= f.width() + 2
		}
		mostly := field{head: "mostly", left: true}
		for _, r := range of {
			mostly.cells = append(mostly.cells, words.Shorten(mostCause(r), max(room, 12)))
		}
		if !mostly.empty() {
			fields = append(fields, mostly)
		}
		s.line(styleDim, lay(fields, func(f field) string { return f.head }, "  "))
		for i := range of {
			s.line("", lay(fields, func(f field) string { return f.cells[i] }, "  "))
		}
	}
	s.marked(doc, t)
}

// marked explains the marks of trials that say nothing about the path.
func (s *screen) marked(doc model.Document, t rows.Table) {
	for _, g := range troubleGroups(doc, t) {
		s.wrap(styleYellow, "! ", g)
	}
}

func mostCause(r rows.Row) string {
	if parts := words.LossParts(r); len(parts) > 0 {
		text, _, _ := strings.Cut(parts[0].Words, " (")
		return text
	}
	return ""
}

// trialNumbers lists the trials of a row by their numbers in the run: "3, 7".
func trialNumbers(r rows.Row) string {
	var list []string
	for _, i := range r.Trials {
		list = append(list, strconv.Itoa(i+1))
	}
	if len(list) > 4 {
		list = append(list[:3], "…"+list[len(list)-1])
	}
	return strings.Join(list, ", ")
}

// nothingLost says so, and what it rests on.
func (s *screen) nothingLost(doc model.Document, list []rows.Row) {
	held, broken := 0, []string{}
	for i, r := range doc.Results {
		for _, f := range r.Flows {
			for _, c := range f.Ledger.Checks {
				if c.Held {
					held++
					continue
				}
				broken = append(broken, fmt.Sprintf("trial %d: %s", i+1, words.Plain(c.Text)))
			}
		}
	}
	s.line("", "")
	text, tcp, udp := "Nothing was lost.", false, false
	for _, r := range list {
		tcp, udp = tcp || r.TCP != nil && r.Connections == nil, udp || r.TCP == nil
	}
	switch {
	case len(list) == 0:
		text = "No trial of that was finished."
	case !slices.ContainsFunc(list, func(r rows.Row) bool { return r.Attempted > 0 || r.Connections != nil }):
		text = "Nothing was sent, so nothing could be lost."
	case tcp && udp:
		text = "No UDP packet was lost. What TCP sent again has no ledger: it does not tell where each was lost."
	case !tcp && !udp:
		text = "Connections have no ledger: how many were not established stands above."
	case tcp:
		text = "What TCP sent again has no ledger: it does not tell where each was lost."
	}
	s.wrap(styleVerdict, "", text)
	if tcp && !udp {
		for _, l := range linkLosses(doc) {
			s.wrap("", "  ", l)
		}
	}
	s.wrap("", "", fmt.Sprintf("Identities between counters: %d held, %d broken.", held, len(broken)))
	for _, b := range broken {
		s.wrap(styleYellow, "  ! ", b)
	}
	var seen []model.Observed
	for _, r := range list {
		for _, o := range r.Observed {
			i := slices.IndexFunc(seen, func(x model.Observed) bool { return x.Node == o.Node })
			switch {
			case i < 0:
				seen = append(seen, o)
			case rows.LessWatched(o.Mode, seen[i].Mode):
				seen[i] = o
			}
		}
	}
	if !udp { // TCP counts its own losses, so nobody was to watch
		return
	}
	s.watched(seen, slices.ContainsFunc(doc.Results, model.Result.SoFar))
}
