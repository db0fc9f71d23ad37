package report

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pelt/model"
	"pelt/report/internal/sample"
	"pelt/report/rows"
)

// The seconds of a soak that the page draws keep its one bad second, in the colour of the
// ledger's line.
func TestSoakPageKeepsBursts(t *testing.T) {
	d := sample.LongSoak()
	_, classes := newLossChart(rows.Fold(d), func(rows.Row) string { return "" })
	run := newChartData(d, rows.Fold(d), classes).Trials[0]
	if len(run.Rate) != 2 || len(run.Loss) != 1 {
		t.Fatalf("%d rates and %d losses; want 2 and 1", len(run.Rate), len(run.Loss))
	}
	got, lost := run.Rate[1], run.Loss[0]
	if len(got.Values) > maxChartPoints || slices.Min(got.Values) != 9000 || slices.Max(lost.Values) != 31000 {
		t.Errorf("%d points from %v, losses up to %v; want at most %d, the second with 9 kpps and its loss of 31 000", len(got.Values), slices.Min(got.Values), slices.Max(lost.Values), maxChartPoints)
	}
	if end := float64(got.Step) * float64(len(got.Values)); end < 9000 || end > 9010 {
		t.Errorf("the thinned series ends at %v s; want 9000", end)
	}
	if lost.Name != "receiver socket buffer full (SOCKET_RCVBUFF)" || lost.Hue != 0 {
		t.Errorf("loss %q in hue %d; want the ledger's line in its own", lost.Name, lost.Hue)
	}
}

func TestSoakPageMarks(t *testing.T) {
	d := sample.Soak()
	_, classes := newLossChart(rows.Fold(d), func(rows.Row) string { return "" })
	run := newChartData(d, rows.Fold(d), classes).Trials[0]
	want := []chartMark{{200.02, 200.02, 200.02, "router=limit=150mbit", true}, {200, 199, 201, "received 40.0 → 33.0 kpps", false}, {430, 430, 430, "burst of loss", false}}
	if !slices.Equal(run.Marks, want) {
		t.Errorf("marks %+v; want %+v", run.Marks, want)
	}
	if gaps := []chartGap{{300.4, 325}, {510, 514}}; !slices.Equal(run.Gaps, gaps) {
		t.Errorf("gaps %+v; want %+v", run.Gaps, gaps)
	}
	var hues []int
	for _, l := range run.Loss {
		hues = append(hues, l.Hue)
	}
	if !slices.Equal(hues, []int{0, 1, -1}) {
		t.Errorf("hues %v of the losses; want the ledger's, and none for what is unattributed", hues)
	}
	var b bytes.Buffer
	if err := HTML(&b, d); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Worst second", "18 807", "packets lost, at 7:10", "In grey times an end was not heard.", `id="time-loss"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestSeriesCSVGolden(t *testing.T) {
	d := sample.Soak()
	d.Results[0].Series[0].Values = d.Results[0].Series[0].Values[:3] // of the others, all
	for i := range d.Results[0].Series {
		s := &d.Results[0].Series[i]
		s.Values = s.Values[:min(len(s.Values), 5)]
	}
	core, nan := 1, math.NaN()
	d.Results = append(d.Results, model.Result{Series: []model.Series{
		{Metric: "cpu_softirq_ratio", At: "router", Core: &core, StepSeconds: 0.5, StartSeconds: 1, Values: []float64{0.25, nan, 0.75}},
		{Metric: "send_pps", Flow: "up", At: model.Sender, StepSeconds: 1, Values: []float64{1, 2, 3}},
		{Metric: "send_pps", Flow: "=up", At: model.Sender, StepSeconds: 1, Values: []float64{7}},
		{Metric: "never", At: "x", StepSeconds: 0, Values: []float64{7}},
	}})
	var b bytes.Buffer
	if err := SeriesCSV(&b, d); err != nil {
		t.Fatal(err)
	}
	golden(t, "soak-series.csv", b.Bytes())
}

// Each value of each series is in its column, once.
func TestSeriesCSVHasAll(t *testing.T) {
	for _, d := range sample.All() {
		if d.Name == "nasty" || d.Name == "numbers" || d.Name == "soakhostile" || d.Name == "benchhostile" || d.Name == "cchostile" {
			continue // what is no number is not written
		}
		var b bytes.Buffer
		if err := SeriesCSV(&b, d.Doc); err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		var got, want float64
		for _, record := range records[1:] {
			for _, field := range record[2:] {
				if field != "" {
					v, err := strconv.ParseFloat(field, 64)
					if err != nil {
						t.Fatalf("%s: %v", d.Name, err)
					}
					got += v
				}
			}
		}
		for _, r := range d.Doc.Results {
			for _, s := range r.Series {
				for _, v := range s.Values {
					if !math.IsNaN(v) {
						want += v
					}
				}
			}
		}
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: all values come to %v; want %v", d.Name, got, want)
		}
		seen := map[string]bool{}
		for _, h := range records[0] {
			if seen[h] {
				t.Errorf("%s: column %q stands twice", d.Name, h)
			}
			seen[h] = true
		}
	}
}
