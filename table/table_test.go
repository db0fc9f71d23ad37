package table

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/test/sample"
	"pelt/unit"
)

func near(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// TestPartition: each row is in exactly one group, in its own order, and groups are
// in one order whatever the order of the rows.
func TestPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := sample.Any(t)
		rows := Rows(&d)
		for i := range d.Results {
			if !slices.ContainsFunc(rows, func(r Row) bool { return r.Trial == &d.Results[i] }) {
				t.Fatalf("trial %d has no row", i)
			}
		}
		names := rapid.SampledFrom([]string{"payload_bytes", "control", "flow", "repeat", "state", "engine"})
		keys := rapid.SliceOfNDistinct(names, 0, 4, rapid.ID).Draw(t, "keys")
		var by []Key
		for _, k := range keys {
			by = append(by, KeyOf(k))
		}
		groups := By(rows, by...)
		count := map[string]int{}
		id := func(r Row) string { return fmt.Sprintf("%p %s", r.Trial, r.Flow.Name) }
		trials := 0
		for i, g := range groups {
			for _, r := range g.Rows {
				count[id(r)]++
				for j, k := range by {
					if l := k.Of(r); l != g.Levels[j] {
						t.Fatalf("group %q has a row of %v", g.Name(), l)
					}
				}
			}
			if i > 0 && slices.Equal(groups[i-1].Levels, g.Levels) {
				t.Fatalf("two groups %q", g.Name())
			}
			valid, invalid, aborted := g.Trials()
			trials += valid + invalid + aborted
			if s := g.Stat(MetricOf("goodput_bps")); s.N > len(g.Rows) {
				t.Fatalf("%d values of %d rows", s.N, len(g.Rows))
			}
		}
		for _, r := range rows {
			if count[id(r)] != 1 {
				t.Fatalf("row %s is in %d groups", id(r), count[id(r)])
			}
		}
		if trials > len(rows) {
			t.Fatalf("%d trials in %d rows", trials, len(rows))
		}
		shuffled := rapid.Permutation(rows).Draw(t, "shuffled")
		again := By(shuffled, by...)
		for i := range groups {
			a, b := groups[i].Stat(MetricOf("goodput_bps")), again[i].Stat(MetricOf("goodput_bps"))
			if !slices.Equal(groups[i].Levels, again[i].Levels) || a.N != b.N || a.N > 0 && !near(a.Median, b.Median) {
				t.Fatalf("the order of rows changes group %d from %q to %q", i, groups[i].Name(), again[i].Name())
			}
		}
	})
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   Stat
	}{
		{"one", []float64{7}, Stat{7, 7, 7, 1}},
		{"two", []float64{9, 7}, Stat{8, 7, 9, 2}},
		{"three", []float64{9, 7, 8}, Stat{8, 7, 9, 3}},
		{"six are 95 %", []float64{6, 5, 4, 3, 2, 1}, Stat{3.5, 1, 6, 6}},
		{"of nine the second", []float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, Stat{5, 2, 8, 9}},
	} {
		got := Summary(c.values)
		same := near(got.Median, c.want.Median) && near(got.Low, c.want.Low) && near(got.High, c.want.High)
		if !same || got.N != c.want.N {
			t.Errorf("%s: Summary(%v) = %+v; want %+v", c.name, c.values, got, c.want)
		}
	}
	if s := Summary(nil); s.N != 0 || !math.IsNaN(s.Median) {
		t.Errorf("Summary of nothing = %+v", s)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 3000).Draw(t, "values")
		s := Summary(v)
		if !(s.Low <= s.Median && s.Median <= s.High) || s.N != len(v) {
			t.Fatalf("%+v", s)
		}
	})
}

// TestMetrics checks the list: names and labels once each, units that names end
// with, and no figure of a row that has nothing.
func TestMetrics(t *testing.T) {
	names, labels := map[string]bool{}, map[string]bool{}
	flows := []model.FlowResult{{Protocol: model.UDP}, {Protocol: model.TCP, TCP: &model.TCPFacts{}}}
	d := &model.Document{Results: []model.Result{{State: model.Valid, Flows: flows}}}
	for _, m := range Metrics() {
		if names[m.Name] || labels[strings.ToLower(m.Label)] {
			t.Errorf("%s: the name or the label %q stands twice", m.Name, m.Label)
		}
		names[m.Name], labels[strings.ToLower(m.Label)] = true, true
		if m.Unit != unit.Count && unit.UnitOf(m.Name) != m.Unit {
			t.Errorf("%s is in %q", m.Name, m.Unit)
		}
		if !(m.Resolution > 0) {
			t.Errorf("%s has no resolution", m.Name)
		}
		for _, r := range Rows(d) {
			if v, ok := m.Value(r); ok {
				t.Errorf("%s of a flow that sent nothing is %g", m.Name, v)
			}
			r.Flow.Attempted = 1
			_, _ = m.Value(r) // with nothing else known
			r.Flow.Attempted = 0
			r.Core = &Core{CPUSplit: model.CPUSplit{Idle: 1}}
			r.Flow = nil
			if v, ok := m.Value(r); ok && !strings.HasPrefix(m.Name, "core_") {
				t.Errorf("%s of a core is %g", m.Name, v)
			}
		}
		if !slices.Contains(Named(m.Label), m) || !slices.Contains(Named(m.Name), m) {
			t.Errorf("%s is not found by %q", m.Name, m.Label)
		}
	}
	for _, w := range Words() {
		if len(Named(w)) == 0 {
			t.Errorf("the word %q names nothing", w)
		}
	}
}

// TestHostOfMesh: a mesh's nodes have the names of its hosts, wherever these stand in a node's name.
func TestHostOfMesh(t *testing.T) {
	r := Row{Trial: &model.Result{Cell: model.Cell{"pair": model.Word("a..b")}}}
	for node, want := range map[string]string{"sender": "a", "receiver": "b",
		"another namespace of receiver": "another namespace of b",
		"link sender-router":            "link sender-router", "": ""} {
		if got := HostName(r, node); got != want {
			t.Errorf("%q is called %q, want %q", node, got, want)
		}
	}
}
