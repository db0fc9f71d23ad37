//go:build amd64 || arm64

package drops

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/model"
)

// meetingPacket is a consent message; see package engine.
func meetingPacket(trial, tag uint16, kind byte) []byte {
	b := make([]byte, 56)
	binary.BigEndian.PutUint16(b, 0x9e18)
	binary.BigEndian.PutUint16(b[2:], trial)
	binary.BigEndian.PutUint16(b[4:], tag)
	b[6] = kind
	return b
}

// entriesOf counts what a table of streams holds.
func entriesOf[Key any](table *ebpf.Map) (n int) {
	var k Key
	var v bpfStream
	for entries := table.Iterate(); entries.Next(&k, &v); n++ {
	}
	return n
}

// What the ends of a flow ask and answer before the first test packet is counted by its tag from any port. The checks
// of a flow that runs, and what is of others, are not.
func TestMeeting(t *testing.T) {
	b, _, _ := pair(t, false, wide)
	m := machine(t)
	const tag = 0xabcd
	meet := func() *Track {
		k, err := m.Meet(testTrial, "up", testTrial, tag)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	one, other := meet(), meet() // both ends of one process
	b.Receiver.Rule(nftables.ChainHookInput, &expr.Verdict{Kind: expr.VerdictDrop})
	sent := map[string]uint64{}
	for port := range 5 { // NAT gives a flow ports that nobody knows
		s := b.Sender.Open(false, netbed.Connected(netip.AddrPortFrom(netbed.Address(false, 2), uint16(testPort+port))))
		for _, kind := range []byte{0, 1, 2, 3, 1, 4, 5, 6, 7, 255} {
			for _, of := range [][2]uint16{{testTrial, tag}, {testTrial + 1, tag}, {testTrial, tag + 1}} {
				if _, err := unix.Write(s.FD, meetingPacket(of[0], of[1], kind)); err != nil {
					t.Fatal(err)
				}
			}
			switch kind {
			case 1, 3:
				sent[model.WayAsks]++
			case 2, 4:
				sent[model.WayAnswers]++
			}
		}
	}
	d := collect(t, m, testTrial)
	for _, f := range d.Flows {
		if f.Flow != "up" || len(f.Counts) != 1 || !because(d.Sites[f.Counts[0].Site], "NETFILTER_DROP") ||
			len(f.Streams) > 0 {
			t.Errorf("%+v of %+v; want one site of dropping by netfilter", f, d.Sites)
			continue
		}
		named(t, sent[f.Way], sent[f.Way]-f.Counts[0].Packets)
		delete(sent, f.Way)
	}
	if len(sent) > 0 {
		t.Errorf("nothing told of %v", sent)
	}
	for _, k := range []*Track{one, other} {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := entriesOf[bpfMeetingKey](m.objects.Meetings); n != 0 {
		t.Errorf("%d ways of meetings are known after the trial", n)
	}
	defer meet().Close()
	if d := collect(t, m, testTrial); len(d.Flows) > 0 {
		t.Errorf("of the next trial with this number: %+v", d)
	}
}
