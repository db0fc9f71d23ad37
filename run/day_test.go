package run

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
	"pelt/store"
	"pelt/unit"
)

// BenchmarkDay takes a day of samples of a soak at 40 kpps, both ends and the processors
// of both hosts, through what keeps and stores it, in simulated time. MB are what its
// heap holds at the end of the day, and what is on the disk; with -short it is an hour.
func BenchmarkDay(b *testing.B) {
	seconds := 24 * 3600
	if testing.Short() {
		seconds = 3600
	}
	flow := model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 512, Rate: unit.PacketRate(40_000), Streams: 1}
	trial := model.Trial{Cell: model.Cell{"payload_bytes": model.Number(512)}, Flows: []model.Flow{flow}, Timing: model.Timing{MeasureSeconds: float64(seconds), PatienceSeconds: 60}}
	p := twoEnds()
	for b.Loop() {
		heap := func() float64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return float64(m.HeapAlloc) / 1e6
		}
		before := heap()
		dir := b.TempDir()
		s, err := store.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		doc := model.Document{Started: began, Plan: model.Plan{Command: "soak", Target: "10.0.0.1", Flows: trial.Flows}}
		log, err := s.Create(doc)
		if err != nil {
			b.Fatal(err)
		}
		r := &runner{log: log, doc: &doc}
		sum := newSoFar(trial, fleet.Trial{Flows: []fleet.PlacedFlow{{Flow: flow}}}, &watch{site: p}, began)
		for i := 1; i <= seconds; i++ {
			n := uint64(i) * 40_000
			lost := uint64(i / 600)
			r.soFar(sum, 1, fleet.Progress{Flow: "up", Role: engine.Send, Agent: "s", Packets: n, AtS: float64(i)})
			r.soFar(sum, 1, fleet.Progress{Flow: "up", Role: engine.Receive, Agent: "r", Packets: n - lost, Reach: n, AtS: float64(i)})
		}
		if sum.failed {
			b.Fatal("a checkpoint was not stored")
		}
		b.ReportMetric(heap()-before, "heap-MB")
		name, size := stored(b, dir)
		b.ReportMetric(size/1e6, "checkpoints-MB")
		result := day(trial, began, seconds)
		if err := log.Append(result); err != nil {
			b.Fatal(err)
		}
		if err := log.Close(); err != nil {
			b.Fatal(err)
		}
		_, size = stored(b, dir)
		b.ReportMetric(size/1e6, "file-MB")
		loaded, err := s.Load(name)
		if err != nil || len(loaded.Results) != 1 || loaded.Results[0].Flows[0].Attempted != uint64(seconds)*40_000 {
			b.Fatalf("%v: %d results", err, len(loaded.Results))
		}
		b.ReportMetric(heap()-before, "loaded-heap-MB")
		runtime.KeepAlive(sum)
		runtime.KeepAlive(loaded)
	}
}

// stored is the id of the one run of a store, and the bytes of its file.
func stored(b *testing.B, dir string) (id string, size float64) {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "runs", "*.jsonl"))
	if err != nil || len(files) != 1 {
		b.Fatalf("%v: %d runs", err, len(files))
	}
	info, err := os.Stat(files[0])
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSuffix(filepath.Base(files[0]), ".jsonl"), float64(info.Size())
}

// day is the result of such a day, with the series that a soak between two hosts of
// four cores has.
func day(t model.Trial, began time.Time, seconds int) model.Result {
	n := uint64(seconds) * 40_000
	r := model.Result{Cell: t.Cell, Started: began, State: model.Valid, Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP, Attempted: n, Accepted: n, Received: n}}}
	add := func(metric, at string, core *int, value func(i int) float64) {
		s := model.Series{Metric: metric, At: at, Core: core, StepSeconds: 1}
		for i := range seconds {
			s.Values = append(s.Values, value(i))
		}
		r.Series = append(r.Series, s)
	}
	add("send_pps", model.Sender, nil, func(i int) float64 { return float64(39_999 + i%3) })
	add("receive_pps", model.Receiver, nil, func(i int) float64 { return float64(39_998 + i%5) })
	add("goodput_bps", model.Receiver, nil, func(i int) float64 { return float64(39_998+i%5) * 4096 })
	for _, at := range []string{model.Sender, model.Receiver} {
		for core := range 4 {
			for _, metric := range []string{"cpu_softirq_ratio", "cpu_idle_ratio"} {
				add(metric, at, &core, func(i int) float64 { return float64(i%100) / 100 })
			}
		}
		add("cpu_busy_ratio", at, nil, func(i int) float64 { return float64(i%100) / 100 })
	}
	if len(r.Series) != 21 {
		panic(fmt.Sprintf("%d series", len(r.Series)))
	}
	return r
}
