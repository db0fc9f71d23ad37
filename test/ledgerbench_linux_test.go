package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pelt/internal/peltproc"
	"pelt/model"
)

// BenchmarkLedgerOverhead compares the full sending rate with a verdict for
// every lost packet to that without any watch, where nothing is lost: pairs of
// trials in one lab, whose order alternates. It prints the median ratio and its
// range. Run it with -benchtime 10x for ten pairs.
func BenchmarkLedgerOverhead(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "out.json")
	trial := func(mode string) (rate float64, lost uint64) {
		out, err := peltproc.Host{T: b, Data: dir}.Run("curve", "lab:direct", "--engine", "udp", "--payload", "64", "--time", "1s", "--warmup", "200ms", "--repeats", "1", "--drops", mode, "--json", path)
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		var d model.Document
		if err := json.Unmarshal(text, &d); err != nil {
			b.Fatal(err)
		}
		f := d.Results[0].Flows[0]
		return f.SendPPS, f.Lost
	}
	var ratios, rates []float64
	var lost uint64
	for i := range b.N {
		var rate [2]float64
		modes := []string{"seq", "off"}
		order := []int{0, 1}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, m := range order {
			var n uint64
			rate[m], n = trial(modes[m])
			lost += n
		}
		ratios, rates = append(ratios, rate[0]/rate[1]), append(rates, rate[0])
	}
	slices.Sort(ratios)
	slices.Sort(rates)
	b.ReportMetric(ratios[len(ratios)/2], "ratio-median")
	b.ReportMetric(ratios[0], "ratio-min")
	b.ReportMetric(ratios[len(ratios)-1], "ratio-max")
	b.ReportMetric(rates[len(rates)/2], "pps")
	b.ReportMetric(float64(lost), "lost")
	b.ReportMetric(0, "ns/op")
}
