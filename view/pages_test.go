package view_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/render"
	"pelt/test/sample"
	"pelt/view"
)

var update = flag.Bool("update", false, "write the golden files anew")

// pages are the documents whose pages are golden files.
var pages = []sample.Named{
	{Name: "router", Doc: sample.Router()}, {Name: "single", Doc: sample.Single()}, {Name: "both", Doc: sample.Both()},
	{Name: "tcp", Doc: sample.TCP()}, {Name: "loss", Doc: sample.Loss()}, {Name: "invalid", Doc: sample.Invalid()},
	{Name: "aborted", Doc: sample.Aborted()}, {Name: "roundtrip", Doc: sample.RoundTrip()},

	// Sweeps of settings.
	{Name: "sweep", Doc: sample.Sweep()}, {Name: "sweepsmall", Doc: sample.SmallSweep()},
	{Name: "sweepconditions", Doc: sample.ConditionSweep()}, {Name: "sweeponce", Doc: asSweep(sample.Streams())},
	{Name: "sweeprates", Doc: asSweep(sample.Rates())}, {Name: "sweeptcp", Doc: asSweep(sample.TCP())},
	{Name: "sweepboth", Doc: asSweep(sample.Both())},

	// Congestion controls.
	{Name: "cc", Doc: sample.Controls()}, {Name: "ccmix", Doc: sample.ControlMix()},
	{Name: "cchostile", Doc: sample.ControlHostile()}, {Name: "ccfew", Doc: fewControls(2)}, {Name: "ccwhole", Doc: wholeControls(4)},

	{Name: "latency", Doc: sample.Latency()},
	{Name: "mesh", Doc: sample.Mesh()}, {Name: "mesh-cycles", Doc: sample.MeshCycles()},

	// Benches of routers.
	{Name: "bench", Doc: sample.Bench()}, {Name: "benchlab", Doc: sample.BenchLab()},
	{Name: "benchhostile", Doc: sample.BenchHostile()}, {Name: "benchrouter", Doc: sample.Routers()[0]},
	{Name: "benchvariants", Doc: sample.Variants()},

	// Soaks.
	{Name: "soak", Doc: sample.Soak()}, {Name: "soak-long", Doc: sample.LongSoak()}, {Name: "soak-cut", Doc: sample.CutSoak()},
	{Name: "soak-hostile", Doc: sample.SoakHostile()},

	// Searches for rates without loss.
	{Name: "search", Doc: sample.Search()}, {Name: "search-random", Doc: sample.RandomLoss()},
	{Name: "search-strict", Doc: sample.Strict()}, {Name: "search-curve", Doc: asKind(sample.Search(), "curve")},

	// What all kinds may meet.
	{Name: "rates", Doc: sample.Rates()}, {Name: "paced", Doc: sample.Paced()}, {Name: "empty", Doc: sample.Empty()},
}

// A search that got on with a flood that was not valid has its answer; a curve then lacks a point.
func TestFloodNotValid(t *testing.T) {
	for _, kind := range []string{"ndr", "curve"} {
		d := asKind(sample.Search(), kind)
		for i := range d.Results {
			if r := &d.Results[i]; !r.Cell.Searching() {
				r.State, r.Why = model.Invalid, model.Reasons{{Code: model.LinkBehind}}
			}
		}
		failed, _ := view.Failed(&d)
		if page := view.Run(&d); (failed == 0) != (kind == "ndr") || kind == "ndr" &&
			(!strings.HasPrefix(page.Verdict, "No loss up to 2") || strings.Contains(page.Verdict, "No usable") || len(page.Sections) < 5) {
			t.Errorf("%s: %d failed, %q, %d sections", kind, failed, page.Verdict, len(page.Sections))
		}
	}
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
	d.Results = slices.DeleteFunc(d.Results, func(r model.Result) bool { return r.Cell["link.loss_ratio"].Number > 0.05 })
	return d
}

// asSweep is a run as one that looks for its best setting.
func asSweep(d model.Document) model.Document { return asKind(d, "sweep") }

func asKind(d model.Document, command string) model.Document {
	d.Plan.Command = command
	return d
}

// TestPages compares the short form and the whole of each page with its golden file.
func TestPages(t *testing.T) {
	for _, p := range pages {
		t.Run(p.Name, func(t *testing.T) {
			page := view.Run(&p.Doc)
			golden(t, p.Name, text(t, page, false)+strings.Repeat("=", 80)+"\n"+text(t, page, true))
		})
	}
}

func text(t *testing.T, page view.Page, all bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := render.Text(&b, page, render.Terminal{Width: 80, All: all, More: "pelt report last --all"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (write it anew with -update, and read it):\n%s", path, got)
	}
}

// TestSetting: the line of progress names the setting of a trial before it has figures.
func TestSetting(t *testing.T) {
	trial := model.Trial{Cell: model.Cell{"payload_bytes": model.Number(64), "interval_ns": model.Number(1e6)},
		Flows: []model.Flow{{Name: "up", Protocol: model.UDP, PayloadBytes: 64, Streams: 1}}}
	if got := view.Setting(trial); got != "64 B, every 1 ms" {
		t.Errorf("%q", got)
	}
}

// TestLossesAreMarked: a share of lost packets of 0.1 % or more is marked as bad in every table, and no smaller one.
func TestLossesAreMarked(t *testing.T) {
	marked, plain := 0, 0
	for _, p := range pages {
		for _, section := range view.Run(&p.Doc).Sections {
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
