//go:build amd64 || arm64

package observe

import (
	"errors"
	"os"
	"strings"
	"testing"

	"pelt/model"
	"pelt/observe/drops"
)

// watchOf is a watch with room for the verdicts of few streams; only old
// kernels and missing rights may skip it.
func watchOf(t *testing.T, cells int) *Kernel {
	t.Helper()
	m, err := drops.Open(drops.Config{Cells: cells})
	var why *drops.Error
	if os.Geteuid() != 0 && errors.As(err, &why) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	k := &Kernel{machine: m}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func observationOf(t *testing.T, k *Kernel, trial uint16) *Observation {
	t.Helper()
	w, err := (&Observer{Do: here, Kernel: k}).Begin(trial, model.DropsSeq)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// An account that only counts must not be taken for one by sequence: there a
// packet without a verdict counts as one that nobody saw dropped.
func TestReportSaysWhatATrackCameTo(t *testing.T) {
	k := watchOf(t, 1)
	flow := model.Flow{Name: "up", Protocol: model.UDP, PayloadBytes: 64, Streams: 1}
	first, second := observationOf(t, k, 101), observationOf(t, k, 102)
	if err := first.Track(flow, []model.Tuple{{From: 101, To: 7}}); err != nil {
		t.Fatal(err)
	}
	if err := second.Track(flow, []model.Tuple{{From: 102, To: 7}}); err != nil {
		t.Fatal(err)
	}
	if r := first.Report(); r.Mode != model.DropsSeq || r.Why != "" {
		t.Errorf("with room: mode %s, why %q; want seq", r.Mode, r.Why)
	}
	if r := second.Report(); r.Mode != model.DropsCount || !strings.Contains(r.Why, "no room") {
		t.Errorf("without room: mode %s, why %q; want count, and that there was no room", r.Mode, r.Why)
	}
}

// A flow that could not be tracked has no verdicts, although its trial has.
func TestReportSaysThatATrackFailed(t *testing.T) {
	k := watchOf(t, 1<<20)
	up := model.Flow{Name: "up", Protocol: model.UDP, PayloadBytes: 64, Streams: 1}
	down := up
	down.Name = "down"
	ports := []model.Tuple{{From: 201, To: 7}}
	both, none := observationOf(t, k, 201), observationOf(t, k, 202)
	if err := both.Track(up, ports); err != nil {
		t.Fatal(err)
	}
	if both.Track(down, ports) == nil || none.Track(up, nil) == nil {
		t.Fatal("ports of another flow, or none, were taken")
	}
	for name, w := range map[string]*Observation{`those of flow "up"`: both, "0 streams": none} {
		if r := w.Report(); r.Mode != model.DropsOff || !strings.Contains(r.Why, name) {
			t.Errorf("mode %s, why %q; want off, and %q", r.Mode, r.Why, name)
		}
	}
}
