package view_test

import (
	"fmt"
	"io"
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"pelt/finding"
	"pelt/model"
	"pelt/render"
	"pelt/test/sample"
	"pelt/view"
	"pelt/words"
)

// explainPages are the accounts of losses that are golden files.
func explainPages(t *testing.T) map[string]view.Page {
	t.Helper()
	out := map[string]view.Page{}
	for _, c := range []struct {
		sample.Named
		ask finding.Ask
	}{
		{sample.Named{Name: "explain-ledger", Doc: sample.Ledger()}, finding.Ask{}},
		{sample.Named{Name: "explain-chain", Doc: sample.Chain()}, finding.Ask{}},
		{sample.Named{Name: "explain-unwatched", Doc: sample.Unwatched()}, finding.Ask{}},
		{sample.Named{Name: "explain-invalid", Doc: sample.Invalid()}, finding.Ask{Trial: 1}},
		{sample.Named{Name: "explain-nothing", Doc: sample.Nothing()}, finding.Ask{}},
		{sample.Named{Name: "explain-deadstreams", Doc: sample.DeadStreams()}, finding.Ask{}},
		{sample.Named{Name: "explain-soak", Doc: sample.CutSoak()}, finding.Ask{}},
		{sample.Named{Name: "explain-mesh", Doc: sample.Mesh()}, finding.Ask{}},
		{sample.Named{Name: "explain-tcp", Doc: sample.TCP()}, finding.Ask{}},
		{sample.Named{Name: "explain-tcp-losses", Doc: losing(sample.TCP())}, finding.Ask{}},
		{sample.Named{Name: "explain-nothing-tcp", Doc: sample.StuckTCP()}, finding.Ask{}},
	} {
		out[c.Name] = explain(t, &c.Doc, c.ask)
	}
	return out
}

func explain(t rapid.TB, d *model.Document, ask finding.Ask) view.Page {
	t.Helper()
	trials, err := ask.Trials(d)
	if err != nil {
		t.Fatal(err)
	}
	return view.Explain(d, ask, trials)
}

func advicePages(l words.Language) map[string]view.Page {
	advised := func(knob, command string, apply bool) model.Advised {
		return model.Advised{Advice: model.Advice{Knob: knob, Host: "receiver", Present: "1000", Value: "3000",
			Command: command,
			Undo: "undo " +
				knob, Why: model.Doubts{{Code: model.CounterMoved, Name: "softnet.dropped",
				Numbers: map[string]float64{"packets": 100}}}}, Here: true, Apply: apply, Layer: model.LayerReceiverBacklog,
			Packets: 100, Attempted: 900}
	}
	list := []model.Advised{advised("net.core.netdev_max_backlog", "sysctl -w net.core.netdev_max_backlog=3000", true),
		advised("eth0.txqueuelen", "ip link set dev eth0 txqueuelen 3000", false),
		advised("socket.receive_buffer", "pelt curve HOST --receive-buffer 3000", false)}
	lab, hosts := sample.Ledger(), sample.Unwatched()
	lab.Language, hosts.Language = l, l
	// only between hosts is eth0 one of a host
	return map[string]view.Page{"advice-lab": view.Advice(&lab, list), "advice-hosts": view.Advice(&hosts, list),
		"advice-none": view.Advice(&lab, list[1:2])}
}

// Whatever outside names and figures a document holds, no page of it lacks a word, says what is no number, or acts on a
// terminal.
func TestHostileDocuments(t *testing.T) {
	for name, d := range map[string]model.Document{"names": sample.Nasty(), "numbers": sample.Numbers(), "nothing": {}} {
		swept := asSweep(d)
		for _, page := range []view.Page{explain(t, &d, finding.Ask{All: true}), view.Advice(&d, nil), view.Run(&d),
			view.Run(&swept)} {
			if all := text(t, page, true); regexp.MustCompile("<no |NaN|[\x1b\x00\u202e]").MatchString(all) {
				t.Errorf("%s: %s", name, all)
			}
			if err := render.HTML(io.Discard, page); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The page of one trial has a headline and a table of that trial alone, also of one that is not valid.
func TestExplainOneTrial(t *testing.T) {
	for _, d := range sample.All() {
		for i, r := range d.Doc.Results {
			if i%(1+len(d.Doc.Results)/5) != 0 && r.State == model.Valid { // a few stand for all of a kind
				continue
			}
			lost := uint64(0)
			for _, f := range r.Flows {
				if f.Protocol == model.UDP {
					lost += f.Lost
				}
			}
			for _, s := range explain(t, &d.Doc, finding.Ask{Trial: i + 1}).Sections {
				table, ok := s.(view.Table)
				if !ok || table.Title != "What was lost" {
					continue
				}
				sum := 0.0
				for _, row := range table.Rows {
					if row[3].Text != fmt.Sprint(i+1) {
						t.Errorf("%s: trial %d: a row of trial %s", d.Name, i+1, row[3].Text)
					}
					sum += row[4].Value
				}
				if sum != float64(lost) {
					t.Errorf("%s: trial %d: the table has %v lost packets, want %d", d.Name, i+1, sum, lost)
				}
			}
		}
	}
}

// Each share that the account of one flow says in a sentence stands in a table of its page, too.
func TestSharesStandInTables(t *testing.T) {
	d := sample.Chain()
	share := regexp.MustCompile(`[\d.]+ %`)
	for _, p := range []view.Page{explain(t, &d, finding.Ask{}), view.Run(&d)} {
		tables := text(t, view.Page{Sections: p.Sections}, true)
		for _, said := range share.FindAllString(fmt.Sprint(p.Verdict, p.Why, p.Facts, p.Doubts), -1) {
			if !regexp.MustCompile(`\s` + regexp.QuoteMeta(said) + `\s`).MatchString(tables) {
				t.Errorf("%s stands in no table:\n%s", said, text(t, p, true))
			}
		}
	}
}
