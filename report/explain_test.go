package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pelt/model"
	"pelt/report/internal/sample"
	"pelt/report/rows"
)

func TestExplainGolden(t *testing.T) {
	for _, c := range []struct {
		doc   string
		width int
		ask   Ask
	}{
		{"ledger", 80, Ask{}}, {"ledger", 120, Ask{}}, {"unwatched", 80, Ask{}}, {"ipv6", 80, Ask{All: true}}, {"router", 80, Ask{Trial: 2}},
		{"tcp", 80, Ask{}}, {"aborted", 80, Ask{All: true}}, {"soakcut", 80, Ask{}}, {"empty", 80, Ask{}}, {"zero", 80, Ask{}},
	} {
		var b bytes.Buffer
		if err := Explain(&b, document(t, c.doc), c.ask, c.width, false); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("explain-%s-%d.txt", c.doc, c.width), b.Bytes())
	}
}

func TestExplainFitsItsWidth(t *testing.T) {
	for _, d := range sample.All() {
		for _, width := range []int{0, 60, 80, 100, 132, 1000} {
			var b bytes.Buffer
			if err := Explain(&b, d.Doc, Ask{All: true}, width, true); err != nil {
				t.Fatal(err)
			}
			plain := style.ReplaceAllString(b.String(), "")
			if strings.ContainsAny(plain, "\x1b\x00\u202e\r") || !utf8.ValidString(plain) {
				t.Errorf("%s at %d: outside control characters reached the terminal: %q", d.Name, width, plain)
			}
			for _, line := range strings.Split(plain, "\n") {
				words := strings.Fields(line)
				if len(words) > 0 && (words[0] == "run" || words[0] == "undo") || d.Name == "nasty" {
					continue // commands stay whole, and names from outside are one word however long
				}
				if n := utf8.RuneCountInString(line); width >= 80 && n > min(width, maxWidth) && len(words) > 2 {
					t.Errorf("%s at %d: line of %d characters: %q", d.Name, width, n, line)
				}
			}
		}
	}
}

func TestAsk(t *testing.T) {
	size := func(n float64) model.Cell { return model.Cell{"payload_bytes": model.Number(n)} }
	ledger, tcp := sample.Ledger(), sample.TCP()
	for _, c := range []struct {
		name string
		doc  model.Document
		ask  Ask
		want []int
		err  string
	}{
		{"the worst of each lossy setting, in the order of settings", ledger, Ask{}, []int{4, 5, 6}, ""},
		{"one trial, though it lost nothing", ledger, Ask{Trial: 4}, []int{3}, ""},
		{"all", ledger, Ask{All: true}, []int{0, 1, 2, 3, 4, 5, 6, 7}, ""},
		{"a setting that lost nothing", ledger, Ask{Cell: size(1472)}, []int{3}, ""},
		{"all of a setting", ledger, Ask{Cell: size(64), All: true}, []int{0, 4}, ""},
		{"TCP has no ledger", tcp, Ask{}, nil, ""},
		{"nothing to ask", model.Document{}, Ask{}, nil, ""},
		{"no such trial", ledger, Ask{Trial: 9}, nil, "the run has 8 trials, not a trial 9"},
		{"none below", ledger, Ask{Trial: -1}, nil, "the run has 8 trials, not a trial -1"},
		{"no such setting", ledger, Ask{Cell: size(65)}, nil, "no trial of this run has 65 B; pelt explain without --cell lists the settings"},
	} {
		got, err := c.ask.choose(c.doc)
		text := ""
		if err != nil {
			text = err.Error()
			var ask *AskError
			if !errors.As(err, &ask) {
				t.Errorf("%s: error %v is no *AskError", c.name, err)
			}
		}
		if !slices.Equal(got, c.want) || text != c.err {
			t.Errorf("%s: choose = %v, %q; want %v, %q", c.name, got, text, c.want, c.err)
		}
	}
}

func TestExplainJSON(t *testing.T) {
	for _, d := range sample.All() {
		var b bytes.Buffer
		if err := ExplainJSON(&b, d.Doc, Ask{All: true}); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if strings.Contains(b.String(), "null") && d.Name != "nasty" {
			t.Errorf("%s: null where a list or an object belongs", d.Name)
		}
		var x Explanation
		if err := json.Unmarshal(b.Bytes(), &x); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		bare := map[string]bool{} // settings without a flow
		for _, r := range d.Doc.Results {
			bare[r.Cell.Key()] = true
		}
		for _, r := range rows.Fold(d.Doc).Rows {
			delete(bare, r.Cell.Key())
		}
		if x.Format != ExplainFormat || len(x.Trials) != len(d.Doc.Results) || len(x.Cells) != len(rows.Fold(d.Doc).Rows)+len(bare) {
			t.Errorf("%s: %s with %d trials and %d cells of %d results", d.Name, x.Format, len(x.Trials), len(x.Cells), len(d.Doc.Results))
		}
		for _, trial := range x.Trials {
			for _, f := range trial.Flows {
				sum := f.Ledger.Unattributed
				for _, l := range f.Ledger.Lines {
					sum += l.Packets
				}
				if sum != f.Lost && d.Name != "nasty" {
					t.Errorf("%s: trial %d: %d lost, lines and rest make %d", d.Name, trial.Trial, f.Lost, sum)
				}
			}
		}
	}
}

// Of a setting without a valid trial it is said why its figures tell nothing.
func TestExplainJSONTellsStates(t *testing.T) {
	for _, c := range []struct {
		name string
		doc  model.Document
		want string
	}{
		{"aborted", sample.Aborted(), "[64] valid [1] \"\"; [512] aborted [2] \"interrupted\"; [1472] aborted [3] \"the receiver's control connection went away\"; "},
		{"invalid", sample.Invalid(), "[64] invalid [1 3] \"flow up: the sender k\"; [1472] valid [2] \"\"; "},
	} {
		var b bytes.Buffer
		if err := ExplainJSON(&b, c.doc, Ask{}); err != nil {
			t.Fatal(err)
		}
		var x Explanation
		if err := json.Unmarshal(b.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, cell := range x.Cells {
			why := cell.Why
			if c.name == "invalid" {
				why = why[:min(len(why), 21)]
			}
			got += fmt.Sprintf("[%v] %s %v %q; ", cell.Cell["payload_bytes"], cell.State, cell.Trials, why)
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// A run of the first version says nothing of observations, roles or advice.
func TestExplainOfVersion1(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "version1", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := ReadJSON(bytes.NewReader(old), "run.json")
	if err != nil {
		t.Fatal(err)
	}
	var text, page bytes.Buffer
	if err := errors.Join(Explain(&text, doc, Ask{All: true}, 80, false), ExplainHTML(&page, doc, Ask{All: true})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"attempted", "before pelt kept that"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the account of an old run lacks %q:\n%s", want, text.String())
		}
	}
	if !strings.Contains(page.String(), `class="route wide"`) {
		t.Error("no picture of an old run's path")
	}
}

func TestExplainHTML(t *testing.T) {
	var b bytes.Buffer
	if err := ExplainHTML(&b, sample.Ledger(), Ask{}); err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(b.String(), "\u00a0", " ")
	for _, want := range []string{"64 B, trial 5: 5.9 % lost, most of it receiver socket buffer full (SOCKET_RCVBUFF)", "net.core.rmem_max", "sysctl -w net.core.rmem_max=212992", "<b>broken</b>", "each drop seen"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"<script", "script-src", "url(", "src=", "style="} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if err := ExplainHTML(&b, sample.Nasty(), Ask{All: true}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<img", "\x1b", "\x00", "\u202e"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
}

func TestExplainReportsTheDisk(t *testing.T) {
	full := errors.New("no space left on device")
	for name, err := range map[string]error{
		"Explain": Explain(failing{full}, sample.Ledger(), Ask{}, 80, false), "ExplainJSON": ExplainJSON(failing{full}, sample.Ledger(), Ask{}),
		"ExplainHTML": ExplainHTML(failing{full}, sample.Ledger(), Ask{}),
	} {
		if !errors.Is(err, full) {
			t.Errorf("%s = %v; want the writer's error", name, err)
		}
	}
}

// A run of very many settings keeps its page small: those that lost most are drawn.
func TestManySettings(t *testing.T) {
	d := sample.Ledger()
	one := d.Results[4]
	d.Results = nil
	for i := range 60 {
		r := one
		r.Cell = model.Cell{"payload_bytes": model.Number(64), "streams": model.Number(float64(i + 1))}
		f := r.Flows[0]
		f.Attempted += uint64(i) * 1000 // the later ones lose a smaller share
		r.Flows = []model.FlowResult{f}
		d.Results = append(d.Results, r)
	}
	var b bytes.Buffer
	if err := HTML(&b, d); err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(b.String(), "\u00a0", " ")
	if n := strings.Count(page, `class="route wide"`); n != mostPanels {
		t.Errorf("%d pictures; want %d", n, mostPanels)
	}
	if !strings.Contains(page, "20 further settings lost less: pelt explain") {
		t.Error("the page does not say what it leaves out")
	}
}

// What is said of settings that lost nothing is of those that were asked for.
func TestNothingLostOfWhatWasAsked(t *testing.T) {
	doc := sample.Bench()
	var b bytes.Buffer
	if err := Explain(&b, doc, Ask{Cell: model.Cell{"protocol": model.Word("tcp")}}, 100, false); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "No UDP packet was lost") || !strings.Contains(text, "What TCP sent again has no ledger") {
		t.Errorf("of TCP alone:\n%s", text)
	}
}

// A host that one trial of several did not watch is not watched.
func TestNothingLostAndNotWatched(t *testing.T) {
	var doc model.Document
	for i, mode := range []model.DropMode{model.DropsSeq, model.DropsOff} {
		doc.Results = append(doc.Results, model.Result{Cell: model.Cell{"payload_bytes": model.Number(float64(64 * (i + 1)))}, State: model.Valid,
			Observed: []model.Observed{{Node: "receiver", Mode: mode}},
			Flows:    []model.FlowResult{{Name: "up", Protocol: model.UDP, From: "sender", To: "receiver", PayloadBytes: 64 * (i + 1), Attempted: 10, Received: 10}}})
	}
	var b bytes.Buffer
	if err := Explain(&b, doc, Ask{}, 100, false); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "Nothing was lost.") || strings.Contains(text, "by its sequence") {
		t.Errorf("watched as closely as in the first trial:\n%s", text)
	}
}
