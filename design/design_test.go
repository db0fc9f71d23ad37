package design

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/test/golden"
)

func planOf(factors []model.Factor, d model.Design) model.Plan {
	return model.Plan{
		Format: model.PlanFormat, Target: "lab:router", Engine: "auto",
		Flows: []model.Flow{
			{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 64, Streams: 1},
			{Name: "down", Protocol: model.UDP, From: model.Receiver, To: model.Sender, PayloadBytes: 64, Streams: 1},
		},
		Factors: factors, Design: d, Timing: model.Timing{MeasureSeconds: 1},
	}
}

func numbers(knob string, values ...float64) model.Factor {
	f := model.Factor{Knob: knob}
	for _, v := range values {
		f.Levels = append(f.Levels, model.Number(v))
	}
	return f
}

// told makes the design of a plan that is told of some results.
func told(t interface{ Fatal(...any) }, p model.Plan, done []model.Result) Design {
	d, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range done {
		d.Add(&done[i])
	}
	return d
}

// walk runs a design to its end on top of what it was told, or for so many trials, and returns the trials it chose.
func walk(d Design, at int) (trials []string, done []model.Result) {
	for ; at != 0; at-- {
		cell, repeat, ok := d.Next()
		if !ok {
			break
		}
		trials = append(trials, cell.TrialName(repeat))
		done = append(done, model.Result{Cell: cell, Repeat: repeat, State: model.Valid})
		d.Add(&done[len(done)-1])
	}
	return trials, done
}

// TestGrids: each line of the file is a grid: its factors and repeats, after "done" the results that it is told of, and
// after "then" the states of its trials, in turn. Below stands the walk to its end. A stored run resumes in this very
// order: it must never change.
func TestGrids(t *testing.T) {
	golden.Table(t, "testdata/grids.txt", func(question string) string {
		grid, told, _ := strings.Cut(question, "; done")
		told, then, _ := strings.Cut(told+" ", "; then")
		var factors []model.Factor
		var d model.Design
		for _, word := range strings.Fields(grid) {
			name, list, _ := strings.Cut(word, "=")
			n, _ := strconv.Atoi(list)
			switch name {
			case "repeats":
				d.Repeats = n
			case "seed":
				d.Seed = uint64(n)
			case "redo":
				d.Redo = n
			case "ordered":
				d.Ordered = true
			default:
				f := model.Factor{Knob: name}
				for _, text := range strings.Split(list, ",") {
					f.Levels = append(f.Levels, level(text))
				}
				factors = append(factors, f)
			}
		}
		walk, err := New(planOf(factors, d))
		if err != nil {
			return err.Error()
		}
		var done []model.Result
		for _, word := range strings.Fields(told) { // payload_bytes=64#0:valid
			var r model.Result
			setting, rest, _ := strings.Cut(word, "#")
			name, text, _ := strings.Cut(setting, "=")
			_, _ = fmt.Sscanf(strings.Replace(rest, ":", " ", 1), "%d %s", &r.Repeat, &r.State)
			r.Cell = model.Cell{name: level(text)}
			done = append(done, r)
		}
		for i := range done {
			walk.Add(&done[i])
		}
		states := strings.Fields(then)
		var out []string
		for len(out) < 100 {
			cell, repeat, more := walk.Next()
			if !more {
				break
			}
			r := model.Result{Cell: cell, Repeat: repeat, State: model.Valid}
			if len(states) > 0 {
				r.State, states = model.State(states[0]), states[1:]
			}
			out = append(out, cell.TrialName(repeat))
			walk.Add(&r)
		}
		return strings.TrimSpace(fmt.Sprintf("of %d: %s", walk.Total(), strings.Join(out, ", ")))
	})
}

// level is a level as text has it.
func level(text string) model.Value {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return model.Number(n)
	}
	return model.Word(text)
}

// drawPlan makes any grid of up to 3 factors.
func drawPlan(t *rapid.T) model.Plan {
	var factors []model.Factor
	for i, knob := range []string{"payload_bytes", "streams", "interval_ns"} {
		n := rapid.IntRange(0, 4).Draw(t, knob)
		if n == 0 {
			continue
		}
		var levels []float64
		for j := range n {
			levels = append(levels, float64(16+j+i))
		}
		factors = append(factors, numbers(knob, levels...))
	}
	return planOf(factors, model.Design{
		Repeats: rapid.IntRange(1, 4).Draw(t, "repeats"), Seed: rapid.Uint64().Draw(t,
			"seed"), Ordered: rapid.Bool().Draw(t, "ordered"),
	})
}

func TestGridProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		d := told(t, p, nil)
		uncut, _ := walk(d, -1)
		if len(uncut) != d.Total() {
			t.Fatalf("an uncut run has %d trials, Total says %d", len(uncut), d.Total())
		}
		count := map[string]int{}
		for i, trial := range uncut {
			count[trial]++
			if want := fmt.Sprintf(" #%d", i*p.Design.Repeats/d.Total()); !strings.HasSuffix(trial, want) {
				t.Fatalf("trial %d is %s: repeats are not interleaved (want %s)", i, trial, want)
			}
		}
		if len(count) != len(uncut) {
			t.Fatalf("%d different trials of %d", len(count), len(uncut))
		}

		// Cut anywhere, shuffle what is stored, add results that count for nothing, and go on.
		cut := rapid.IntRange(0, d.Total()).Draw(t, "cut")
		begun := told(t, p, nil)
		before, done := walk(begun, cut)
		if cut < d.Total() {
			cell, repeat, _ := begun.Next()
			done = append(done, model.Result{Cell: cell, Repeat: repeat, State: model.Aborted})
		}
		done = append(done, model.Result{Cell: model.Cell{"payload_bytes": model.Number(1)}, State: model.Valid})
		stored := slices.Clone(done)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 0)).Shuffle(len(stored),
			func(i, j int) { stored[i], stored[j] = stored[j], stored[i] })
		after, _ := walk(told(t, p, stored), -1)
		if got := append(before, after...); !slices.Equal(got, uncut) {
			t.Fatalf("cut after %d:\n got %q\nwant %q", cut, got, uncut)
		}
	})
}

func TestNextDoesNotShareItsCell(t *testing.T) {
	d, err := New(planOf([]model.Factor{numbers("payload_bytes", 64)}, model.Design{Repeats: 1}))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := d.Next()
	kept := maps.Clone(first)
	first["payload_bytes"] = model.Number(9)
	if second, _, _ := d.Next(); !second.Equal(kept) {
		t.Errorf("a caller's change reached the design: %v", second)
	}
}

// Trials that run beside each other are left out until they end, and trials of the next repeat go on meanwhile.
func TestTrialsThatRun(t *testing.T) {
	const repeats = 5
	pairs := []model.Value{model.Word("a..b"), model.Word("a..c"), model.Word("b..c")}
	p := planOf([]model.Factor{{Knob: "pair", Levels: pairs}}, model.Design{Repeats: repeats, Ordered: true, Redo: 1})
	var want, got []string
	for repeat := range repeats {
		for _, pair := range pairs {
			want = append(want, model.Cell{"pair": pair}.TrialName(repeat))
		}
	}
	d := told(t, p, []model.Result{{Cell: model.Cell{"pair": pairs[0]}, State: model.Valid}}) // resumed
	var running []model.Result
	for n := 0; ; n++ {
		cell, repeat, more := d.Next()
		if !more {
			break
		}
		got = append(got, cell.TrialName(repeat))
		if number := d.Number(cell, repeat); number != 2+n-len(running) {
			t.Errorf("trial %d, beside %d, has the number %d", n, len(running), number)
		}
		d.Begin(cell, repeat)
		// they end together
		if running = append(running, model.Result{Cell: cell, Repeat: repeat, State: model.Valid}); n%4 == 3 {
			for i := range running {
				d.Add(&running[len(running)-1-i])
			}
			running = nil
		}
	}
	if !slices.Equal(got, want[1:]) {
		t.Errorf("got %q, want %q", got, want[1:])
	}
	last := running[len(running)-1]
	last.State = model.Invalid
	d.Add(&last)
	if cell, repeat, _ := d.Next(); cell.TrialName(repeat) != last.Cell.TrialName(last.Repeat) {
		t.Errorf("after an invalid trial comes %s #%d", cell.Key(), repeat)
	}
}

// long are the plans of long runs, and how many trials these have made.
func long(tb testing.TB, trials int) (grid, search Design) {
	grid = told(tb, planOf([]model.Factor{numbers("payload_bytes", 64, 512, 1472), numbers("streams", 1, 2, 4, 8)},
		model.Design{Repeats: 1e6, Seed: 1}), nil)
	search = told(tb, searchPlan(1e6, 64), nil)
	path := limited(250e3, 1e6)
	for _, d := range []Design{grid, search} {
		for range trials {
			one(tb, d, path)
		}
	}
	return grid, search
}

// one makes the next trial of a design.
func one(tb testing.TB, d Design, path device) {
	cell, repeat, more := d.Next()
	if !more {
		tb.Fatal("no trial is left")
	}
	f := path(cell["rate_pps"].Number)
	if seconds, set := cell["measure_s"]; set {
		f.DurationS = seconds.Number
	}
	d.Number(cell, repeat)
	d.Add(&model.Result{Cell: cell, Repeat: repeat, State: model.Valid, Flows: []model.FlowResult{f}})
}

// A trial costs no more after ten thousand others than after a hundred: work is counted in allocations.
func TestTrialsCostTheSame(t *testing.T) {
	work := func(d Design) float64 {
		return testing.AllocsPerRun(200, func() { one(t, d, limited(250e3, 1e6)) })
	}
	fewGrid, fewSearch := long(t, 100)
	manyGrid, manySearch := long(t, 10000)
	for name, c := range map[string][2]Design{"grid": {fewGrid, manyGrid}, "search": {fewSearch, manySearch}} {
		if few, many := work(c[0]), work(c[1]); many > 1.5*few+10 {
			t.Errorf("%s: a trial takes %.0f allocations after 10000 trials, %.0f after 100", name, many, few)
		}
	}
}

// That nothing came through is an answer: such a trial is not made again, as an invalid one is.
func TestNothingThroughNotMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		why  model.Reasons
		want int
	}{"nothing through": {model.Reasons{{Code: model.NothingThrough}}, 1}, "invalid": {nil, 3}} {
		d, err := New(planOf(nil, model.Design{Repeats: 1, Redo: 2}))
		if err != nil {
			t.Fatal(err)
		}
		trials := 0
		for cell, repeat, more := d.Next(); more && trials < 9; cell, repeat, more = d.Next() {
			trials++
			d.Add(&model.Result{Cell: cell, Repeat: repeat, State: model.Invalid, Why: c.why})
		}
		if trials != c.want {
			t.Errorf("%s: %d trials, want %d", name, trials, c.want)
		}
	}
}
