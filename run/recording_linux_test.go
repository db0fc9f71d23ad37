package run

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/record"
	"pelt/record/contents"
	"pelt/unit"
)

// TestRecordBearsOutTheTrials: through links that lose, double and reorder packets,
// what is computed from the record is what each trial counted, in whatever state it is.
func TestRecordBearsOutTheTrials(t *testing.T) {
	t.Parallel()
	testenv.Root(t)
	rate, err := unit.ParseRate("4kpps")
	testenv.Must(t, err)
	p := smallPlan(t)
	p.Target = "lab:direct"
	p.Factors = nil
	p.Flows[0].Streams, p.Flows[0].PayloadBytes = 2, 64
	p.Flows[0].Rate = rate
	p.Timing = model.Timing{WarmupSeconds: 0.05, MeasureSeconds: 0.5, DrainSeconds: 0.5}
	p.Links = []model.Link{{Node: model.Receiver, LossRatio: 0.05, DuplicateRatio: 0.03, ReorderRatio: 0.1,
		DelaySeconds: 0.002, Seed: 3}}
	path := filepath.Join(t.TempDir(), "lab.rec")
	doc, err := Execute(t.Context(), p, Options{Version: "test", Record: path})
	testenv.Must(t, err)
	f, err := os.Open(path)
	testenv.Must(t, err)
	defer f.Close()
	r, err := record.NewReader(f)
	testenv.Must(t, err)
	d, err := contents.Read(r)
	if err != nil || !d.Whole || len(d.Trials) != len(doc.Results) {
		t.Fatalf("%d trials, whole %v (%s), %v; want %d", len(d.Trials), d.Whole, d.Cut, err, len(doc.Results))
	}
	var some [4]uint64
	for i, result := range doc.Results {
		own, got := result.Flows[0], d.Trials[i].Of[0]
		for k, n := range []uint64{own.Received, own.Lost, own.Duplicates, own.Reordered} {
			some[k] += n
		}
		if got.Received != own.Received || got.Lost != own.Lost || got.Duplicates != own.Duplicates ||
			got.Late != own.Late || got.Attempted != own.Attempted {
			t.Errorf("trial %d: the record gives %+v, the trial %+v", i, got, own)
		}
		if x := own.Record; x == nil || x.Packets != got.Packets || x.Dropped != 0 || x.Bytes != got.Bytes {
			t.Errorf("trial %d: it says of its record %+v; there are %d packets in %d B", i, x, got.Packets, got.Bytes)
		}
		checks := own.Ledger.Checks
		if c := checks[len(checks)-1]; c.Name != "recorded" || !c.Held {
			t.Errorf("trial %d: check %+v", i, c)
		}
	}
	if slices.Contains(some[:], 0) {
		t.Errorf("received, lost, duplicates, reordered: %d; want some of each", some)
	}
}
