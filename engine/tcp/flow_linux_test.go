package tcp

import (
	"errors"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

func checkBulk(t *testing.T, s engine.SendReport, r engine.ReceiveReport) {
	t.Helper()
	if s.TCP.Control == "" || s.TCP.RTTNanos <= 0 || s.TCP.SegmentSizeBytes <= 0 {
		t.Errorf("facts are missing: %+v", *s.TCP)
	}
	if span := r.Tally.LastNanos - r.Tally.FirstNanos; span <= 0 {
		t.Errorf("first to last byte took %d ns", span)
	}
}

// Bulk data runs fast and both ends agree. At a rate that the path carries with ease each small write is a segment,
// and the schedule is met to the write.
func TestClockFlows(t *testing.T) {
	testenv.Clock(t)
	paced := flow(2, 64, false)
	paced.Rate, paced.Burst = unit.PacketRate(2000), 1000 // a machine that was busy elsewhere makes up for it
	for name, f := range map[string]model.Flow{
		"bulk": flow(1, 128<<10, true), "bulk, eight streams": flow(8, 128<<10,
			true), "paced writes": paced, "writes": flow(1, 64, false),
	} {
		t.Run(name, func(t *testing.T) {
			p, s, r := calm(func() *pair {
				return newPair(t, enginetest.Here{}, "127.0.0.1", false, f,
					timing(100*time.Millisecond, 500*time.Millisecond, time.Second))
			})
			seconds := float64(s.DurationNanos) / 1e9
			rate := float64(r.Tally.Bytes*8) / seconds
			t.Logf("%s, %d segments out, %d in, planned %d, %d writes, %d retransmits, burst %d",
				unit.FormatBits(rate), s.Attempted,
				r.Tally.Received, s.Planned, s.TCP.Writes, s.TCP.Retransmits, s.BurstMax)
			p.near("seconds", seconds, 0.5, .05)
			// The two windows shift by milliseconds.
			p.near("bytes received against sent", float64(r.Tally.Bytes), float64(s.TCP.SentBytes), .15)
			switch {
			case f.Bulk:
				checkBulk(t, s, r)
				p.near("segments in against out", float64(r.Tally.Received), float64(s.Attempted), .15)
				if !p.late && rate < 0.5e9 {
					t.Errorf("bulk data over loopback ran at %s, want at least 0.5 Gbit/s", unit.FormatBits(rate))
				}
			case f.Rate.IsMax():
				p.near("bytes sent against writes", float64(s.TCP.SentBytes), float64(s.TCP.Writes*64), .15)
			default:
				for what, n := range map[string]uint64{"writes": s.TCP.Writes, "segments": s.Attempted,
					"planned":     s.Planned,
					"segments in": r.Tally.Received, "writes' bytes in": r.Tally.Bytes / 64} {
					p.near(what, float64(n), 1000, .02)
				}
			}
		})
	}
}

// near compares a figure that holds only on a machine that gave both ends their turn.
func (p *pair) near(what string, got, want, tolerance float64) {
	p.t.Helper()
	switch {
	case math.Abs(got-want) <= tolerance*want:
	case p.late:
		p.t.Logf("%s: %.4g, not %.4g, on a machine that was busy elsewhere", what, got, want)
	default:
		p.t.Errorf("%s: %.4g, want %.4g within %.0f %%", what, got, want, tolerance*100)
	}
}

// TCP may join writes that wait, but never splits one. Without a warm-up no segment is of an earlier write; that of the
// last may leave before the write is counted.
func TestSmallWritesAreNotSplit(t *testing.T) {
	t.Parallel()
	for _, rate := range []unit.Rate{unit.PacketRate(2000), {}} {
		f := flow(1, 64, false)
		f.Rate = rate
		p := newPair(t, enginetest.Here{}, "127.0.0.1", false, f, timing(0, time.Hour, time.Second))
		p.some()
		p.Connect()
		s, r := p.play()
		if s.TCP.Writes == 0 || s.Attempted == 0 || r.Tally.Bytes == 0 {
			t.Errorf("%d segments for %d writes, %d B came", s.Attempted, s.TCP.Writes, r.Tally.Bytes)
		}
		if rate.IsMax() && s.Attempted > s.TCP.Writes+1+s.TCP.Retransmits {
			t.Errorf("%d segments for %d writes", s.Attempted, s.TCP.Writes)
		}
		p.Close()
	}
}

func TestBytesWithoutSegmentCounters(t *testing.T) {
	t.Parallel()
	p := newPair(t, netbed.Namespace(t), "127.0.0.1", false, flow(2, 1000, true),
		timing(20*time.Millisecond, time.Hour, time.Second))
	p.some()
	p.Connect()
	for _, e := range []testEnd{p.sender, p.receiver} {
		for _, s := range e.t.streams {
			s.known = false
		}
	}
	s, r := p.play()
	if s.Attempted != 0 || s.TCP.SentBytes == 0 || r.Tally.Bytes == 0 {
		t.Errorf("%d segments and %d B left, %d B came; want 0 segments, and bytes", s.Attempted, s.TCP.SentBytes,
			r.Tally.Bytes)
	}
}

func TestOptions(t *testing.T) {
	n := netbed.Namespace(t) // where nobody else uses the source ports
	f := flow(2, 1000, false)
	f.Control, f.DSCP, f.SourcePort = "reno", 46, 45731
	f.Rate = unit.PacketRate(1000)
	f.Burst = 1000         // a machine that was busy elsewhere makes up for it
	for round := range 2 { // the second finds the ports of the first free
		for _, senderListens := range []bool{false, true} {
			p := newPair(t, n, "127.0.0.1", senderListens, f, timing(0, 50*time.Millisecond, time.Second))
			p.Connect()
			s, _ := p.play()
			if s.TCP.Control != "reno" {
				t.Errorf("round %d, sender listens %v: congestion control is %q, want reno", round, senderListens,
					s.TCP.Control)
			}
			dialing := p.sender
			if senderListens {
				dialing = p.receiver
			}
			for i, s := range dialing.t.streams {
				if got := s.conn.LocalAddr().(*net.TCPAddr).Port; got != f.SourcePort+i {
					t.Errorf("round %d: stream %d has source port %d", round, i, got)
				}
			}
			for _, e := range []testEnd{p.sender, p.receiver} {
				for i, s := range e.t.streams {
					tos := 0
					control(s.raw, func(fd int) (err error) {
						tos, err = unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS)
						return err
					})
					if tos != 46<<2 {
						t.Errorf("stream %d has the traffic class %d, want %d", i, tos, 46<<2)
					}
				}
			}
			p.Close()
		}
	}
}

// What is asked of segments and buffers holds at both ends, whichever of them calls.
func TestSegmentsAndWindow(t *testing.T) {
	n := netbed.Namespace(t)
	f := flow(2, 128<<10, true)
	f.MSS, f.Window = 536, 20000
	for _, senderListens := range []bool{false, true} {
		p := newPair(t, n, "127.0.0.1", senderListens, f, timing(0, time.Hour, time.Second))
		p.some()
		p.Connect()
		for _, e := range []testEnd{p.sender, p.receiver} {
			for i, s := range e.t.streams {
				if got := window(s.raw, e.Order.Role); got != f.Window {
					t.Errorf("sender listens %v: the %v's stream %d has a buffer of %d B, want %d", senderListens, e.Order.Role, i,
						got, f.Window)
				}
			}
		}
		s, _ := p.play()
		if got := s.TCP.SegmentSizeBytes; got > f.MSS || got < f.MSS-40 { // TCP's options take at most 40 B
			t.Errorf("sender listens %v: segments of %d B, want %d with their options", senderListens, got, f.MSS)
		}
		p.Close()
	}
}

// All packets have the mark, also what the kernel answers before it knows the flow.
func TestDSCPFromTheFirstPacket(t *testing.T) {
	n := netbed.Namespace(t)
	for _, dscp := range []int{46, 0, 10} {
		f := flow(1, 1000, true)
		f.DSCP = dscp
		var marks func(uint16) map[byte]int
		_ = n.Do(func() error { marks = netbed.Marks(t, unix.IPPROTO_TCP); return nil })
		p := newPair(t, n, "127.0.0.1", false, f, timing(0, 20*time.Millisecond, time.Second))
		p.Connect()
		if got := marks(p.sender.Order.Ports[0]); len(got) != 1 || got[byte(dscp<<2)] < 3 {
			t.Errorf("DSCP %d: packets by TOS: %v, want all with %d", dscp, got, dscp<<2)
		}
		p.Close()
	}
}

// Flows that do not agree leave the kernel's answers unmarked; their own packets have their marks.
func TestListenerOfSeveralDSCP(t *testing.T) {
	l := &listener{waiting: map[route][]*end{}, dscp: 46}
	var err error
	if l.net, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer l.net.Close()
	ends := [3]*end{}
	for i, dscp := range []int{46, 46, 10} {
		ends[i] = &end{order: engine.Order{Flow: model.Flow{DSCP: dscp}, Tag: uint16(i)}}
		l.enter(ends[i])
		if want := []int{46, 46, 0}[i]; l.dscp != want {
			t.Errorf("with %d ends: %d, want %d", i+1, l.dscp, want)
		}
	}
	if l.leave(ends[2]); l.dscp != 46 {
		t.Errorf("once they agree again: %d", l.dscp)
	}
}

func TestUnknownControlIsRefused(t *testing.T) {
	for _, name := range []string{"teleport", "reno+teleport"} {
		for _, listens := range []bool{false, true} {
			f := flow(2, 64, false)
			f.Control = name
			o := engine.Order{Flow: f, Timing: timing(0, time.Second, 0), Role: engine.Send, Listen: listens,
				Key: make([]byte, engine.KeyBytes)}
			o.Peer, o.Ports = mustAddr("127.0.0.1"), []uint16{1, 2}
			_, err := prepare(t, New(Config{}), enginetest.Here{}, o)
			var refusal *engine.Refusal
			if !errors.As(err, &refusal) || refusal.Why.Code != model.ControlMissing ||
				refusal.Why.Names["control"] != "teleport" || !strings.Contains(refusal.Why.Names["controls"], "cubic") {
				t.Errorf("%s, listening %v: error %v, want a refusal that names teleport, and what there is", name, listens, err)
			}
		}
	}
}

// A pinned thread ends with its stream: no other goroutine inherits its core.
func TestPinnedThreads(t *testing.T) {
	cores := affinity(t)
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, flow(2, 64<<10, true), timing(0, time.Hour, time.Second))
	p.some()
	p.sender.t.order.CPU, p.receiver.t.order.CPU = 0, 1
	p.Connect()
	p.play()
	for _, e := range []testEnd{p.sender, p.receiver} {
		if r := e.Account(); !(r.CPU.ThreadRatio > 0 && r.CPU.ThreadRatio <= 1.1) {
			t.Errorf("the busiest thread used %v of a core", r.CPU.ThreadRatio)
		}
	}
	p.Close()
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if got := affinity(t); got != cores {
				t.Errorf("a goroutine runs on %d cores after the flow, %d before", got, cores)
			}
		})
	}
	group.Wait()
}

func affinity(t *testing.T) int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Error(err)
	}
	return set.Count()
}
