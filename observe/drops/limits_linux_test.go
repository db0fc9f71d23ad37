//go:build amd64 || arm64

package drops

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
	"pelt/model"
)

// A full table of sites loses names, not packets.
func TestSitesFull(t *testing.T) {
	m := machineOf(t, 4096)
	b, from, _ := pair(t, false, wide)
	track(t, m, testTrial, "up", TrackOptions{}, model.Tuple{From: from.Port, To: testPort})
	fresh := m.NearlyFull()
	testenv.Must(t, m.objects.NextSite.Set(uint32(bpfLimitsSITES)))
	if fresh || !m.NearlyFull() {
		t.Errorf("nearly full at first: %v, with a full table: %v", fresh, m.NearlyFull())
	}
	b.Receiver.DropFourth(nftables.ChainHookInput)
	send(t, from, testTrial, 0, 1000, 64)
	d := collect(t, m, testTrial)
	if d.SitesLost > 250 || len(d.Sites) != 0 || total(d, "up").Packets != 0 {
		t.Fatalf("%d without a site, sites %v; want 250 and none", d.SitesLost, d.Sites)
	}
	named(t, 250, 250-d.SitesLost)
}

// A sniffer's copies are no verdicts. Those of outgoing packets are its own, so
// they are dropped for all to see.
func TestTap(t *testing.T) {
	b, from, to := pair(t, false, wide)
	b.Sender.Must(func() error {
		// ETH_P_ALL
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC,
			int(binary.NativeEndian.Uint16([]byte{0, 3})))
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 5000)
	})
	m := machine(t)
	before := exits(t, m)
	track(t, m, testTrial, "up", TrackOptions{}, model.Tuple{From: from.Port, To: testPort})
	b.Receiver.DropFourth(nftables.ChainHookInput)
	send(t, from, testTrial, 0, 1000, 64)
	got := map[uint64]int{}
	drain(t, to, testTrial, got)
	sameAs(t, verdicts(t, collect(t, m, testTrial), "up", 0), got, 1000, "NETFILTER_DROP")
	if seen := exits(t, m)[bpfExitReasonEXIT_TAP] - before[bpfExitReasonEXIT_TAP]; seen < 900 {
		t.Errorf("%d copies seen; want about 1000: the test shows nothing", seen)
	}
}

// Counting takes no verdicts.
func TestCount(t *testing.T) {
	b, from, _ := pair(t, false, wide)
	m := machine(t)
	b.Receiver.DropFourth(nftables.ChainHookInput)
	k := track(t, m, testTrial, "up", TrackOptions{Mode: model.DropsCount}, model.Tuple{From: from.Port, To: testPort})
	if k.Mode() != model.DropsCount || k.Why() != nil {
		t.Errorf("mode %s, why %v", k.Mode(), k.Why())
	}
	send(t, from, testTrial, 0, 1000, 64)
	d := collect(t, m, testTrial)
	n := total(d, "up").Packets
	if n > 250 || len(d.Flows[0].Streams) != 0 {
		t.Fatalf("%d packets, %d lists; want 250 and none", n, len(d.Flows[0].Streams))
	}
	named(t, 250, 250-n)
}

// What no caller should ask for is refused in words, and leaves nothing behind.
func TestRefusals(t *testing.T) {
	m := machine(t)
	one := []model.Tuple{{From: 1, To: 2}}
	track(t, m, testTrial, "up", TrackOptions{}, one...)
	for name, f := range map[string]func() error{
		"warm-up bit": func() error { _, err := m.Track(0x8000, "up", one, TrackOptions{}); return err },
		"no streams":  func() error { _, err := m.Track(1, "up", nil, TrackOptions{}); return err },
		"other number": func() error {
			_, err := m.Track(testTrial, "up", append(one, one...),
				TrackOptions{})
			return err
		},
		"same ports":    func() error { _, err := m.Track(testTrial, "down", one, TrackOptions{}); return err },
		"ports twice":   func() error { _, err := m.Track(2, "up", append(one, one...), TrackOptions{}); return err },
		"no such mode":  func() error { _, err := m.Track(3, "up", one, TrackOptions{Mode: "all"}); return err },
		"no such trial": func() error { _, err := m.Collect(4, true); return err },
	} {
		if err := f(); err == nil {
			t.Errorf("%s: no error", name)
		} else if s := fmt.Sprint(err); len(s) < 20 || len(s) > 160 || bytes.ContainsRune([]byte(s), '\n') {
			t.Errorf("%s: %q", name, s)
		}
	}
	if n := len(m.trials); n != 1 {
		t.Errorf("%d trials tracked; want 1", n)
	}
	free := m.pages.free()
	used := m.trials[testTrial].flows[0].streams[0].pages()
	if free+used != len(m.pages.owner) {
		t.Errorf("%d pages free and %d used of %d", free, used, len(m.pages.owner))
	}
}

// What a flow that has ended took is there for the next ones.
func TestFlowsGiveBackTheirStreams(t *testing.T) {
	m := machine(t)
	taken := func() (n int) {
		for _, used := range slices.Concat(m.slots.used, m.flows.used) {
			if used {
				n++
			}
		}
		return n
	}
	before := taken()
	k, err := m.Track(testTrial, "up", []model.Tuple{{From: 20000, To: testPort}, {From: 20001, To: testPort}},
		TrackOptions{})
	testenv.Must(t, err)
	if n := taken() - before; n != 3 {
		t.Errorf("a flow of two streams takes %d places, want 3", n)
	}
	testenv.Must(t, k.Close())
	if n := taken() - before; n != 0 {
		t.Errorf("%d places are still taken", n)
	}
}
