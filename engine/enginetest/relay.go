package enginetest

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"pelt/engine"
	"pelt/measure"
	"pelt/model"
)

// relay is a user-space router of datagrams between the two ends of a flow. It tells what it passed on, and drops,
// repeats and swaps packets of the measured part as their sequences say.
type relay struct {
	trial   uint16
	changes bool
	bursts  []int         // how many packets pass between gaps of measure.MostStep sequences; nil: there are no gaps
	late    time.Duration // from when an answer came until it is passed on

	mu      sync.Mutex
	streams []relayed
}

// relayed is what went on of one stream.
type relayed struct {
	seen                         map[uint64]bool
	next                         uint64
	taken, duplicates, reordered uint64
	held                         []byte // to be sent after the next packet
	muted                        bool   // answers to the sender no longer pass
	burst, passed                int    // number of the burst, and packets of it that passed
	from                         uint64 // the first sequence of the burst
}

// newRelay puts a relay between the ends of a trial, at an address of a host on the way.
func newRelay(t testing.TB, r *Trial, host engine.Host, at netip.Addr) *relay {
	y := &relay{trial: r.Order.Trial, streams: make([]relayed, r.Flow.Streams)}
	far, up := r.Peer, r.Role == engine.Send
	r.Peer = at
	r.Taken = func() (n uint64) {
		y.look(func(s []relayed) {
			for i := range s {
				n += s[i].taken
			}
		})
		return n
	}
	r.Through = func(ports []uint16) (fronts []uint16) {
		for i, port := range ports {
			y.streams[i].seen = map[uint64]bool{}
			front, back := y.open(t, host, at, netip.AddrPortFrom(far, port))
			fronts = append(fronts, uint16(front.LocalAddr().(*net.UDPAddr).Port))
			var caller netip.AddrPort // of this stream
			toFront := func(b []byte) { y.look(func([]relayed) { front.WriteToUDPAddrPort(b, caller) }) }
			go y.carry(func(b []byte) (int, error) {
				n, from, err := front.ReadFromUDPAddrPort(b)
				y.look(func([]relayed) { caller = from })
				return n, err
			}, i, up, func(b []byte) { back.Write(b) })
			go y.carry(back.Read, i, !up, toFront)
		}
		return fronts
	}
	return y
}

func (y *relay) look(f func(s []relayed)) {
	y.mu.Lock()
	defer y.mu.Unlock()
	f(y.streams)
}

func (y *relay) open(t testing.TB, host engine.Host, at netip.Addr, to netip.AddrPort) (front, back *net.UDPConn) {
	err := host.Do(func() (err error) {
		if front, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 0))); err == nil {
			back, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, conn := range []*net.UDPConn{front, back} {
		_ = conn.SetReadBuffer(4 << 20) // as much as there is
		t.Cleanup(func() { conn.Close() })
	}
	return front, back
}

// carry passes on one direction of a stream until the socket is closed. The packets of the flow go one way, the
// answers to the sender the other.
func (y *relay) carry(read func([]byte) (int, error), stream int, packets bool, send func([]byte)) {
	runtime.LockOSThread()  // never unlocked: the thread ends with its core
	_ = engine.OwnThread(0) // each core has a backlog of its own, in which packets overtake
	b := make([]byte, 1<<16)
	for {
		n, err := read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error for the datagram before
		}
		var list [][]byte
		y.look(func(s []relayed) {
			if packets {
				list = s[stream].pass(b[:n], y)
			} else if !s[stream].muted {
				list = [][]byte{b[:n]}
			}
		})
		for _, one := range list {
			if packets || y.late == 0 {
				send(one)
				continue
			}
			one = bytes.Clone(one)
			time.AfterFunc(y.late, func() { send(one) })
		}
	}
}

// inBurst reports whether a packet passes between two gaps.
func (s *relayed) inBurst(sequence uint64, bursts []int) bool {
	for s.burst < len(bursts) && s.passed == bursts[s.burst] {
		s.burst, s.passed, s.from = s.burst+1, 0, s.next+measure.MostStep
	}
	if s.burst == len(bursts) || sequence < s.from {
		return false
	}
	s.passed++
	return true
}

// pass returns what is sent on for a datagram.
func (s *relayed) pass(b []byte, y *relay) (list [][]byte) {
	h, ok := engine.ParseHeader(b)
	if !ok || h.Trial != y.trial {
		return [][]byte{b}
	}
	kind := h.Sequence % 16
	switch list = [][]byte{b}; {
	case y.bursts != nil && !s.inBurst(h.Sequence, y.bursts):
		s.taken++
		return nil
	case !y.changes:
	case kind == 3:
		s.taken++
		return nil
	case kind == 7:
		list = append(list, b)
	case kind == 11 && s.held == nil:
		s.held = append([]byte{}, b...)
		return nil
	}
	if s.held != nil {
		list, s.held = append(list, s.held), nil
	}
	for _, one := range list {
		h, _ := engine.ParseHeader(one)
		switch {
		case s.seen[h.Sequence]:
			s.duplicates++
		case h.Sequence < s.next:
			s.reordered++
		}
		s.seen[h.Sequence], s.next = true, max(s.next, h.Sequence+1)
	}
	return list
}

// lost counts the packets that were passed on, and are missing. Others may have been too much for the relay's sockets.
func (s *relayed) lost(t testing.TB, list model.Marks, attempted uint64) (lost uint64) {
	t.Helper()
	missing := Sequences(t, list)
	for n := range attempted {
		switch {
		case missing[n] && s.seen[n]:
			lost++
		case !missing[n] && !s.seen[n]:
			t.Fatalf("sequence %d never went on, and is not missing", n)
		}
	}
	return lost
}

// check compares what came with what was passed on.
func (y *relay) check(t testing.TB, r *Trial, send, receive engine.Report) {
	t.Helper()
	Balance(t, r.Order, send, receive)
	got := receive.Receive
	if !got.MissingKnown {
		t.Fatal("it does not know what is missing")
	}
	y.look(func(streams []relayed) {
		var lost, duplicates, reordered uint64
		for i := range streams {
			s := &streams[i]
			lost += s.lost(t, got.Missing[i], send.Send.Streams[i])
			duplicates, reordered = duplicates+s.duplicates, reordered+s.reordered
		}
		within := func(what string, got, want uint64) {
			if got > want+r.Backlog || got+r.Backlog < want {
				t.Errorf("%s: %d, want %d; the machine dropped %d", what, got, want, r.Backlog)
			}
		}
		within("missing of what was passed on", lost, 0)
		within("duplicates", got.Tally.Duplicates, duplicates)
		within("out of order", got.Tally.Reordered, reordered)
		if y.changes && (duplicates == 0 || reordered == 0 ||
			got.Tally.Late+got.Tally.WrongLength+got.Tally.Strangers != 0) {
			t.Errorf("repeated %d, swapped %d: %+v", duplicates, reordered, got.Tally)
		}
	})
}
