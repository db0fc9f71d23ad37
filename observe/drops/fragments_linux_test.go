//go:build amd64 || arm64

package drops

import (
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"pelt/internal/netbed"
	"pelt/model"
)

// laterFragment matches the second fragment (of MTU 1500) of every second
// datagram, by the last bit of its identification.
func laterFragment(six bool) []expr.Any {
	offset, identification := uint32(6), uint32(5)
	value := uint16(1480 / 8)
	mask := uint16(0x1fff)
	if six { // in the extension header, after 40 B
		offset, identification, value, mask = 42, 47, 1448, 0xfff8
	}
	m := binaryutil.BigEndian.PutUint16(mask)
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 2},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 2, Mask: m, Xor: []byte{0, 0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(value)},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: identification, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{1}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0}},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}
}

// A later fragment has no UDP header. Its datagram is known by the first one,
// and what reassembly makes of the rest is no verdict of its own.
func TestLaterFragment(t *testing.T) {
	for i, c := range []struct {
		name          string
		six           bool
		sender, early bool // dropped at the sender; the verdict is read before reassembly fails
		moved         uint16
	}{{"at the receiver", false, false, false, 0}, {"over IPv6", true, false, true, 0}, {"at the sender", false, true,
		false, 0},
		{"from another port", false, false, false, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // reassembly takes a second to fail
			trial := numbered + 1 + uint16(i)
			b, from, to := pair(t, c.six, wide)
			b.Receiver.Sysctl("net/ipv4/ipfrag_time", "1")
			b.Receiver.Sysctl("net/ipv6/ip6frag_time", "1")
			m := machine(t)
			k := track(t, m, trial, "up", TrackOptions{Fragments: true, Number: trial},
				model.Tuple{From: from.Port ^ c.moved, To: testPort})
			if k.Why() != nil {
				t.Fatal(k.Why())
			}
			const n = 100
			// nftables sees a fragment of IPv4 at the sender's egress only if it was
			// one when it came: send through the device's queue instead.
			if c.sender {
				b.Sender.FragmentShot("va")
			} else {
				b.Receiver.Rule(nftables.ChainHookPrerouting, laterFragment(c.six)...)
			}
			send(t, from, trial, 0, n, 4000)
			got := map[uint64]int{}
			drain(t, to, trial, got)
			reason := "NETFILTER_DROP"
			if c.sender {
				reason = "TC_EGRESS"
			}
			if c.early {
				sameAs(t, verdicts(t, collect(t, m, trial), "up", 0), got, n, reason)
			}
			time.Sleep(1300 * time.Millisecond) // reassembly fails after 1 s
			d := collect(t, m, trial)
			sameAs(t, verdicts(t, d, "up", 0), got, n, reason)
			if sum := total(d, "up"); sum.Fragments < n/2 {
				t.Errorf("%+v; want at least %d fragments", sum, n/2)
			}
		})
	}
}

// Without the following of fragments the failed reassembly is all that is known.
func TestUnfollowedFragment(t *testing.T) {
	b, from, to := pair(t, false, wide)
	b.Receiver.Sysctl("net/ipv4/ipfrag_time", "1")
	m := machine(t)
	track(t, m, testTrial, "up", TrackOptions{}, model.Tuple{From: from.Port, To: testPort})
	b.Receiver.Rule(nftables.ChainHookPrerouting, laterFragment(false)...)
	send(t, from, testTrial, 0, 100, 4000)
	got := map[uint64]int{}
	drain(t, to, testTrial, got)
	awaitVerdicts(t, uint64(100-len(got)))
	sameAs(t, verdicts(t, collect(t, m, testTrial), "up", 0), got, 100, "FRAG_REASM_TIMEOUT|NOT_SPECIFIED")
}

// Each track whose fragments are not followed says so, and the next one tries anew.
func TestFollowingFails(t *testing.T) {
	m := machineOf(t, 1<<16)
	if err := m.follow.load(&m.kernel, &m.objects); err != nil {
		t.Fatal(err)
	}
	received, other := m.follow.programs.Received, netbed.Program(t, ebpf.XDP, 2)
	for trial, whole := range []bool{false, false, true, true} {
		m.follow.programs.Received = received
		if !whole {
			m.follow.programs.Received = other // of another kind: it cannot be attached
		}
		k := track(t, m, uint16(trial), "up", TrackOptions{Fragments: true},
			model.Tuple{From: uint16(trial + 1), To: testPort})
		why := k.Why()
		if why.Has(model.PiecesUnfollowed) == whole || whole && why != nil ||
			!whole && (len(why[0].Of) != 1 || why[0].Of[0].Text == "") {
			t.Errorf("track %d: %v", trial, why)
		}
	}
}
