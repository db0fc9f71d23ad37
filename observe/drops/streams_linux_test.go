//go:build amd64 || arm64

package drops

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"pelt/internal/kernelclock"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// pair is a bed with a receiver and a connected sender.
func pair(t *testing.T, six bool, options ...func(int) error) (b *netbed.Bed, from, to netbed.Socket) {
	b = netbed.New(t, 1, true)
	at := netip.AddrPortFrom(netbed.Address(six, 2), testPort)
	to = b.Receiver.Open(six, append(slices.Clone(options), netbed.Bound(at))...)
	from = b.Sender.Open(six, netbed.Connected(at))
	return b, from, to
}

// sameAs fails unless just the missing sequences below n have verdicts, but for those that this machine may hide, all
// for a reason that matches.
func sameAs(t *testing.T, said map[uint64]model.Site, got map[uint64]int, n uint64, reason string) {
	t.Helper()
	var missing, unseen uint64
	for q := range n {
		site, named := said[q]
		if got[q] == 0 {
			missing++
		}
		if got[q] == 0 && !named {
			unseen++
		} else if got[q] > 0 && named {
			missed, _ := machine(t).Missed()
			t.Fatalf("sequence %d: arrived %d times, verdict %v %+v; the program missed %d", q, got[q], named, site,
				missed)
		}
		if named && !because(site, reason) {
			t.Fatalf("sequence %d: %+v; want %s", q, site, reason)
		}
	}
	if missing == 0 {
		t.Fatalf("none of %d lost: the fault was none", n)
	}
	named(t, missing, unseen)
	if uint64(len(said))+unseen != missing {
		t.Errorf("%d verdicts, %d missing", len(said), missing)
	}
}

func collect(t *testing.T, m *Machine, trial uint16) model.Drops {
	t.Helper()
	settle(t, m)
	d, err := m.Collect(trial, true)
	testenv.Must(t, err)
	return d
}

// exits are how often the program ended for each reason.
func exits(t *testing.T, m *Machine) [bpfExitReasonEXITS]uint64 {
	t.Helper()
	by, _, err := m.exits()
	testenv.Must(t, err)
	return by
}

// settle waits until no more drops are seen: packets may still be on their way.
func settle(t *testing.T, m *Machine) {
	t.Helper()
	var last uint64
	for still, begun := 0, time.Now(); (still < 3 || waiting(t)) && time.Since(begun) < testenv.Patience; still++ {
		time.Sleep(10 * time.Millisecond)
		var seen uint64
		for _, n := range exits(t, m) {
			seen += n
		}
		if seen != last {
			last, still = seen, 0
		}
	}
}

// total adds up a flow's tallies.
func total(d model.Drops, flow string) (n model.SiteCount) {
	for _, f := range d.Flows {
		if f.Flow != flow {
			continue
		}
		for _, c := range f.Counts {
			n.Packets += c.Packets
			n.Unreadable += c.Unreadable
			n.Warmup += c.Warmup
			n.Fragments += c.Fragments
		}
	}
	return n
}

// The packets of iperf3 bear no trial, and count from 1 in the third word. Those that pelt sends to it bear one.
func TestIperfPackets(t *testing.T) {
	const n = 3000
	for _, c := range []struct {
		name    string
		opens   uint32 // the header
		payload int
		other   bool // the packets are not tracked as those of iperf3
	}{
		{"of iperf3", 0x0000ffff, 100, false},
		{"of pelt", 0x9e17<<16 | testTrial, 100, false},
		{"of iperf3 in fragments", 0x0000ffff, 3000, false},
		{"of another program", 0x0000ffff, 100, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, from, to := pair(t, false, netbed.With(unix.SOL_SOCKET, unix.SO_RCVBUF, 64<<10))
			m := machine(t)
			track(t, m, testTrial, "down", TrackOptions{Iperf: !c.other, Fragments: c.payload > 1500},
				model.Tuple{From: from.Port, To: testPort})
			b := make([]byte, c.payload)
			binary.BigEndian.PutUint32(b, c.opens)
			for i := range uint32(n) {
				binary.BigEndian.PutUint32(b[8:], i+1)
				if _, err := unix.Write(from.FD, b); err != nil {
					t.Fatal(err)
				}
			}
			got := map[uint64]int{}
			drainBy(t, to, got, func(b []byte) (uint64, bool) { return uint64(binary.BigEndian.Uint32(b[8:])) - 1, true })
			d := collect(t, m, testTrial)
			if c.other {
				if sum := total(d, "down"); sum.Packets > 0 || len(got) == n {
					t.Errorf("%d arrived of %d; %+v", len(got), n, sum)
				}
				return
			}
			sameAs(t, verdicts(t, d, "down", 0), got, n, "SOCKET_RCVBUFF")
		})
	}
}

// A later trial that has taken over the ports of an earlier one keeps them when that one ends.
func TestPortsTakenOver(t *testing.T) {
	const n = 100
	b, from, _ := pair(t, false, wide)
	b.Sender.Rule(nftables.ChainHookOutput, &expr.Verdict{Kind: expr.VerdictDrop})
	m, ports := machine(t), model.Tuple{From: from.Port, To: testPort}
	earlier, err := m.Track(testTrial, "down", []model.Tuple{ports}, TrackOptions{Iperf: true})
	testenv.Must(t, err)
	track(t, m, testTrial+1, "down", TrackOptions{Iperf: true}, ports)
	testenv.Must(t, earlier.Close())
	packet := make([]byte, 100)
	for i := range uint32(n) {
		binary.BigEndian.PutUint32(packet[8:], i+1)
		_, _ = unix.Write(from.FD, packet) // dropped here
	}
	sameAs(t, verdicts(t, collect(t, m, testTrial+1), "down", 0), nil, n, "NETFILTER_DROP")
}

// sendSegments sends super-packets of k datagrams.
func sendSegments(t *testing.T, s netbed.Socket, trial uint16, buffers, k uint64, payload int) {
	t.Helper()
	testenv.Must(t, unix.SetsockoptInt(s.FD, unix.SOL_UDP, unix.UDP_SEGMENT, payload))
	b := make([]byte, int(k)*payload)
	for i := range buffers {
		for j := range k {
			header(b[int(j)*payload:], trial, i*k+j)
		}
		if _, err := unix.Write(s.FD, b); err != nil && err != unix.EPERM {
			t.Fatal(err)
		}
	}
}

// A super-packet is dropped as one, and every datagram in it is told.
func TestSegments(t *testing.T) {
	const buffers, k = 100, 10
	for _, c := range []struct {
		name   string
		six    bool
		linear bool
	}{{"not linear", false, false}, {"not linear over IPv6", true, false}, {"linear", false,
		true}, {"linear over IPv6", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			b, from, to := pair(t, c.six, wide)
			m := machine(t)
			track(t, m, testTrial, "up", TrackOptions{}, model.Tuple{From: from.Port, To: testPort})
			at, hook := b.Receiver, nftables.ChainHookInput
			if c.linear { // then the device takes no super-packet: it must go before
				b.Sender.Must(func() error {
					tool, err := ethtool.NewEthtool()
					if err != nil {
						return err
					}
					defer tool.Close()
					return tool.Change("va", map[string]bool{"tx-scatter-gather": false})
				})
				at, hook = b.Sender, nftables.ChainHookOutput
			}
			before := exits(t, m)
			at.DropFourth(hook) // by the first sequence: each second buffer
			sendSegments(t, from, testTrial, buffers, k, 100)
			got := map[uint64]int{}
			drain(t, to, testTrial, got)
			d := collect(t, m, testTrial)
			after := exits(t, m)
			const noted, unreadable = bpfExitReasonEXIT_NOTED, bpfExitReasonEXIT_UNREADABLE
			sum := total(d, "up")
			said := verdicts(t, d, "up", 0)
			n := after[noted] + after[unreadable] - before[noted] - before[unreadable]
			if m.kernel.old && n == buffers*k/4 {
				t.Log("the device takes no super-packets")
				if sum.Packets != n {
					t.Errorf("%d datagrams dropped; want %d", sum.Packets, n)
				}
			} else if n != buffers/2 || sum.Packets != buffers/2*k {
				t.Errorf("%d packets of %d datagrams dropped; want %d super-packets of %d", n, sum.Packets, buffers/2,
					buffers/2*k)
			}
			if m.kernel.old { // only the first datagram of a super-packet is read, if it is linear
				first := len(said) == 0 || !c.linear || len(said) == buffers/2
				if !first || uint64(len(said))+sum.Unreadable != sum.Packets || !m.Why().Has(model.PayloadFar) {
					t.Errorf("%d verdicts, %+v, %v", len(said), sum, m.Why())
				}
				for q := range said {
					if got[q] > 0 {
						t.Fatalf("sequence %d has a verdict and arrived", q)
					}
				}
				return
			}
			// before Linux 6.12; at first all super-packets kept their payload apart
			if !m.kernel.far && sum.Unreadable > 0 {
				if sum.Unreadable != sum.Packets || d.Unreadable != sum.Packets || !m.Why().Has(model.PayloadFar) {
					t.Errorf("%+v, %v; want all of them unreadable, and told", d, m.Why())
				}
				return
			}
			sameAs(t, said, got, buffers*k, "NETFILTER_DROP")
			if d.Unreadable != 0 {
				t.Errorf("%d unreadable", d.Unreadable)
			}
		})
	}
}

// The two ends see other ports when NAT lies between. Both name one stream.
func TestTwoViews(t *testing.T) {
	b, from, to := pair(t, false, slowReader...)
	b.Sender.DropFourth(nftables.ChainHookOutput)
	b.Sender.Translate(netbed.ToSource(netip.AddrPortFrom(netbed.Address(false, 1), 40_000))...)
	m := machine(t)
	near := track(t, m, testTrial, "up", TrackOptions{}, model.Tuple{From: from.Port, To: testPort})
	send(t, from, testTrial, 0, 1000, 64)
	got := map[uint64]int{}
	drain(t, to, testTrial, got)
	if alone := verdicts(t, collect(t, m, testTrial), "up", 0); len(alone) != 250 {
		t.Errorf("%d verdicts by the sender's ports; want the 250 before NAT", len(alone))
	}
	far := track(t, m, testTrial, "up", TrackOptions{}, model.Tuple{From: 40_000, To: testPort})
	send(t, from, testTrial, 1000, 1000, 64)
	late := map[uint64]int{}
	drain(t, to, testTrial, late)
	d := collect(t, m, testTrial)
	said := verdicts(t, d, "up", 0)
	maps.DeleteFunc(said, func(q uint64, _ model.Site) bool { return q < 1000 })
	for q := range uint64(1000) {
		late[q] = 1
	}
	sameAs(t, said, late, 2000, "NETFILTER_DROP|SOCKET_RCVBUFF")
	testenv.Must(t, near.Close())
	if again := collect(t, m, testTrial); len(again.Flows) != 1 ||
		!bytes.Equal(again.Flows[0].Streams[0].Data, d.Flows[0].Streams[0].Data) {
		t.Error("the second end does not get the first one's account")
	}
	testenv.Must(t, far.Close())
	if _, err := m.Collect(testTrial, true); err == nil {
		t.Error("the trial is still there after its last track")
	}
}

// A NAT may give a flow other ports at any time. Its number names it: by sequence if it has one stream, else by count.
func TestOtherPorts(t *testing.T) {
	const n = 100
	for _, c := range []struct {
		name     string
		number   uint16 // 0: the trial's, which other flows have, too
		streams  int
		counted  bool
		segments bool
		verdicts int
	}{
		{"one stream", numbered, 1, true, false, n}, {"one stream, segments", numbered, 1, true, true, n},
		{"two streams", numbered, 2, true, false, 0}, {"without a number of its own", 0, 1, false, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, from, _ := pair(t, false, wide)
			b.Sender.Rule(nftables.ChainHookOutput, &expr.Verdict{Kind: expr.VerdictDrop})
			m := machine(t)
			if c.segments && !m.kernel.far {
				t.Skip("the number of such packets needs Linux 6.12: before it is out of reach")
			}
			var tuples [2][]model.Tuple // as both ends see them
			for i := range c.streams {
				tuples[0] = append(tuples[0], model.Tuple{From: uint16(1 + i), To: testPort})
				tuples[1] = append(tuples[1], model.Tuple{From: uint16(11 + i), To: testPort})
			}
			var ends [2]*Track
			for i := range ends {
				k, err := m.Track(numbered, "up", tuples[i], TrackOptions{Number: c.number})
				testenv.Must(t, err)
				defer k.Close()
				ends[i] = k
			}
			send(t, from, numbered^warmupBit, 0, 30, 64)
			send(t, from, numbered+1, 0, 7, 64) // another trial
			if c.segments {
				sendSegments(t, from, numbered, n/10, 10, 100)
			} else {
				send(t, from, numbered, 0, n, 64)
			}
			d := collect(t, m, numbered)
			want := model.SiteCount{}
			if c.counted {
				want = model.SiteCount{Packets: n, Unreadable: uint64(n - c.verdicts), Warmup: 30}
			}
			got, said := total(d, "up"), verdicts(t, d, "up", 0)
			if got != want || len(said) != c.verdicts || len(d.Flows) != 1 {
				t.Errorf("%+v and %d verdicts; want %+v and %d", got, len(said), want, c.verdicts)
			}
			for _, k := range ends {
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			}
			var v bpfStream
			if err := m.objects.Streams.Lookup(bpfStreamKey{Trial: numbered}, &v); !errors.Is(err, ebpf.ErrKeyNotExist) {
				t.Errorf("after the trial its number is known: %v, %+v", err, v)
			}
		})
	}
}

// Two flows of a trial from other ports than those that are known, one dropped more than the other.
func TestOtherPortsOfTwoFlows(t *testing.T) {
	b, from, _ := pair(t, false, wide)
	b.Sender.Rule(nftables.ChainHookOutput, &expr.Verdict{Kind: expr.VerdictDrop})
	m := machine(t)
	track(t, m, numbered, "up", TrackOptions{Number: numbered}, model.Tuple{From: 1, To: testPort})
	track(t, m, numbered, "down", TrackOptions{Number: numbered + 1}, model.Tuple{From: testPort, To: 1})
	send(t, from, numbered, 0, 20, 64)
	send(t, from, numbered+1, 0, 30, 64)
	send(t, from, numbered+2, 0, 40, 64) // another trial
	d := collect(t, m, numbered)
	for name, n := range map[string]int{"up": 20, "down": 30} {
		got, said := total(d, name), verdicts(t, d, name, 0)
		if want := (model.SiteCount{Packets: uint64(n)}); got != want || len(said) != n {
			t.Errorf("%s: %+v and %d verdicts; want %+v and as many", name, got, len(said), want)
		}
	}
}

// Two trials at once, a flow with two streams each, and no track of one tells of another.
func TestTrialsAtOnce(t *testing.T) {
	b, _, to := pair(t, false, slowReader...)
	m := machine(t)
	at := netip.AddrPortFrom(netbed.Address(false, 2), testPort)
	var senders [2][2]netbed.Socket
	for i := range senders {
		var tuples []model.Tuple
		for j := range senders[i] {
			senders[i][j] = b.Sender.Open(false, netbed.Connected(at))
			tuples = append(tuples, model.Tuple{From: senders[i][j].Port, To: testPort})
		}
		track(t, m, testTrial+uint16(i), "up", TrackOptions{Packets: 500}, tuples...)
	}
	stranger := b.Sender.Open(false, netbed.Connected(at))
	for range 5 {
		for i := range senders {
			for j := range senders[i] {
				send(t, senders[i][j], testTrial+uint16(i), 0, 500, 64)
			}
		}
		send(t, stranger, testTrial, 0, 500, 64)
	}
	drain(t, to, 0, map[uint64]int{})
	for i := range senders {
		d := collect(t, m, testTrial+uint16(i))
		if len(d.Flows) != 1 || len(d.Flows[0].Streams) != 2 {
			t.Fatalf("trial %d: %+v", i, d.Flows)
		}
		for j := range senders[i] {
			// each sequence was sent five times; all but the first few were dropped at least once
			if n := len(verdicts(t, d, "up", j)); n != 500 {
				t.Errorf("trial %d, stream %d: verdicts about %d sequences of 500", i, j, n)
			}
		}
		if n := total(d, "up").Packets; n > 5000 || n < 4700 {
			t.Errorf("trial %d: %d packets dropped of the 5000 it sent", i, n)
		}
	}
}

// A run of many times the array's size stays exact, as the reader keeps up.
func TestWindow(t *testing.T) {
	m := machineOf(t, 2048)
	b, from, to := pair(t, false, wide)
	k := track(t, m, testTrial, "up", TrackOptions{Packets: 1 << 40}, model.Tuple{From: from.Port, To: testPort})
	if k.Mode() != model.DropsSeq {
		t.Fatalf("mode %s: %v", k.Mode(), k.Why())
	}
	b.Receiver.DropFourth(nftables.ChainHookInput)
	const n, start = 10_000, 1<<37 - 12_345
	m.newest[2*k.flow.streams[0].slot+1] -= uint64(3 * time.Hour) // which the stream has been at it
	got := map[uint64]int{}
	for q := uint64(0); q < n; q += 500 {
		send(t, from, testTrial, start+q, 500, 64)
		sent := kernelclock.Now()
		testenv.Await(t, "the reader", func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.visited > sent
		})
	}
	drain(t, to, testTrial, got)
	d := collect(t, m, testTrial)
	said := verdicts(t, d, "up", 0)
	var wrong, unseen uint64
	for q := uint64(start); q < start+n; q++ {
		if _, named := said[q]; got[q] == 0 && !named {
			unseen++
		} else if got[q] > 0 && named {
			wrong++
		}
	}
	if wrong > 0 || d.Overwritten > 0 || uint64(len(said))+unseen != n/4 {
		t.Fatalf("%d verdicts of packets that came, %d of others, %d unseen, %d overwritten", wrong, len(said),
			unseen, d.Overwritten)
	}
	named(t, n/4, unseen)
}

// A damaged packet that claims a sequence far away takes no name from the losses after it.
func TestDamagedSequence(t *testing.T) {
	m := machineOf(t, 1<<18)
	for trial, o := range map[uint16]TrackOptions{1: {}, 2: {Packets: 1000}} {
		b, from, _ := pair(t, false, wide)
		b.Sender.Rule(nftables.ChainHookOutput, &expr.Verdict{Kind: expr.VerdictDrop})
		k := track(t, m, trial, "up", o, model.Tuple{From: from.Port, To: testPort})
		bits := k.flow.streams[0].bits
		send(t, from, trial, 100, 1, 64)
		for bit := bits; bit < 48; bit++ { // each would bring the next into reach if it were believed
			send(t, from, trial, 101^1<<bit, 1, 64)
		}
		m.mu.Lock()
		m.drain() // the damaged ones share a cell
		m.mu.Unlock()
		send(t, from, trial, 200, 100, 64)
		said := verdicts(t, collect(t, m, trial), "up", 0)
		for q := uint64(200); q < 300; q++ {
			if said[q].Reason == "" {
				t.Fatalf("%+v, %d bits: no verdict about sequence %d after damaged ones", o, bits, q)
			}
		}
	}
}

// A stream may go on for long before it loses its first packet, or the next.
func TestLongWithoutLoss(t *testing.T) {
	m := machineOf(t, 2048)
	b, from, _ := pair(t, false, wide)
	b.Sender.Rule(nftables.ChainHookOutput, &expr.Verdict{Kind: expr.VerdictDrop})
	k := track(t, m, testTrial, "up", TrackOptions{}, model.Tuple{From: from.Port, To: testPort})
	slot := 2 * k.flow.streams[0].slot
	for _, q := range []uint64{1 << 33, 1<<33 + 1, 1 << 35} {
		m.mu.Lock()
		m.newest[slot+1] -= 67 * q // as if so much time had gone by, at 15 million a second
		m.mu.Unlock()
		send(t, from, testTrial, q, 1, 64)
		settle(t, m)
		m.mu.Lock()
		m.drain()
		m.mu.Unlock()
	}
	said := verdicts(t, collect(t, m, testTrial), "up", 0)
	for _, q := range []uint64{1 << 33, 1<<33 + 1, 1 << 35} {
		if said[q].Reason == "" {
			t.Errorf("no verdict about sequence %d", q)
		}
	}
}

// What comes faster than the reader is counted.
func TestOverwritten(t *testing.T) {
	m := machineOf(t, 1024)
	b, from, _ := pair(t, false, wide)
	b.Sender.Rule(nftables.ChainHookOutput, &expr.Verdict{Kind: expr.VerdictDrop})
	track(t, m, testTrial, "up", TrackOptions{}, model.Tuple{From: from.Port, To: testPort})
	const n = 20_000
	m.mu.Lock() // the reader does not come, however slow the sender is
	send(t, from, testTrial, 0, n, 64)
	m.mu.Unlock()
	d := collect(t, m, testTrial)
	said := verdicts(t, d, "up", 0)
	if d.Overwritten == 0 || uint64(len(said))+d.Overwritten != n || total(d, "up").Packets != n {
		t.Errorf("%d verdicts and %d overwritten of %d; %d counted", len(said), d.Overwritten, n,
			total(d, "up").Packets)
	}
	for q := range said {
		if q >= n {
			t.Fatalf("verdict about sequence %d, which was never sent", q)
		}
	}
}

// Warm-up packets are counted, and their sequences mean nothing.
func TestWarmup(t *testing.T) {
	b, from, _ := pair(t, false, wide)
	b.Receiver.Rule(nftables.ChainHookInput, &expr.Verdict{Kind: expr.VerdictDrop})
	m := machine(t)
	track(t, m, testTrial, "up", TrackOptions{}, model.Tuple{From: from.Port, To: testPort})
	send(t, from, testTrial^warmupBit, 0, 300, 64)
	send(t, from, testTrial, 100, 50, 64)
	d := collect(t, m, testTrial)
	if n := total(d, "up"); n.Warmup != 300 || n.Packets != 50 {
		t.Errorf("%+v; want 300 of the warm-up and 50", n)
	}
	said := verdicts(t, d, "up", 0)
	if len(said) != 50 || !because(said[100], "NETFILTER_DROP") || said[149].Reason == "" {
		t.Errorf("%d verdicts; want 100 to 149", len(said))
	}
}
