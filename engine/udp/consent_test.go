package udp

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pelt/engine"
	"pelt/internal/icmp"
	"pelt/internal/testenv"
	"pelt/model"
)

// deaf is a socket to a peer that never answers.
type deaf struct {
	socket
	begun time.Time
	takes time.Duration // for a write
	sent  []time.Duration
	comes []byte // with each read, though it is no answer
}

func (s *deaf) remote() netip.AddrPort { return netip.MustParseAddrPort("192.0.2.1:9") }
func (s *deaf) local() netip.AddrPort  { return netip.AddrPort{} }
func (s *deaf) try(b []byte) error     { return s.write(b) }
func (s *deaf) watchICMP(bool)         {}

func (s *deaf) icmpErrors(func(icmp.Error, []byte)) {}

func (s *deaf) write([]byte) error {
	s.sent = append(s.sent, time.Since(s.begun))
	time.Sleep(s.takes)
	return nil
}

func (s *deaf) read(wait time.Duration) (datagram, error) {
	time.Sleep(wait)
	if s.comes != nil {
		return datagram{head: s.comes, bytes: len(s.comes), nanos: 1}, nil
	}
	return datagram{}, nil
}

// deafSockets are those of an end of a probe flow or of a flow; call them in a bubble of package synctest.
func deafSockets(t *testing.T, role engine.Role) (*Sockets, *deaf) {
	r := newTrial()
	o := engine.Order{Flow: r.Flow, Timing: model.Timing{MeasureSeconds: 60}, Role: role, Trial: r.Order.Trial,
		Tag: r.Tag,
		Key: r.Key, Peer: r.Peer, Ports: []uint16{9}}
	s := &deaf{begun: time.Now()}
	e := &Sockets{engine: &Engine{}, order: o, settings: settingsOf(o, engine.NewClock(), ""),
		sockets: []socket{s}, living: []int{0},
		tokens: make([]engine.ConsentToken, 1), silent: make([]atomic.Bool, 1), now: engine.NewClock().Now}
	e.stopped, e.stop = context.WithCancel(t.Context())
	return e, s
}

// Hellos that nobody answers become rare, and end.
func TestHellosBackOff(t *testing.T) {
	want := []time.Duration{0, 100, 300, 700, 1100, 1500, 1900, 2300} // ms
	for name, c := range map[string]struct {
		unheard time.Duration // in ms
		survey  bool
		hellos  int
		takes   time.Duration
	}{"": {0, false, 8, 2500}, "bounded": {800, false, 4, 800}, "bounded too late": {99e3, false, 8, 2500},
		"survey": {0, true, 4, 800}} {
		synctest.Test(t, func(t *testing.T) {
			testBackOff(t, name, c.unheard*time.Millisecond, c.survey, want[:c.hellos], c.takes*time.Millisecond)
		})
	}
}

func testBackOff(t *testing.T, name string, unheard time.Duration, survey bool, want []time.Duration,
	takes time.Duration) {
	e, s := deafSockets(t, engine.Send)
	e.order.UnheardNanos, e.order.Survey = unheard.Nanoseconds(), survey
	met, err := e.Connect(t.Context())
	if one := met.Streams[0]; err != nil || one.Met || one.Sent != uint64(len(want)) || one.Heard != 0 {
		t.Errorf("%s: nobody answered: %+v, %v", name, one, err)
	}
	near := func(took, want time.Duration) bool { return (took - want).Abs() <= 5*readWait }
	if !slices.EqualFunc(s.sent, want, func(sent, ms time.Duration) bool {
		return near(sent, ms*time.Millisecond)
	}) || !near(time.Since(s.begun), takes) {
		t.Errorf("%s: sent after %v, want %v ms; it took %v, want %v", name, s.sent, want, time.Since(s.begun), takes)
	}
}

// held is a socket of a host that stands still: nothing comes of its first read, which takes long. Before it calls at
// all, its thread may wait for a processor.
type held struct {
	*deaf
	begins, stands time.Duration
	peer           *engine.ConsentListener
	answer         []byte
}

func (s *held) watchICMP(on bool) {
	if on {
		time.Sleep(s.begins)
	}
}

func (s *held) write(b []byte) error {
	if m, ok := s.peer.Answer(b, s.remote()); ok && s.stands == 0 {
		s.answer = m[:]
	}
	return nil
}

func (s *held) read(wait time.Duration) (datagram, error) {
	time.Sleep(wait + s.stands)
	s.stands = 0
	b := s.answer
	s.answer = nil
	return datagram{head: b, bytes: len(b), nanos: 1}, nil
}

// A host that stood still does not take that for its peer's silence, if it was not for too long.
func TestCallOfAHeldHost(t *testing.T) {
	for seconds, met := range map[time.Duration]bool{0: true, 3: true, 6: true, 7: false} {
		stands := seconds * time.Second
		synctest.Test(t, func(t *testing.T) {
			e, s := deafSockets(t, engine.Send)
			e.sockets[0] = &held{deaf: s, stands: stands, peer: engine.NewConsentListener(e.order.StreamKey(0))}
			if m, err := e.Connect(t.Context()); err != nil || m.Streams[0].Met != met {
				t.Errorf("stood still for %v: %+v, %v", stands, m, err)
			}
		})
	}
}

// A stream whose thread begins late, when the others have met or have given up, calls like any other.
func TestCallThatBeginsLate(t *testing.T) {
	for late := range 3 {
		for _, begins := range []time.Duration{2400 * time.Millisecond, 3 * time.Second, 20 * time.Second} {
			for _, deafOthers := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					e, s := deafSockets(t, engine.Send)
					e.sockets, e.tokens = nil, make([]engine.ConsentToken, 3)
					for i := range 3 {
						one := &held{deaf: &deaf{begun: s.begun}, peer: engine.NewConsentListener(e.order.StreamKey(i))}
						if e.sockets = append(e.sockets, one); i == late {
							one.begins = begins
						} else if deafOthers {
							e.sockets[i] = one.deaf
						}
					}
					m, err := e.Connect(t.Context())
					testenv.Must(t, err)
					for i, one := range m.Streams {
						if met := i == late || !deafOthers; one.Met != met || one.Sent < 2 {
							t.Errorf("stream %d began %v late, the others deaf %v: stream %d: %+v", late, begins,
								deafOthers, i, one)
						}
					}
				})
			}
		}
	}
}

// An end that listens may be told to wait no more before it has looked who called. Both ends then know the tokens of all
// streams that met.
func TestListenerThatLooksLate(t *testing.T) {
	t.Parallel()
	r := newTrial()
	r.Flow.Streams = 16
	dialer, listener := r.prepare(t)
	if _, err := dialer.End.End.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, over := context.WithCancel(t.Context())
	over()
	m, err := listener.End.End.Connect(ctx)
	testenv.Must(t, err)
	for i, s := range m.Streams {
		if !s.Met || listener.t.tokens[i] != dialer.t.tokens[i] {
			t.Errorf("stream %d: met %v, tokens %x and %x", i, s.Met, listener.t.tokens[i], dialer.t.tokens[i])
		}
	}
}

// Who is not answered for 30 s ends, or falls silent. Neither is an error: other streams go on, and TCP may go on
// beside probes.
func TestSilenceEnds(t *testing.T) {
	for role, run := range map[engine.Role]func(e *Sockets) error{
		engine.Send: func(e *Sockets) error {
			over := make(chan struct{})
			return e.Consented(func() error { <-over; return nil }, func(int) { close(over) }, false)
		},
		engine.Probe: func(e *Sockets) error {
			p, late := newProber(e), uint64(0)
			sign := make([]byte, timedBytes) // which is no consent, but of a peer that lives
			e.putProbe(sign, probe{kind: kindSign})
			e.sockets[0].(*deaf).comes = sign
			time.AfterFunc(35*time.Second, func() { late = p.count().Heard })
			time.AfterFunc(40*time.Second, e.stop)
			err := p.run(nil)
			var r engine.Report
			if p.account(&r, engine.Sent{}); !r.Warnings.Has(model.ProbesSilent) || p.count().Heard <= late {
				t.Errorf("a prober that was not answered warns %v, and heard %d signs in 35 s, %d in 40 s",
					r.Warnings, late, p.count().Heard)
			}
			return err
		},
		engine.Echo: func(e *Sockets) error {
			time.AfterFunc(40*time.Second, e.stop)
			return (&echo{end: e}).run(func() {})
		},
	} {
		// a slow host makes checks slower than they are due
		for _, takes := range []time.Duration{0, 3 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				e, s := deafSockets(t, role)
				s.takes = takes
				if err := run(e); err != nil {
					t.Errorf("%s: ended with %v", role, err)
				}
				if last := s.sent[len(s.sent)-1]; last < engine.ConsentLasts*9/10 ||
					last > engine.ConsentLasts+100*time.Millisecond {
					t.Errorf("%s: sent until %v", role, last)
				}
			})
		}
	}
}

// An echo that other flows of its peer reach gives signs on: a flood may leave no room for a probe.
func TestEchoBesideFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := deafSockets(t, engine.Echo)
		const ends, stops = 60 * time.Second, 120 * time.Second
		time.AfterFunc(stops, e.stop)
		go func() {
			for range ends / (250 * time.Millisecond) {
				e.Pulse(1, true)
				time.Sleep(250 * time.Millisecond)
			}
		}()
		if err := (&echo{end: e}).run(func() {}); err != nil {
			t.Error(err)
		}
		last, want := s.sent[len(s.sent)-1], ends+engine.ConsentLasts
		if n := len(s.sent); last < want-time.Second || last > want || n < 4*int(last.Seconds()) ||
			n > 6*int(last.Seconds()) {
			t.Errorf("%d signs, the last after %v; want 5 a second, until %v", n, last, want)
		}
	})
}

// Senders of one engine begin and end on their own, though one goroutine keeps the consents of all.
func TestSendersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shared Engine
		var senders sync.WaitGroup
		ends := func(begin, stop, want time.Duration) {
			e, s := deafSockets(t, engine.Send)
			e.engine = &shared
			senders.Go(func() {
				time.Sleep(begin)
				over := make(chan struct{})
				_ = e.Consented(func() error {
					select {
					case <-over:
					case <-time.After(stop):
					}
					return nil
				}, func(int) { close(over) }, false)
				ended := time.Since(s.begun)
				time.Sleep(time.Second)
				if last := s.sent[len(s.sent)-1]; last > ended || ended < want || ended > want+100*time.Millisecond {
					t.Errorf("a sender ended after %v, want %v; its last check left after %v", ended, want, last)
				}
				if n := len(s.sent); n < 4*int((ended-begin).Seconds()) {
					t.Errorf("a sender checked %d times from %v to %v", n, begin, ended)
				}
			})
		}
		ends(0, 10*time.Second, 10*time.Second)
		ends(5*time.Second, time.Minute, 35*time.Second)
		ends(40*time.Second, 2*time.Second, 42*time.Second) // no other is there
		senders.Wait()
	})
}
