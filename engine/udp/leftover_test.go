package udp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"pelt/engine"
)

// spring is a socket that never runs dry.
type spring struct {
	inbox
	batch []datagram
	read  int
}

func (s *spring) receive(time.Duration) ([]datagram, error) {
	if s.read += len(s.batch); s.read > 4*mostLeft {
		return nil, net.ErrClosed
	}
	return s.batch, nil
}

func packetOf(trial uint16, sequence uint64) datagram {
	b := make([]byte, headBytes)
	engine.PutHeader(b, engine.Header{Trial: trial, Sequence: sequence})
	return datagram{head: b, bytes: len(b), nanos: 1}
}

// What never ends holds nobody up, whether it is measured or not.
func TestSweepEnds(t *testing.T) {
	r := newTrial()
	_, listener := r.connected(t)
	for name, trial := range map[string]uint16{"measured": r.Order.Trial, "warm-up": r.Order.Trial ^ engine.WarmupBit,
		"foreign": 99} {
		w := listener.t.role.(*receiver).streams[0]
		in := &spring{batch: []datagram{packetOf(trial, 1), packetOf(trial, 2)}}
		w.in, w.unread = in, 0
		if w.countUnread(); in.read > mostLeft || (w.unread > 0) != (name == "measured") {
			t.Errorf("%s: %d read, %d of the trial", name, in.read, w.unread)
		}
	}
}

// shelf is a socket with answers in it.
type shelf struct {
	socket
	left []datagram
}

func (s *shelf) remote() netip.AddrPort { return netip.MustParseAddrPort("127.0.0.1:9") }
func (s *shelf) pathMTU() int           { return 1500 }
func (s *shelf) forbidFragments() error { return nil }
func (s *shelf) read(time.Duration) (d datagram, err error) {
	if len(s.left) > 0 {
		d, s.left = s.left[0], s.left[1:]
	}
	return d, nil
}

// Answers that came in time count, however late they are read.
func TestSurveyReadsWhatWaits(t *testing.T) {
	e := &Sockets{tokens: make([]engine.ConsentToken, 1), stopped: t.Context()}
	answer := func(p probe) datagram {
		b := make([]byte, p.bytes())
		e.putProbe(b, p)
		return datagram{head: b, bytes: len(b), nanos: 1}
	}
	shelf := &shelf{left: []datagram{
		{head: make([]byte, 3), bytes: 3, nanos: 1}, // somebody else's
		answer(probe{kind: kindNote, number: 1, size: 1280, value: 1500}),
		answer(probe{kind: kindNote, number: 1, size: 1500, value: 1500}),
	}}
	e.sockets = []socket{shelf}
	x := &surveyor{end: e, trip: time.Millisecond}
	x.prepare()
	x.out.routeMTU(1500)
	x.out.waiting, x.back.waiting = []int{1280, 1500, 1400}, []int{1300}
	x.sentAt = []time.Time{time.Now().Add(-time.Hour)}
	x.gather()
	if x.out.low != 1500 || len(x.out.waiting) != 0 || len(x.back.waiting) != 1 {
		t.Errorf("%d B passed, and %v and %v are awaited; want 1500 B, none and 1300", x.out.low, x.out.waiting,
			x.back.waiting)
	}
}
