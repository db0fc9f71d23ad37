package view_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/finding"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/render"
	"pelt/table"
	"pelt/test/golden"
	"pelt/test/sample"
	"pelt/view"
	"pelt/words"
)

// pages are the documents whose pages are golden files.
var pages = []sample.Named{
	{Name: "router", Doc: sample.Router()}, {Name: "single", Doc: sample.Single()}, {Name: "both", Doc: sample.Both()},
	{Name: "tcp", Doc: sample.TCP()}, {Name: "loss", Doc: sample.Loss()}, {Name: "invalid", Doc: sample.Invalid()},
	{Name: "tcp-losses", Doc: losing(sample.TCP())},
	{Name: "nothing", Doc: sample.Nothing()}, {Name: "nothing-tcp", Doc: sample.StuckTCP()},
	{Name: "nothing-once", Doc: sample.NothingOnce()}, {Name: "deadstreams", Doc: sample.DeadStreams()},
	{Name: "aborted", Doc: sample.Aborted()}, {Name: "roundtrip", Doc: sample.RoundTrip()},

	// Sweeps of settings.
	{Name: "sweep", Doc: sample.Sweep()}, {Name: "sweepsmall", Doc: sample.SmallSweep()},
	{Name: "sweepconditions", Doc: sample.ConditionSweep()}, {Name: "sweeponce", Doc: asSweep(sample.Streams())},
	{Name: "sweeprates", Doc: asSweep(sample.Rates())}, {Name: "sweeptcp", Doc: asSweep(sample.TCP())},
	{Name: "sweepboth", Doc: asSweep(sample.Both())},

	// Congestion controls.
	{Name: "cc", Doc: sample.Controls()}, {Name: "ccmix", Doc: sample.ControlMix()},
	{Name: "cchostile", Doc: sample.ControlHostile()}, {Name: "ccfew", Doc: fewControls(2)}, {Name: "ccwhole",
		Doc: wholeControls(4)},

	{Name: "latency", Doc: sample.Latency()},
	{Name: "mesh", Doc: sample.Mesh()}, {Name: "mesh-cycles", Doc: sample.MeshCycles()},

	// Benches of routers.
	{Name: "bench", Doc: sample.Bench()}, {Name: "benchlab", Doc: sample.BenchLab()},
	{Name: "benchhostile", Doc: sample.BenchHostile()}, {Name: "benchrouter", Doc: sample.Routers()[0]},
	{Name: "benchvariants", Doc: sample.Variants()},

	// Soaks.
	{Name: "soak", Doc: sample.Soak()}, {Name: "soak-long", Doc: sample.LongSoak()}, {Name: "soak-cut",
		Doc: sample.CutSoak()},
	{Name: "soak-hostile", Doc: sample.SoakHostile()},

	// Searches for rates without loss.
	{Name: "search", Doc: sample.Search()}, {Name: "search-random", Doc: sample.RandomLoss()},
	{Name: "search-drift", Doc: sample.Drift()}, {Name: "search-differ", Doc: sample.Differ()},
	{Name: "search-curve", Doc: asKind(sample.Search(), "curve")}, {Name: "search-nofloods", Doc: noFloods()},

	// What all kinds may meet.
	{Name: "iperf3", Doc: sample.Iperf3()}, {Name: "iperf3-cut", Doc: sample.Iperf3Cut()},
	{Name: "rates", Doc: sample.Rates()}, {Name: "paced", Doc: sample.Paced()}, {Name: "empty", Doc: sample.Empty()},
}

// A search that got on with a flood that was not valid has its answer; a curve then lacks a point.
func TestFloodNotValid(t *testing.T) {
	search := documents()["search-flood"]
	curve := asKind(search, "curve")
	if failed, _ := finding.Failed(&search); failed > 0 {
		t.Errorf("of a search %d trials failed", failed)
	}
	if failed, _ := finding.Failed(&curve); failed == 0 {
		t.Error("of a curve no trial failed")
	}
}

// noFloods is a curve with searches whose floods all were invalid.
func noFloods() model.Document {
	d := asKind(sample.Search(), "curve")
	for i, r := range d.Results {
		if !r.Cell.Searching() {
			d.Results[i].State, d.Results[i].Why = model.Invalid, model.Reasons{{Code: model.AccountMissing}}
		}
	}
	return d
}

// fewControls is a comparison of which few repeats were made.
func fewControls(repeats int) model.Document {
	d := sample.Controls()
	d.Plan.Design.Repeats = repeats
	d.Results = slices.DeleteFunc(d.Results, func(r model.Result) bool { return r.Repeat >= repeats })
	return d
}

// wholeControls is one of two losses of which no transfer was cut.
func wholeControls(repeats int) model.Document {
	d := fewControls(repeats)
	d.Results = slices.DeleteFunc(d.Results,
		func(r model.Result) bool { return r.Cell["link.loss_ratio"].Number > 0.05 })
	return d
}

// losing is a run whose flows have a known place for half of what they lost.
func losing(d model.Document) model.Document {
	for i := range d.Results {
		l := &d.Results[i].Flows[0].Ledger
		n := l.Lost / 2
		l.Unattributed -= n
		l.Lines = append(l.Lines, model.Line{Layer: model.LayerNetwork, Host: "10.0.0.1", Cause: "QDISC_DROP", Packets: n,
			Confidence: "bounded", Evidence: []model.Evidence{{Counter: "packets dropped by QDISC_DROP", Scope: "packet",
				Role: "primary", Unit: "datagram", Delta: 2 * n}}})
	}
	return d
}

// asSweep is a run as one that looks for its best setting.
func asSweep(d model.Document) model.Document { return asKind(d, "sweep") }

func asKind(d model.Document, command string) model.Document {
	d.Plan.Command = command
	return d
}

// TestPages compares the short form and the whole of each page with its golden file, and its pictures with their
// outlines.
func TestPages(t *testing.T) {
	all := allPages(t, words.English)
	var pictures strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { goldenPage(t, name, all[name]) })
		fmt.Fprintf(&pictures, "%s:\n%s", name, outlines(all[name].Sections))
	}
	// Runs of one kind share a chart with a series each; runs of two kinds have charts of their own, and a sentence
	// why.
	for _, runs := range [][]string{{"router", "router"}, {"router", "router", "sweep"}} {
		var of []view.Page
		for _, run := range runs {
			of = append(of, all[run])
		}
		fmt.Fprintf(&pictures, "%v:\n%s", runs,
			outlines(view.Overlay(of, []string{"before", "after", "then"}[:len(of)])))
	}
	golden.File(t, "testdata/pictures.txt", pictures.String())
}

var madePages = map[words.Language]map[string]view.Page{}

// allPages are the pages of all documents in a language, made once. In English they are golden files.
func allPages(t *testing.T, l words.Language) map[string]view.Page {
	t.Helper()
	if madePages[l] == nil {
		out := map[string]view.Page{"again": view.Runs(again(l))}
		for name, d := range documents() {
			d.Language = l
			out[name] = view.Run(&d)
		}
		maps.Copy(out, comparePages(t, l))
		maps.Copy(out, advicePages(l))
		if l == words.English {
			out["soak-day"] = view.Run(day())
			maps.Copy(out, explainPages(t))
		}
		madePages[l] = out
	}
	return maps.Clone(madePages[l])
}

// again are runs of one plan.
func again(l words.Language) []*model.Document {
	runs := sample.Again(60, 20, 0.02, 45, func(n int) bool { return n == 10 })
	for _, d := range runs {
		d.Language = l
	}
	return runs
}

// documents are the pages' runs, and runs with what is rare: many hosts, nothing timed, a flood that was not valid, a
// bench with a part of its trials.
func documents() map[string]model.Document {
	untimed := bigMesh(3)
	for i := range untimed.Results {
		for j := range untimed.Results[i].Flows {
			f := &untimed.Results[i].Flows[j]
			f.RoundTrip, f.Received, f.Lost, f.LossRatio = nil, 0, f.Attempted, 1
			f.Ledger.Unattributed = f.Attempted
			for _, l := range f.Ledger.Lines {
				f.Ledger.Unattributed -= l.Packets
			}
		}
	}
	flood := sample.Search()
	for i := range flood.Results {
		if r := &flood.Results[i]; !r.Cell.Searching() {
			r.State, r.Why = model.Invalid, model.Reasons{{Code: model.AccountMissing}}
		}
	}
	out := map[string]model.Document{"mesh-30": bigMesh(30), "mesh-untimed": untimed, "search-flood": flood}
	for name, keep := range map[string]func(r model.Result) bool{
		"tcp":  func(r model.Result) bool { return r.Cell["protocol"].Text == "tcp" },
		"both": func(r model.Result) bool { return r.Cell["direction"].Text == "both" },
		"idle": func(r model.Result) bool { return r.Cell["rate_pps"].Number > 0 },
		"size": func(r model.Result) bool {
			return r.Cell["frame_bytes"].Number == 512 && r.Cell["variant"].Text == "plain"
		},
		"down": func(r model.Result) bool {
			return r.Cell["variant"].Text == "log" || r.Cell["direction"].Text == "down"
		},
	} {
		d := sample.Bench()
		d.Results = slices.DeleteFunc(d.Results, func(r model.Result) bool { return !keep(r) })
		out["bench-"+name] = d
	}
	for _, p := range pages {
		out[p.Name] = p.Doc
	}
	return out
}

// outlines are the pictures and tiles of a page, which its text does not show.
func outlines(sections []view.Section) string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, "\t"+format+"\n", args...) }
	for _, s := range sections {
		switch s := s.(type) {
		case view.Text:
			say("text: %s", s.Text)
		case view.Tiles:
			for _, tile := range s {
				say("tile %s: %s (%s)", tile.Label, tile.Value, tile.Note)
			}
		case view.Chart:
			say("chart %d %s: %s against %s %s%s; marks %v", s.Kind, s.Title, s.Y.Label, s.X.Label,
				first(s.X.Categories), first(s.Y.Categories), s.Marks)
			for _, x := range s.Series {
				if n := len(x.Points); n > 0 {
					say("\t%s: %d points, %q to %q", x.Name, n, x.Points[0].Name, x.Points[n-1].Name)
				}
			}
		case view.Times:
			say("times %s: changes %v, gaps %v", s.Title, s.Changes, s.Gaps)
			for _, lane := range s.Lanes {
				for _, x := range lane.Traces {
					say("\t%s, %s: %d values, %.4g to %.4g", lane.Label, x.Name, len(x.Values), x.Values[0],
						x.Values[len(x.Values)-1])
				}
			}
		case view.Path:
			say("path %s of %s, %v: %d sent, %d received, losses %v", s.Title, s.Flow, s.Nodes, s.Sent, s.Received,
				s.Losses)
		}
	}
	return out.String()
}

func first(categories []string) string {
	if len(categories) == 0 {
		return ""
	}
	return fmt.Sprintf("(%d categories, %s to %s)", len(categories), categories[0], categories[len(categories)-1])
}

// digits behind the third are not the same on all processors.
var digits = regexp.MustCompile(`(\d\.\d{1,3})\d+`)

// TestFigures: the first rows of the CSV files of each sample are in a golden file.
func TestFigures(t *testing.T) {
	var out strings.Builder
	add := func(name string, write func(w io.Writer) error) {
		var b bytes.Buffer
		testenv.Must(t, write(&b))
		text := digits.ReplaceAllString(strings.ReplaceAll(b.String(), "\r", ""), "$1")
		lines := slices.Collect(strings.Lines(text))
		fmt.Fprintf(&out, "%s, %d lines:\n%s", name, len(lines), strings.Join(lines[:min(3, len(lines))], ""))
	}
	for _, named := range append(sample.All(), sample.Named{Name: "variants", Doc: sample.Variants()}) {
		d := named.Doc
		add(named.Name+" figures", func(w io.Writer) error { return render.CSV(w, view.Figures(&d)) })
		add(named.Name+" ledger", func(w io.Writer) error { return render.CSV(w, view.LedgerFigures(&d)) })
		add(named.Name+" series", func(w io.Writer) error { return render.Records(w, view.SeriesLines(&d)) })
	}
	d := sample.Variants()
	c, err := finding.Compare(finding.Question{Docs: []*model.Document{&d}, Metrics: table.Named("goodput")})
	testenv.Must(t, err)
	add("comparison", func(w io.Writer) error { return render.CSV(w, view.CompareFigures(c)) })
	golden.File(t, "testdata/figures.txt", out.String())
}

func text(t *testing.T, page view.Page, all bool) string {
	t.Helper()
	var b bytes.Buffer
	more := "pelt report last --all"
	if all {
		more = "--html and --csv have all"
	}
	testenv.Must(t, render.Text(&b, page, render.Terminal{Width: 80, All: all, More: more}))
	return b.String()
}

// goldenPage compares a page with its golden file: the short form and the whole.
func goldenPage(t *testing.T, name string, p view.Page) {
	t.Helper()
	golden.File(t, filepath.Join("testdata", name+".txt"),
		text(t, p, false)+strings.Repeat("=", 80)+"\n"+text(t, p, true))
}

// TestSetting: the line of progress names the setting of a trial before it has figures.
func TestSetting(t *testing.T) {
	trial := model.Trial{Cell: model.Cell{"payload_bytes": model.Number(64), "interval_ns": model.Number(1e6)},
		Flows: []model.Flow{{Name: "up", Protocol: model.UDP, PayloadBytes: 64, Streams: 1}}}
	if got := view.Setting(words.English, trial); got != "64 B, every 1 ms" {
		t.Errorf("%q", got)
	}
}

// TestLossesAreMarked: a share of lost packets of 0.1 % or more is marked as bad in every table, and no smaller one.
func TestLossesAreMarked(t *testing.T) {
	marked, plain, all := 0, 0, allPages(t, words.English)
	for _, p := range pages {
		for _, section := range all[p.Name].Sections {
			table, _ := section.(view.Table)
			for i, c := range table.Columns {
				if c.Name != "loss_ratio" {
					continue
				}
				for _, row := range table.Rows {
					bad := row[i].Tone == view.Bad
					if bad != (row[i].Value >= 0.001) {
						t.Errorf("%s: %s: loss of %v is marked: %v", p.Name, table.Title, row[i].Value, bad)
					}
					if bad {
						marked++
					} else {
						plain++
					}
				}
			}
		}
	}
	if marked == 0 || plain == 0 {
		t.Errorf("%d losses are marked, %d are not: want both", marked, plain)
	}
}
