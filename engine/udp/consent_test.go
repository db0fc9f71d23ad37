package udp

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pelt/engine"
	"pelt/model"
	"pelt/unit"
)

// deaf is a socket to a peer that never answers.
type deaf struct {
	socket
	begun time.Time
	takes time.Duration // for a write
	sent  []time.Duration
}

func (s *deaf) remote() netip.AddrPort { return netip.MustParseAddrPort("192.0.2.1:9") }
func (s *deaf) try(b []byte) error     { return s.write(b) }

func (s *deaf) write([]byte) error {
	s.sent = append(s.sent, time.Since(s.begun))
	time.Sleep(s.takes)
	return nil
}

func (s *deaf) read(wait time.Duration) (datagram, error) {
	time.Sleep(wait)
	return datagram{}, nil
}

// deafSockets are those of an end of a probe flow or of a flow; call them in a bubble of package synctest.
func deafSockets(t *testing.T, role engine.Role) (*Sockets, *deaf) {
	stop, err := newStopSignal()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop.close)
	r := newTrial()
	o := engine.Order{Flow: r.flow, Timing: model.Timing{MeasureSeconds: 60}, Role: role, Trial: r.number, Tag: r.tag,
		Key: r.key, Peer: r.peer, Ports: []uint16{9}}
	s := &deaf{begun: time.Now()}
	return &Sockets{order: o, settings: settingsOf(o, engine.NewClock()), stop: stop, sockets: []socket{s},
		tokens: make([]engine.ConsentToken, 1)}, s
}

// Hellos that nobody answers become rare.
func TestHellosBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := deafSockets(t, engine.Send)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if err := e.call(ctx, 0); err == nil {
			t.Error("nobody answered, and there is consent")
		}
		want := []time.Duration{0, 100, 300, 700, 1500, 2500, 3500}
		same := func(sent, ms time.Duration) bool { return (sent - ms*time.Millisecond).Abs() <= 5*readWait }
		if !slices.EqualFunc(s.sent, want, same) {
			t.Errorf("sent after %v, want %v ms", s.sent, want)
		}
	})
}

// Who is not answered for 5 s ends, or falls silent. Traffic fails, probes do not: TCP may go on beside them.
func TestSilenceEnds(t *testing.T) {
	for role, c := range map[engine.Role]struct {
		run  func(e *Sockets) error
		want string
	}{
		engine.Send: {func(e *Sockets) error {
			return e.Consented(func() error { <-e.stop.done; return nil }, e.stop.set, e.until.Store)
		}, "its consent is gone"},
		engine.Probe: {func(e *Sockets) error {
			p := newProber(e)
			defer func() {
				var r engine.Report
				if p.account(&r, engine.Sent{}); len(r.Warnings) != 1 {
					t.Errorf("a prober that was not answered warns %q", r.Warnings)
				}
			}()
			return p.run(nil)
		}, ""},
		engine.Echo: {func(e *Sockets) error {
			time.AfterFunc(8*time.Second, e.stop.set)
			return (&echo{end: e}).run(func() {})
		}, ""},
	} {
		for _, takes := range []time.Duration{0, 3 * time.Millisecond} { // a slow host makes checks slower than they are due
			synctest.Test(t, func(t *testing.T) {
				e, s := deafSockets(t, role)
				s.takes = takes
				err := c.run(e)
				if text := errorText(err); !strings.Contains(text, c.want) || (text == "") != (c.want == "") {
					t.Errorf("%s: ended with %q", role, text)
				}
				if last := s.sent[len(s.sent)-1]; last < 4*time.Second || last > engine.ConsentLasts+100*time.Millisecond {
					t.Errorf("%s: sent until %v", role, last)
				}
			})
		}
	}
}

// A sender whose keeper gets no core ends by itself when the consent runs out.
func TestSenderKeepsTime(t *testing.T) {
	for _, rate := range []unit.Rate{unit.PacketRate(2000), {}} {
		both(t, func(t *testing.T, r trial) {
			r.flow.Rate, r.timing.MeasureSeconds = rate, 60
			sender, receiver := r.prepare(t)
			connectBoth(t, sender, receiver)
			wait := start(t, receiver)
			clock := sender.t.settings.clock
			until := clock.Now() + int64(300*time.Millisecond)
			sender.t.until.Store(until)
			err := sender.t.role.run(func() {})
			if late := clock.Now() - until; !errors.Is(err, engine.ErrLapsed) || late < 0 || late > int64(2*time.Second) {
				t.Errorf("rate %v: ended %v after the consent, with %v", rate, time.Duration(late), err)
			}
			if sender.t.Count().Packets == 0 {
				t.Errorf("rate %v: sent nothing", rate)
			}
			receiver.Stop()
			wait()
		})
	}
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// Receivers and echoes answer checks, whichever side called, on every system.
func TestChecksAreAnswered(t *testing.T) {
	for _, dialer := range []engine.Role{engine.Send, engine.Receive, engine.Probe} {
		both(t, func(t *testing.T, r trial) {
			r.dialer = dialer
			sender, receiver := r.prepare(t)
			connectBoth(t, sender, receiver)
			if dialer == engine.Receive {
				sender, receiver = receiver, sender
			}
			wait := start(t, receiver)
			if sender.t.listening != nil {
				if err := sender.t.OpenStreams(); err != nil {
					t.Fatal(err)
				}
			}
			k := engine.NewConsentKeeper(sender.t.order, sender.t.settings.clock.Now()-int64(2*time.Second))
			eventually(t, "an answer", func() bool {
				sender.t.ask(k, 0)
				d, err := sender.t.sockets[0].read(readWait)
				if err != nil {
					t.Fatal(err)
				}
				k.Hear(0, d.whole())
				return !k.Awaits(0)
			})
			receiver.Stop()
			wait()
		})
	}
}
