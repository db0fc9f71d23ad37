package rows

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pelt/model"
	"pelt/report/internal/sample"
)

func numbers(v ...float64) []model.Value {
	var out []model.Value
	for _, x := range v {
		out = append(out, model.Number(x))
	}
	return out
}

// cells makes a document with a result for each cell.
func cells(factors []model.Factor, of ...model.Cell) model.Document {
	d := model.Document{Plan: model.Plan{Command: SweepCommand, Factors: factors}}
	for i, c := range of {
		f := account(0, 0)
		f.PayloadBytes, f.GoodputBPS = int(c[PayloadKey].Number), float64(100+i)
		d.Results = append(d.Results, model.Result{Cell: c, State: model.Valid, Flows: []model.FlowResult{f}})
	}
	return d
}

func TestGrids(t *testing.T) {
	size := model.Factor{Knob: PayloadKey, Levels: numbers(1472, 64)}
	interval := model.Factor{Knob: "interval_ns", Levels: numbers(0, 1e6)}
	rate := model.Factor{Knob: "rate_pps", Levels: []model.Value{model.Word("max"), model.Number(1000)}}
	control := model.Factor{Knob: "control", Levels: []model.Value{model.Word("bbr"), model.Word("cubic")}}
	at := func(size, interval float64) model.Cell {
		return model.Cell{PayloadKey: model.Number(size), "interval_ns": model.Number(interval)}
	}
	for _, c := range []struct {
		name string
		doc  model.Document
		x, y string
		ys   []model.Value
		want [][][]int
	}{
		{"a size goes across", cells([]model.Factor{interval, size}, at(64, 0), at(1472, 0), at(64, 1e6), at(1472, 1e6)), PayloadKey, "interval_ns", numbers(0, 1e6), [][][]int{{{0, 1}, {2, 3}}}},
		{"missing cells", cells([]model.Factor{size, interval}, at(1472, 0)), PayloadKey, "interval_ns", numbers(0, 1e6), [][][]int{{{-1, 0}, {-1, -1}}}},
		{"one knob", cells([]model.Factor{size}, at(64, 0), at(1472, 0)), PayloadKey, "", []model.Value{{}}, [][][]int{{{0, 1}}}},
		{"a level the plan has not", cells([]model.Factor{size, interval}, at(64, 0), at(1472, 5e6)), PayloadKey, "interval_ns", numbers(0, 1e6, 5e6), [][][]int{{{0, -1}, {-1, -1}, {-1, 1}}}},
		{"words after numbers", cells([]model.Factor{size, rate}, model.Cell{PayloadKey: model.Number(64), "rate_pps": model.Word("max")}), PayloadKey, "rate_pps", []model.Value{model.Number(1000), model.Word("max")}, [][][]int{{{-1, -1}, {0, -1}}}},
		{"a grid for each further setting", cells([]model.Factor{size, interval, control},
			model.Cell{PayloadKey: model.Number(64), "interval_ns": model.Number(0), "control": model.Word("bbr")},
			model.Cell{PayloadKey: model.Number(64), "interval_ns": model.Number(0), "control": model.Word("cubic")}), PayloadKey, "interval_ns", numbers(0, 1e6), [][][]int{{{0, -1}, {-1, -1}}, {{1, -1}, {-1, -1}}}},
		{"one level is no side", cells([]model.Factor{{Knob: PayloadKey, Levels: numbers(64)}, interval, {Knob: "link.loss_ratio", Levels: numbers(0.01, 0)}},
			model.Cell{PayloadKey: model.Number(64), "interval_ns": model.Number(0), "link.loss_ratio": model.Number(0)},
			model.Cell{PayloadKey: model.Number(64), "interval_ns": model.Number(0), "link.loss_ratio": model.Number(0.01)}), "interval_ns", "link.loss_ratio", numbers(0, 0.01), [][][]int{{{0, -1}, {1, -1}}}},
		{"words only", cells([]model.Factor{control}, model.Cell{"control": model.Word("bbr")}), "", "", nil, nil},
		{"not a number", cells([]model.Factor{size, interval}, at(64, 0), at(64, math.NaN())), PayloadKey, "interval_ns", numbers(0, 1e6), [][][]int{{{1, -1}, {-1, -1}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := Fold(c.doc)
			var got [][][]int
			for _, g := range table.Grids(c.doc.Plan) {
				got = append(got, g.Rows)
				if g.X.Key != c.x || g.Y.Key != c.y || !slices.Equal(g.Y.Levels, c.ys) {
					t.Errorf("sides %+v and %+v; want %s and %s with %v", g.X, g.Y, c.x, c.y, c.ys)
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("grids %v; want %v", got, c.want)
			}
		})
	}
}

func TestOutline(t *testing.T) {
	g := Grid{Rows: [][]int{{0, 1}, {2, -1}}}
	n := 0
	g.Outline([]int{0, 1, -1}, func(x0, y0, x1, y1 int) {
		n++
		if x0 == 1 && x1 == 1 {
			t.Error("an edge runs between two cells of the outline")
		}
	})
	if n != 6 {
		t.Errorf("%d edges around two cells; want 6", n)
	}
}

func TestBest(t *testing.T) {
	d := sample.SmallSweep()
	table := Fold(d)
	best := table.Best(d.Findings)
	want := model.Cell{"payload_bytes": model.Number(1472), "interval_ns": model.Number(2e6), "receive_buffer_bytes": model.Number(212992)}
	if best < 0 || !table.Rows[best].Cell.Equal(want) {
		t.Fatalf("best is row %d; want the cell that the finding names", best)
	}
	if ties := table.Ties(d.Findings, best); len(ties) != 1 || table.Rows[ties[0]].Cell["interval_ns"].Number != 0 {
		t.Errorf("ties %v; want the one cell that the finding lists", ties)
	}
	if b := table.Best(nil); b < 0 || table.Rows[b].State != model.Valid {
		t.Errorf("best without findings is row %d; want a valid one", b)
	}
	if ties := table.Ties(nil, best); ties != nil {
		t.Errorf("ties without findings: %v", ties)
	}
	values := []model.Finding{{Kind: "sweep-best", Values: map[string]float64{"payload_bytes": 512, "interval_ns": 1e6, "goodput_bps": 1}}}
	if b := table.Best(values); table.Rows[b].Payload != 512 || table.Rows[b].Cell["interval_ns"].Number != 1e6 {
		t.Errorf("best by values is %v; want 512 B every 1 ms", table.Rows[b].Cell)
	}
	for _, f := range []model.Finding{{Kind: "sweep-best"}, {Kind: "sweep-best", Values: map[string]float64{"payload_bytes": 9}}, {Kind: "sweep-best", Cells: []model.Cell{{}}}} {
		if b := table.Best([]model.Finding{f}); b != table.Best(nil) {
			t.Errorf("best by %+v is row %d; want the fastest, because it names none", f, b)
		}
	}
	if b := Fold(sample.Empty()).Best(nil); b != -1 {
		t.Errorf("best of nothing is row %d; want -1", b)
	}
}

func TestReceivers(t *testing.T) {
	share := func(node string, got uint64, bps float64) model.ReceiverShare {
		return model.ReceiverShare{Node: node, Attempted: 100, Received: got, GoodputBPS: bps}
	}
	d := model.Document{}
	for _, shares := range [][]model.ReceiverShare{{share("a", 90, 10), share("b", 80, 30), share("c", 70, 20)}, {share("a", 100, 12), share("c", 100, 22)}} {
		f := account(0, 0)
		f.Attempted, f.Receivers = uint64(100*len(shares)), shares
		d.Results = append(d.Results, model.Result{State: model.Valid, Flows: []model.FlowResult{f}})
	}
	r := Fold(d).Rows[0]
	if r.Receivers == nil || r.Receivers.Count != 3 || r.Receivers.Least.Median != 11 || r.Receivers.Middle.Median != 18.5 || r.Receivers.Most.Median != 26 || r.PacketsEach.Median != 100 {
		t.Errorf("receivers %+v, %v packets each; want 3, 11, 18.5, 26 and 100", r.Receivers, r.PacketsEach.Median)
	}
	shares := r.Shares(d)
	if len(shares) != 3 || shares[0].Node != "a" || shares[0].Received != 190 || shares[0].GoodputBPS.Median != 11 || shares[1].GoodputBPS.N != 1 {
		t.Errorf("shares %+v; want a with 190 of two trials, b with one", shares)
	}
	if ratio, ok := shares[0].LossRatio(); !ok || ratio != 0.05 {
		t.Errorf("a lost %v, %v; want 0.05", ratio, ok)
	}
	if r := Fold(sample.Router()).Rows[0]; r.Receivers != nil {
		t.Errorf("a flow to one has receivers %+v", r.Receivers)
	}
}

func TestPlanned(t *testing.T) {
	size := model.Factor{Knob: PayloadKey, Levels: numbers(64, 512, 1472)}
	way := func(words ...string) model.Factor {
		f := model.Factor{Knob: "direction"}
		for _, w := range words {
			f.Levels = append(f.Levels, model.Word(w))
		}
		return f
	}
	for _, c := range []struct {
		factors []model.Factor
		flow    string
		want    int
	}{
		{nil, "up", 0}, {[]model.Factor{size}, "up", 3}, {[]model.Factor{size, way("up", "both")}, "up", 6},
		{[]model.Factor{size, way("up", "both")}, "down", 3}, {[]model.Factor{way("up", "down", "both"), size}, "down", 6}, {[]model.Factor{way("up"), size}, "down", 0},
	} {
		if got := Planned(model.Plan{Factors: c.factors}, c.flow); got != c.want {
			t.Errorf("%v of %s: %d cells, want %d", c.factors, c.flow, got, c.want)
		}
	}
}
