package udp

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"pelt/engine"
	"pelt/internal/icmp"
	"pelt/model"
	"pelt/unit"
)

// moody is a kernel that refuses at will. Like sendmmsg it tells the error of
// the first buffer of a call only.
type moody struct {
	t        *rapid.T
	bytes    [][]byte
	segments int
	pending  []icmp.Error      // in the error queue
	taken    map[uint64]int    // by sequence
	answers  map[uint64]string // the last one
	offers   map[uint64]int    // to a full queue
	calls    int
}

var moods = []string{"", "", "", "", "ENOBUFS", "ENOBUFS", "EPERM", "EAGAIN", "EHOSTUNREACH", "ECONNREFUSED",
	"EHOSTUNREACH of its own"}

func (m *moody) packets() [][]byte { return m.bytes }

func (m *moody) icmpErrors(tell func(icmp.Error, []byte)) {
	for _, f := range m.pending {
		tell(f, nil)
	}
	m.pending = nil
}

func (m *moody) send(from, to int) (int, error) {
	m.calls++
	for at := from; at < to; at += m.segments {
		mood := rapid.SampledFrom(moods).Draw(m.t, "mood")
		buffer := m.bytes[at:min(at+m.segments, to)]
		for _, b := range buffer {
			h, ok := engine.ParseHeader(b)
			if !ok {
				m.t.Fatalf("% x is no packet", b)
			}
			m.answers[h.Sequence] = mood
			switch mood {
			case "":
				m.taken[h.Sequence]++
			case "ENOBUFS":
				m.offers[h.Sequence]++
			}
		}
		from4 := netip.MustParseAddr("192.0.2.1")
		var err error
		switch mood {
		case "":
			continue
		case "ENOBUFS":
			err = syscall.ENOBUFS
		case "EPERM":
			err = syscall.EPERM
		case "EAGAIN":
			err = syscall.EAGAIN
		case "EHOSTUNREACH": // only who asked is told
			err = syscall.EHOSTUNREACH
			m.pending = append(m.pending, icmp.Error{Errno: syscall.EHOSTUNREACH, What: "host unreachable",
				From: from4})
		case "ECONNREFUSED":
			err = syscall.ECONNREFUSED
			m.pending = append(m.pending, icmp.Error{Errno: syscall.ECONNREFUSED, What: "port unreachable",
				From: from4})
		default:
			err = syscall.EHOSTUNREACH
		}
		if at == from {
			return 0, err
		}
		return at - from, nil
	}
	return to - from, nil
}

// Whatever the kernel answers and hides, each packet is taken once or refused
// with its last answer, and the lists say which.
func TestEveryPacketHasItsAnswer(t *testing.T) {
	r := newTrial()
	dialer, _ := r.prepare(t)
	e := dialer.t
	e.living = []int{0}
	rapid.Check(t, func(t *rapid.T) {
		w := newSender(e).streams[0]
		w.segments = rapid.SampledFrom([]int{1, 1, 4}).Draw(t, "segments")
		m := &moody{t: t, bytes: layOut(64, 16), segments: w.segments, taken: map[uint64]int{},
			answers: map[uint64]string{}, offers: map[uint64]int{}}
		w.out, w.bytes, w.socket, w.clock, w.measured = m, m.bytes, e.sockets[0], e.settings.clock, true
		w.trial = e.order.Trial
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			w.refusals.single = min(w.refusals.single, rapid.IntRange(0, 20).Draw(t, "single"))
			if _, _, err := w.emit(rapid.IntRange(1, 16).Draw(t, "n"), w.clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		refused := map[uint64]string{}
		for s, err := range w.list.Marks().Stretches() {
			if err != nil {
				t.Fatal(err)
			}
			for n := range s.Count {
				refused[s.From+n] = w.sender.errnos[s.Mark]
			}
		}
		attempted := w.attempted.Load()
		if attempted != w.sequence || w.accepted+uint64(len(refused)) != attempted || len(m.taken) != int(w.accepted) {
			t.Fatalf("attempted %d, accepted %d, %d refused; the kernel took %d", attempted, w.accepted, len(refused),
				len(m.taken))
		}
		var again uint64
		for n := range attempted {
			name, is := refused[n]
			switch {
			case is == (m.taken[n] == 1) || m.taken[n] > 1:
				t.Fatalf("sequence %d: taken %d times, refused %q", n, m.taken[n], name)
			case is && name != m.answers[n] && (name != "EHOSTUNREACH" || m.answers[n] != "EHOSTUNREACH of its own"):
				t.Fatalf("sequence %d: refused with %s, the answer was %s", n, name, m.answers[n])
			}
			again += uint64(max(m.offers[n]-1, 0))
			if m.taken[n] > 0 {
				again += uint64(min(m.offers[n], 1))
			}
		}
		if again > w.retried {
			t.Fatalf("%d packets were offered to a full queue again, %d are told", again, w.retried)
		}
		names := map[string]uint64{}
		for mark, n := range w.byMark {
			names[w.sender.errnos[mark]] = n
		}
		listed := map[string]uint64{}
		for _, name := range refused {
			listed[name]++
		}
		if !maps.Equal(names, listed) {
			t.Fatalf("counted %v, listed %v", names, listed)
		}
	})
}

func (m *moody) room() {}

// A packet is tried again for an ICMP error of an earlier one, but not endlessly; a closed port refuses it.
func TestFaultsOfOthers(t *testing.T) {
	r := newTrial()
	dialer, _ := r.prepare(t)
	e := dialer.t
	e.living = []int{0}
	for _, c := range []struct {
		errno syscall.Errno
		calls int
	}{{syscall.EHOSTUNREACH, maxUntried + 1}, {syscall.ECONNREFUSED, 1}} {
		w := newSender(e).streams[0]
		box := &haunted{bytes: layOut(64, 1), errno: c.errno}
		w.out, w.bytes, w.socket, w.clock, w.measured = box, box.bytes, e.sockets[0], e.settings.clock, true
		if _, _, err := w.emit(1, w.clock.Now()); err != nil {
			t.Fatal(err)
		}
		if box.calls != c.calls || w.attempted.Load() != 1 || w.accepted != 0 ||
			!slices.Equal(w.sender.errnos, []string{engine.ErrnoName(c.errno)}) {
			t.Errorf("%v: tried %d times, attempted %d, accepted %d, errors %v", c.errno, box.calls,
				w.attempted.Load(), w.accepted, w.sender.errnos)
		}
	}
}

// haunted is a kernel whose every send brings up an error of an earlier one.
type haunted struct {
	bytes [][]byte
	errno syscall.Errno
	calls int
}

func (h *haunted) packets() [][]byte { return h.bytes }
func (h *haunted) send(int, int) (int, error) {
	h.calls++
	return 0, h.errno
}
func (h *haunted) room() {}
func (h *haunted) icmpErrors(tell func(icmp.Error, []byte)) {
	tell(icmp.Error{Errno: h.errno, What: "host unreachable", From: netip.MustParseAddr("192.0.2.1")}, nil)
}

// gated is a kernel that refuses all packets for some time.
type gated struct {
	bytes    [][]byte
	clock    engine.Clock
	from, to int64
	errno    syscall.Errno
}

func (g *gated) packets() [][]byte                   { return g.bytes }
func (g *gated) room()                               {}
func (g *gated) icmpErrors(func(icmp.Error, []byte)) {}
func (g *gated) send(from, to int) (int, error) {
	if now := g.clock.Now(); now >= g.from && now < g.to {
		return 0, g.errno
	}
	return to - from, nil
}

// TestRefusalInMidRun: what a route or a rule refuses for a while is a loss with its errno, and every packet is offered
// when it is due. The trial goes on.
func TestRefusalInMidRun(t *testing.T) {
	r := newTrial()
	r.Timing, r.Flow.Rate = model.Timing{MeasureSeconds: 6}, unit.PacketRate(10_000)
	dialer, _ := r.prepare(t)
	e := dialer.t
	e.living = []int{0}
	for _, c := range []struct {
		name     string
		from, to time.Duration
		gives    string // the error; "": it goes on
		refused  uint64
		nanos    time.Duration // without a packet taken
	}{
		{"a quarter of a second", time.Second, 1250 * time.Millisecond, "", 2500, 0},
		{"long", time.Second, 6 * time.Second, model.RouteProhibits + ": 127.0.0.1: permission denied",
			20_002, 2 * time.Second},
		{"all the time", 0, 6 * time.Second, model.SendHopeless + ": 127.0.0.1", 64, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			clock := engine.NewClock()
			s := newSender(e)
			w := s.streams[0]
			begin := clock.Now()
			box := &gated{bytes: layOut(64, 16), clock: clock, from: begin + c.from.Nanoseconds(),
				to: begin + c.to.Nanoseconds(), errno: syscall.EACCES}
			w.out, w.bytes, w.socket, w.clock = box, box.bytes, e.sockets[0], clock
			w.times, w.phases = &threadTimes{}, e.order.Phases(s.schedules, 0, 1, nil)
			s.start = begin
			w.begin(begin)
			var err error
			for over := false; !over; {
				time.Sleep(time.Duration(w.due - clock.Now()))
				over, err = w.turn(clock.Now())
			}
			w.end()
			var report engine.Report
			s.account(&report, engine.Sent{})
			out := report.Send
			if (err == nil) != (c.gives == "") || err != nil && !strings.Contains(err.Error(), c.gives) {
				t.Errorf("%s: %v", c.name, err)
			}
			if out.Hopeless != (c.gives != "") || out.Errors["EACCES"] != c.refused ||
				out.Refused[0].Packets != c.refused || out.Accepted+c.refused != out.Attempted || out.Planned != out.Attempted || out.Late != 0 {
				t.Errorf("%s: hopeless %v, planned %d, attempted %d, accepted %d, %v refused, %d late", c.name,
					out.Hopeless, out.Planned, out.Attempted, out.Accepted, out.Errors, out.Late)
			}
			if !out.Hopeless && out.Attempted != 60_000 {
				t.Errorf("%s: attempted %d of 60000", c.name, out.Attempted)
			}
			if out.HopelessNanos/1e6 != c.nanos.Milliseconds() {
				t.Errorf("%s: nothing was taken for %v, want %v", c.name, time.Duration(out.HopelessNanos), c.nanos)
			}
		})
	}
}

// Forged ICMP errors make no endless list.
func TestICMPCountsAreBounded(t *testing.T) {
	var b icmpCounts
	for i := range 1000 {
		b.note(icmp.Error{What: "port unreachable", From: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})})
	}
	b.note(icmp.Error{What: "port unreachable", From: netip.AddrFrom4([4]byte{10, 0, 0, 0})})
	want := []string{"icmp-came 984 errors from others", "icmp-came 2 port unreachable from 10.0.0.0",
		"icmp-came 1 port unreachable from 10.0.0.1", "icmp-more 14 "}
	var got []string
	for _, r := range b.warnings() {
		got = append(got, fmt.Sprint(r.Code, " ", r.Numbers["packets"], " ", r.Text))
	}
	if len(b.counts) != maxICMP+1 || !slices.Equal(got, want) {
		t.Errorf("%d counts, warnings %q\nwant %q", len(b.counts), got, want)
	}
}

func TestErrnosAreBounded(t *testing.T) {
	r := newTrial()
	dialer, _ := r.prepare(t)
	dialer.t.living = []int{0}
	w := newSender(dialer.t).streams[0]
	w.socket, w.measured = dialer.t.sockets[0], true
	for i := range 3 * maxErrnos {
		w.refusals = refusals{all: &allRefusals{streams: 1}}
		w.countRefused(1, errors.New(string(rune('a'+i))), 0)
	}
	if n := len(w.sender.errnos); n != maxErrnos || w.sender.errnos[n-1] != "other" {
		t.Errorf("%d names: %q", n, w.sender.errnos)
	}
}
