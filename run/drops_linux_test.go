package run

import (
	"net"
	"net/netip"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
)

// watch begins a watch of the kernel's drops.
func watchBy(t *testing.T, f DropsFilter) *Drops {
	t.Helper()
	testenv.Root(t)
	d, err := WatchDrops(f)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Datagrams to a closed port of this host are dropped one by one, and named.
func TestDropsNamesAClosedPort(t *testing.T) {
	closed, err := net.ListenPacket("udp4", "127.0.0.1:0")
	testenv.Must(t, err)
	to := closed.LocalAddr().(*net.UDPAddr)
	testenv.Must(t, closed.Close())
	port := []uint16{uint16(to.Port)}
	d := watchBy(t, DropsFilter{Ports: port, Hosts: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Interfaces: []string{"lo"}})
	others := watchBy(t, DropsFilter{Ports: port, Hosts: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	from, err := net.ListenPacket("udp4", "127.0.0.1:0")
	testenv.Must(t, err)
	defer from.Close()
	send := func(n int) {
		for range n {
			if _, err := from.WriteTo([]byte("nobody reads this"), to); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, n := range []int{100, 40} {
		send(n)
		got, err := d.Next()
		testenv.Must(t, err)
		if len(got.Drops) != 1 || got.Packets != uint64(n) {
			t.Fatalf("interval %d: %d packets in %+v; want %d of one flow", i, got.Packets, got.Drops, n)
		}
		x := got.Drops[0]
		if x.Layer != model.LayerReceiverUDP || x.Reason != "NO_SOCKET" || x.Namespace == "" || x.Interface != "lo" ||
			x.Protocol != "udp" ||
			x.From != from.LocalAddr().String() || x.To != to.String() || x.Function == "" || !x.Received ||
			x.Ordinary || x.Packets != uint64(n) || !(x.PPS > 0) {
			t.Errorf("interval %d: %+v", i, x)
		}
	}
	quiet, err := d.Next()
	if err != nil || quiet.Packets != 0 || len(quiet.Drops) != 0 || quiet.Total != 140 {
		t.Errorf("quiet interval: %+v, %v; want none of 140", quiet, err)
	}
	sum, err := d.Sum()
	if err != nil || !sum.Sum || sum.Packets != 140 || len(sum.Drops) != 1 || sum.Drops[0].Total != 140 {
		t.Errorf("sum: %+v, %v; want 140", sum, err)
	}
	if sum, err = others.Sum(); err != nil || sum.Packets != 0 || sum.Total != 0 || len(sum.Drops) != 0 {
		t.Errorf("of another network: %+v, %v; want none", sum, err)
	}
}
