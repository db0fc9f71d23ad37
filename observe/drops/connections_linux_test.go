//go:build amd64 || arm64

package drops

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// segment is a packet of TCP from .1 to .2.
func segment(from, to uint16, flags byte, data int) []byte {
	p := netbed.Datagram(from, to, 0, make([]byte, 12+data)) // in place of UDP's header of 8 B one of 20 B
	p[9] = unix.IPPROTO_TCP
	clear(p[24:28])
	p[32], p[33] = 5<<4, flags
	binary.BigEndian.PutUint16(p[34:], 1000)
	return p
}

// Segments with data count for their connection; what opens connections, acknowledgements, and segments of
// connections that are not known count for the port where these are awaited. What was dropped before the measured part
// is the warm-up's.
func TestConnections(t *testing.T) {
	b, _, _ := pair(t, false, wide)
	m := machine(t)
	const port, peer = 7359, 40000
	const syn, ack = 2, 16
	awaited, err := m.MeetTCP(testTrial, "up", port, netbed.Address(false, 2))
	testenv.Must(t, err)
	later, err := m.MeetTCP(testTrial+1, "other", port, netip.Addr{}) // the port stays the first one's
	testenv.Must(t, err)
	b.Receiver.Rule(nftables.ChainHookInput, &expr.Verdict{Kind: expr.VerdictDrop})
	k, err := m.Track(testTrial, "up", []model.Tuple{{From: peer, To: port, Peer: netbed.Address(false, 2)},
		{From: peer + 2, To: port, Peer: netbed.Address(false, 3)}}, TrackOptions{TCP: true})
	testenv.Must(t, err)
	b.Sender.SendRaw(segment(peer, port, ack, 1000), segment(peer, port, ack, 1))
	testenv.Must(t, k.BeginMeasured())
	b.Sender.SendRaw(
		segment(peer, port, syn, 0), segment(peer, port, ack, 0), segment(peer+1, port, ack, 100), // asks
		segment(port, peer, ack, 0), segment(port, peer, ack, 100), // answers
		segment(peer, port, ack, 1), segment(peer, port, ack, 1400), segment(peer, port, ack, 100), // data
		segment(peer, port+1, ack, 100), segment(peer+2, port, ack, 100), netbed.Datagram(peer, port, 0, make([]byte, 100))) // of others
	want := map[string]model.SiteCount{model.WayAsks: {Packets: 3}, model.WayAnswers: {Packets: 2},
		"": {Packets: 3, Warmup: 2}}
	for _, f := range collect(t, m, testTrial).Flows {
		if len(f.Counts) != 1 || f.Counts[0] != want[f.Way] || f.Flow != "up" || len(f.Streams) > 0 {
			t.Errorf("%q: %+v, want %+v", f.Way, f, want[f.Way])
		}
		delete(want, f.Way)
	}
	if len(want) > 0 {
		t.Errorf("nothing told of %v", want)
	}
	if d := collect(t, m, testTrial+1); len(d.Flows) > 0 {
		t.Errorf("of the other trial: %+v", d)
	}
	for _, k := range []*Track{awaited, later, k} {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, n := range map[string]int{"streams": entriesOf[bpfStreamKey](m.objects.Streams),
		"meetings": entriesOf[bpfMeetingKey](m.objects.Meetings)} {
		if n != 0 {
			t.Errorf("%d %s are known after the trials", n, name)
		}
	}
}
