package rows

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/report/internal/sample"
)

func TestStat(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name string
		in   []float64
		want Stat
	}{
		{"none", nil, Stat{}},
		{"one", []float64{4}, Stat{4, 4, 4, 1}},
		{"odd", []float64{9, 1, 4}, Stat{4, 1, 9, 3}},
		{"even", []float64{9, 1, 4, 6}, Stat{5, 1, 9, 4}},
		{"not numbers", []float64{nan, 3, inf, -inf}, Stat{3, 3, 3, 1}},
		{"largest", []float64{math.MaxFloat64, math.MaxFloat64}, Stat{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, 2}},
	} {
		if got := stat(c.in); got != c.want {
			t.Errorf("%s: stat(%v) = %+v; want %+v", c.name, c.in, got, c.want)
		}
	}
}

func TestStatLiesBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64(), 1, 20).Draw(t, "values")
		s := stat(slices.Clone(values))
		if s.N != len(values) || s.Median < s.Min || s.Median > s.Max || s.Min != slices.Min(values) || s.Max != slices.Max(values) {
			t.Fatalf("stat(%v) = %+v", values, s)
		}
	})
}

func TestFoldRouter(t *testing.T) {
	table := Fold(sample.Router())
	if len(table.Rows) != len(sample.Sizes()) {
		t.Fatalf("%d rows; want one for each of %d sizes", len(table.Rows), len(sample.Sizes()))
	}
	for i, r := range table.Rows {
		if r.Payload != sample.Sizes()[i] || len(r.Trials) != 3 || r.State != model.Valid {
			t.Errorf("row %d: payload %d of %d trials, %s; want %d of 3, valid", i, r.Payload, len(r.Trials), r.State, sample.Sizes()[i])
		}
		sum := r.Ledger.Unattributed
		for _, l := range r.Ledger.Lines {
			sum += l.Packets
		}
		if sum != r.Lost || r.Lost != r.Ledger.Lost {
			t.Errorf("row %d: ledger sums to %d, says %d; want %d", i, sum, r.Ledger.Lost, r.Lost)
		}
	}
	if table.Axis() != PayloadKey {
		t.Errorf("axis %q; want %q", table.Axis(), PayloadKey)
	}
}

func TestOnlyValidTrialsCount(t *testing.T) {
	table := Fold(sample.Invalid())
	byPayload := map[int]Row{}
	for _, r := range table.Rows {
		byPayload[r.Payload] = r
	}
	if r := byPayload[64]; r.State != model.Invalid || r.Why == "" || !math.IsNaN(r.Share) || len(r.Trials) != 2 {
		t.Errorf("64 B has no valid trial: %s, %q, share %v, %d trials; want invalid with its reason, no share, both trials", r.State, r.Why, r.Share, len(r.Trials))
	}
	if r := byPayload[1472]; r.State != model.Valid || len(r.Trials) != 1 || r.Share != 1 {
		t.Errorf("1472 B has one valid trial: %s, %d trials, share %v; want valid, 1, 1", r.State, len(r.Trials), r.Share)
	}
	if len(table.Trouble) != 3 {
		t.Errorf("%d troubles; want 3", len(table.Trouble))
	}
}

func TestGroupsKeepProtocolsApart(t *testing.T) {
	d := sample.Loss()
	d.Results = append(d.Results, sample.TCP().Results...)
	groups := Fold(d).Groups()
	if len(groups) != 2 {
		t.Fatalf("%d groups; want UDP and TCP apart", len(groups))
	}
	for _, g := range groups {
		for _, r := range g {
			if (r.TCP != nil) != (g[0].Protocol == model.TCP) {
				t.Errorf("a %s row stands in the table of %s", r.Protocol, g[0].Protocol)
			}
		}
	}
}

func TestAxisAndLines(t *testing.T) {
	for _, c := range []struct {
		name   string
		doc    model.Document
		axis   string
		lines  int
		points int
	}{
		{"sizes", sample.Router(), PayloadKey, 1, 8}, {"two directions", sample.Both(), PayloadKey, 2, 3}, {"streams", sample.Streams(), PayloadKey, 2, 3},
		{"rates", sample.Rates(), "rate_pps", 1, 4}, {"one cell", sample.Single(), "", 0, 0}, {"nothing", sample.Empty(), "", 0, 0},
	} {
		table := Fold(c.doc)
		if got := table.Axis(); got != c.axis {
			t.Errorf("%s: axis %q; want %q", c.name, got, c.axis)
			continue
		}
		lines := table.Lines(c.axis)
		if c.axis != "" && (len(lines) != c.lines || len(lines[0].Points) != c.points) {
			t.Errorf("%s: %d lines; want %d, the first with %d points", c.name, len(lines), c.lines, c.points)
		}
		for _, l := range lines {
			if !slices.IsSortedFunc(l.Points, func(a, b Point) int { return int(a.X - b.X) }) {
				t.Errorf("%s: points of %v do not ascend", c.name, l)
			}
		}
	}
}

func TestLevelsInOrderOfThePlan(t *testing.T) {
	p := model.Plan{Factors: []model.Factor{{Knob: "direction", Levels: []model.Value{model.Word("up"), model.Word("down"), model.Word("both")}}}}
	cell := func(w string) model.Cell { return model.Cell{"direction": model.Word(w)} }
	for _, c := range []struct {
		a, b model.Cell
		want int
	}{{cell("up"), cell("down"), -1}, {cell("both"), cell("down"), 1}, {cell("up"), cell("up"), 0}, {model.Cell{}, cell("up"), -1}} {
		if got := CompareLevels(p, "direction", c.a, c.b); got != c.want {
			t.Errorf("CompareLevels(%v, %v) = %d; want %d", c.a, c.b, got, c.want)
		}
	}
}

// A trial that was cut before it sent has no figures, not figures of zero.
func TestNothingSentIsNoFigure(t *testing.T) {
	d := sample.Aborted()
	r := d.Results[0]
	r.Cell = model.Cell{"payload_bytes": model.Number(1473)}
	r.State, r.Flows = model.Aborted, []model.FlowResult{{Name: "up", Protocol: model.UDP, PayloadBytes: 1473}}
	d.Results = append(d.Results, r)
	for _, row := range Fold(d).Rows {
		if sent := row.Attempted > 0; (row.SendPPS.N > 0) != sent || (row.GoodputBPS.N > 0) != sent {
			t.Errorf("%d B, %d packets sent: rate of %d trials, goodput of %d", row.Payload, row.Attempted, row.SendPPS.N, row.GoodputBPS.N)
		}
	}
}

func TestMissedRatio(t *testing.T) {
	for _, c := range []struct {
		planned, attempted uint64
		want               float64
	}{{0, 100, 0}, {100, 100, 0}, {5000, 4997, 0.0006}, {100, 120, 0}} {
		if got := (Row{Planned: c.planned, Attempted: c.attempted}).MissedRatio(); got != c.want {
			t.Errorf("%d of %d: MissedRatio = %v; want %v", c.attempted, c.planned, got, c.want)
		}
	}
}
