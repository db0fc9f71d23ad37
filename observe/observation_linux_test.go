//go:build amd64 || arm64

package observe

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/observe/counters"
	"pelt/observe/drops"
)

// watchOf is a watch with room for the verdicts of few streams.
func watchOf(t *testing.T, cells int) *Kernel {
	t.Helper()
	testenv.Root(t)
	m, err := drops.Open(cells)
	testenv.Must(t, err)
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
	w, err := (&Observer{Do: testenv.Here, Kernel: k}).Begin(trial, model.DropsSeq)
	testenv.Must(t, err)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestWatchIsShared: the watch is taken out of the kernel only when nobody holds it any more.
func TestWatchIsShared(t *testing.T) {
	k := watchOf(t, 1024)
	for range 2 {
		if _, err := k.hold(); err != nil {
			t.Fatal(err)
		}
	}
	k.release()
	if k.idle != nil {
		t.Error("one of two has left, and the watch is about to end")
	}
	k.release()
	if k.idle == nil {
		t.Error("both have left, and the watch stays")
	}
}

// An account that only counts must not be taken for one by sequence: there a
// packet without a verdict counts as one that nobody saw dropped.
func TestReportSaysWhatATrackCameTo(t *testing.T) {
	k := watchOf(t, 1024)
	flow := model.Flow{Name: "up", Protocol: model.UDP, PayloadBytes: 64, Streams: 1}
	first, second := observationOf(t, k, 101), observationOf(t, k, 102)
	testenv.Must(t, first.Track(flow, 101, []model.Tuple{{From: 101, To: 7}}))
	testenv.Must(t, second.Track(flow, 102, []model.Tuple{{From: 102, To: 7}}))
	if r := first.Report(); r.Mode != model.DropsSeq || r.Why != nil {
		t.Errorf("with room: mode %s, why %v; want seq", r.Mode, r.Why)
	}
	if r := second.Report(); r.Mode != model.DropsCount || !r.Why.Has(model.NoRoom) {
		t.Errorf("without room: mode %s, why %v; want count, and that there was no room", r.Mode, r.Why)
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
	testenv.Must(t, both.Track(up, 0, ports))
	if both.Track(down, 0, ports) == nil || none.Track(up, 0, nil) == nil {
		t.Fatal("ports of another flow, or none, were taken")
	}
	for name, w := range map[string]*Observation{"[up: ports-shared: 201: 7]": both, "[watch-failed]": none} {
		if r := w.Report(); r.Mode != model.DropsOff || fmt.Sprint(r.Why) != name {
			t.Errorf("mode %s, why %v; want off, and %q", r.Mode, r.Why, name)
		}
	}
}

// Counters that a reading lacks make those of the others doubtful, whichever it was.
func TestReportSaysWhatAnyReadingLacks(t *testing.T) {
	w, err := (&Observer{Do: testenv.Here}).Begin(301, model.DropsOff)
	testenv.Must(t, err)
	defer w.Close()
	for i, m := range []model.Moment{model.MomentStart, model.MomentMeasure, model.MomentEnd} {
		w.snapshots.Take(m, counters.Snapshot{Taken: time.Now(),
			Unread: model.Reasons{{Name: "always"}, {Name: []string{"at first", "between", "at last"}[i]}}})
	}
	if got := w.Report().Unread; !reflect.DeepEqual(got,
		model.Reasons{{Name: "always"}, {Name: "at first"}, {Name: "between"}, {Name: "at last"}}) {
		t.Errorf("unread: %v", got)
	}
}

// A long trial reads its counters between its moments, so that none wraps twice unseen.
func TestCountersAreReadBetween(t *testing.T) {
	w, err := (&Observer{Do: testenv.Here}).Begin(302, model.DropsOff)
	testenv.Must(t, err)
	read := func() time.Time {
		w.readBetween()
		return w.snapshots.At("").Taken
	}
	first := read()
	if second := read(); first.IsZero() || !second.After(first) {
		t.Errorf("read at %v and %v", first, second)
	}
	if !w.between.Stop() {
		t.Error("nothing will read the counters again")
	}
	w.Snapshot(model.MomentEnd)
	if last := w.snapshots.At("").Taken; read() != last {
		t.Error("the counters were read after the end")
	}
	if err := w.Close(); err != nil || w.between.Stop() {
		t.Errorf("close: %v; or it reads on", err)
	}
}

// What a kernel forgets of a silent next hop after the last packet is still told.
func TestSilentNextHopIsRemembered(t *testing.T) {
	ends := netbed.Chain(t, "sender", "receiver")
	sender, receiver := ends[0], ends[1]
	to := receiver.IP(false)
	w, err := (&Observer{Do: sender.Do}).Begin(1, model.DropsOff)
	testenv.Must(t, err)
	defer w.Close()
	testenv.Must(t, w.Track(model.Flow{Name: "up", Address: to}, 1, nil))
	sender.Neigh(netlink.NeighSet, "eth0", netlink.Neigh{IP: to.AsSlice(), State: netlink.NUD_FAILED})
	w.Halt(t.Context())
	sender.Neigh(netlink.NeighDel, "eth0", netlink.Neigh{IP: to.AsSlice()})
	routes := w.Report().Routes
	want := model.Route{Flow: "up", Kind: model.RouteUsable, Interface: "eth0", Device: "veth", MTU: 1500, NoAnswer: true,
		At: "eth0", Silent: to}
	if len(routes) != 1 || routes[0] != want {
		t.Errorf("got %+v, want %+v", routes, want)
	}
}

func TestSequences(t *testing.T) {
	for _, c := range []struct {
		packets uint64
		streams int
		want    uint64
	}{{0, 4, 0}, {1000, 0, 1000}, {1000, 1, 1000}, {1000, 4, 250}, {1001, 4, 251}, {3, 4, 1}} {
		if got := sequences(model.Flow{Packets: c.packets, Streams: c.streams}); got != c.want {
			t.Errorf("%d packets in %d streams: %d of each, want %d", c.packets, c.streams, got, c.want)
		}
	}
}
