package enginetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// brief is how long a test gives to what must not happen.
const brief = 200 * time.Millisecond

// A dialing end with another key gets no consent, and the peer's end waits for the right one.
func testAnotherKey(t *testing.T, maker Maker) {
	b := maker(t, Want{})
	p := b.Prepare(t)
	o := p.Dialer.Order
	o.Key = bytes.Repeat([]byte{8}, engine.KeyBytes)
	stranger, err := Open(t, b.Near, o)
	testenv.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), brief)
	defer cancel()
	if err := stranger.Connect(ctx); err == nil {
		t.Error("with another key there is consent")
	}
	p.Connect()
}

// listen stands in a listening end's place, and returns its port. It gives every message to answer, and sends back
// what that returns; nil answers nothing.
func (b *Bed) listen(t testing.TB, answer func([]byte) []byte) (port uint16) {
	t.Helper()
	at := net.JoinHostPort(b.Peer.String(), "0")
	if b.Flow.Protocol == model.TCP {
		var l net.Listener
		testenv.Must(t, b.Far.Host.Do(func() (err error) { l, err = net.Listen("tcp", at); return err }))
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					for b := make([]byte, 1<<16); ; {
						n, err := conn.Read(b)
						if err != nil {
							return
						}
						if answer != nil {
							conn.Write(answer(b[:n]))
						}
					}
				}()
			}
		}()
		return l.Addr().(*net.TCPAddr).AddrPort().Port()
	}
	var conn net.PacketConn
	testenv.Must(t, b.Far.Host.Do(func() (err error) { conn, err = net.ListenPacket("udp", at); return err }))
	t.Cleanup(func() { conn.Close() })
	go func() {
		for b := make([]byte, 1<<16); ; {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			if answer != nil {
				conn.WriteTo(answer(b[:n]), from)
			}
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
}

// toward prepares a pair whose dialing end calls another port than the listening end's.
func (b *Bed) toward(t testing.TB, port uint16) (*Pair, error) {
	b.Through = func(ports []uint16) []uint16 {
		for i := range ports {
			ports[i] = port
		}
		return ports
	}
	return b.open(t)
}

// Who does not know the key gets nothing but the first message of the consent, and a dialing end that has no consent
// does not run.
func testNoConsent(t *testing.T, maker Maker) {
	for _, c := range []struct {
		name   string
		answer func([]byte) []byte
	}{
		{"nobody answers", nil},
		{"an echo", func(b []byte) []byte { return b }},
		{"nonsense", func([]byte) []byte { return bytes.Repeat([]byte{0}, engine.ConsentBytes) }},
	} {
		row(t, c.name, func(t *testing.T) {
			b := maker(t, Want{})
			var most, all atomic.Int64
			port := b.listen(t, func(m []byte) []byte {
				most.Store(max(most.Load(), int64(len(m))))
				all.Add(1)
				if c.answer == nil {
					return nil
				}
				return c.answer(m)
			})
			p, err := b.toward(t, port)
			testenv.Must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), brief)
			defer cancel()
			err = p.Dialer.Connect(ctx)
			// A TCP connection is set up, so that something is there.
			if err == nil || c.answer == nil && b.Flow.Protocol != model.TCP && !errors.Is(err, ErrUnmet) {
				t.Errorf("it ended with %v", err)
			}
			if err := p.Dialer.Start(t.Context()); err == nil {
				t.Error("it runs without consent")
			}
			p.Close()
			if most.Load() > engine.ConsentBytes || all.Load() > 20 {
				t.Errorf("without consent came %d messages of %d B at most", all.Load(), most.Load())
			}
		})
	}
}

// A stream that nobody answers has not met. It carries nothing and has no slots; the others are sent as ever.
func testDeadStream(t *testing.T, maker Maker) {
	for name, role := range map[string]engine.Role{"the dialing end sends": engine.Send,
		"the dialing end receives": engine.Receive} {
		row(t, name, func(t *testing.T) {
			b := maker(t, Want{})
			b.Role, b.Flow.Streams = role, 3
			b.some()
			mute := b.listen(t, nil)
			b.Through = func(ports []uint16) []uint16 {
				ports[1] = mute
				return ports
			}
			p := b.Prepare(t)
			p.Meet()
			for i := range 3 {
				asks, answers := p.Dialer.Met.Streams[i], p.Listener.Met.Streams[i]
				dead := i == 1
				if asks.Met == dead || answers.Met == dead || asks.Local.Port() == 0 || dead &&
					(asks.Sent < 2 || asks.Heard+answers.Heard+answers.Sent > 0) ||
					!dead && (asks.Sent < 2 || asks.Heard < 2 || answers.Heard < 2 || answers.Sent < 2) {
					t.Errorf("stream %d: asks %+v, answers %+v", i, asks, answers)
				}
			}
			send, receive := p.Play()
			b.Undisturbed(t, send, receive)
			s := send.Send
			schedule, _ := b.Flow.Rate.Schedule(b.Flow.PayloadBytes)
			if most := schedule.Count(s.DurationNanos)*2/3 + 3; s.Streams[1] != 0 || s.Streams[0] == 0 ||
				s.Streams[2] == 0 || s.Planned > most || s.Silent > 0 {
				t.Errorf("streams %v, planned %d of %d at most, silent %d", s.Streams, s.Planned, most, s.Silent)
			}
			if got := receive.Receive; len(got.Missing) != 3 || got.Missing[1].Packets+got.Missing[1].Unlisted > 0 {
				t.Errorf("missing %+v", got.Missing)
			}
		})
	}
}

// Two clients that do not know of each other may draw the same numbers for their flows.
func testSameNumbers(t *testing.T, maker Maker) {
	b := maker(t, Want{})
	b.some()
	other := b
	other.Key = bytes.Repeat([]byte{8}, engine.KeyBytes)
	one, two := b.Prepare(t), other.Prepare(t)
	two.Connect()
	one.Connect()
	for _, p := range []*Pair{two, one} {
		send, receive := p.Play()
		p.trial.judge(t, b.Flow.Protocol != model.TCP, send, receive)
	}
}

// Strangers get no answer and change no account.
func testStrangers(t *testing.T, maker Maker, datagrams bool) {
	b := maker(t, Want{})
	var pester func()
	b.During = func(*Pair) { pester() }
	b.some()
	p := b.Prepare(t)
	at := netip.AddrPortFrom(b.Peer, p.Listener.Ports()[0]).String()
	var conns []net.Conn
	call := func() net.Conn {
		var conn net.Conn
		if err := b.Near.Host.Do(func() (err error) {
			conn, err = net.Dial(string(b.Flow.Protocol), at)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	wrong := engine.NewConsentDialer(engine.StreamKey{Trial: b.Order.Trial, Tag: b.Tag,
		Key: bytes.Repeat([]byte{1}, engine.KeyBytes)}).Message()
	packet := zeros(b.Flow.PayloadBytes)
	pester = func() {
		for _, text := range [][]byte{wrong[:], {0x9e}, zeros(1400),
			bytes.Repeat([]byte{0x9e, 0x18}, engine.ConsentBytes/2), wrong[:30]} {
			conn := call()
			conn.Write(text) // a TCP peer may have hung up
			if c, ok := conn.(*net.TCPConn); ok {
				c.CloseWrite()
			}
			conns = append(conns, conn)
		}
		if datagrams { // what looks like the flow's own
			conn := call()
			for n := range uint64(300) {
				engine.PutHeader(packet, engine.Header{Trial: b.Order.Trial, Sequence: n})
				conn.Write(packet)
			}
			conns = append(conns, conn)
		}
	}
	pester()
	p.Connect() // what came before was dealt with
	send, receive := p.Play()
	b.judge(t, datagrams, send, receive)
	for i, conn := range conns {
		wait := testenv.Patience // until the peer hangs up
		if datagrams {
			wait = time.Millisecond
		}
		conn.SetReadDeadline(time.Now().Add(wait))
		if n, err := io.ReadFull(conn, zeros(1)); n > 0 {
			t.Errorf("stranger %d was answered: %v", i, err)
		}
	}
}

func zeros(n int) []byte { return make([]byte, n) }

// A stream whose receiver no longer consents ends, and the others go on. What it had left is told apart from what is
// lost and from what the sender was too late for.
func testLostConsent(t *testing.T, maker Maker) {
	for name, role := range map[string]engine.Role{"the dialing end sends": engine.Send,
		"the dialing end receives": engine.Receive} {
		row(t, name, func(t *testing.T) {
			var ahead atomic.Int64
			began := time.Now()
			var since [3]atomic.Int64
			clock := func() int64 { return int64(time.Since(began)) + ahead.Load() }
			b := maker(t, Want{Relay: true, Clock: clock, Heard: func(i int, at int64) { since[i].Store(at) }})
			b.Role, b.Flow.Streams, b.Timing.MeasureSeconds = role, 3, 600
			y := newRelay(t, &b.Trial, b.Middle, b.At)
			y.late = 100 * time.Millisecond
			b.During = func(p *Pair) {
				y.look(func(s []relayed) { s[1].muted = true })
				for p.Sender.Snapshot().Silent == 0 {
					ahead.Add(int64(10 * time.Second))
					now := clock()
					testenv.Await(t, "the sender to read answers to new checks", func() bool {
						return min(since[0].Load(), since[2].Load()) >= now || p.Sender.Snapshot().Silent > 0
					})
				}
				if lasted := time.Duration(ahead.Load()) + time.Since(began); lasted < engine.ConsentLasts {
					t.Errorf("the stream ended after %v", lasted)
				}
				sent := p.Sender.Snapshot().Packets
				testenv.Await(t, "the others to go on, and far beyond it", func() (on bool) {
					y.look(func(s []relayed) { on = min(s[0].next, s[2].next) > s[1].next+20 })
					return on && p.Sender.Snapshot().Packets > sent+200
				})
				p.Sender.Stop()
			}
			send, receive := b.Play(t)
			y.check(t, &b.Trial, send, receive)
			s := send.Send
			if s.Silent != 1 || s.SlotsSilent < 20 { // the others' 200 packets took the time of 50 of its own at least
				t.Errorf("silent %d, streams %v, planned %d, %d of them left", s.Silent, s.Streams, s.Planned,
					s.SlotsSilent)
			}
		})
	}
	for name, rate := range map[string]unit.Rate{"all streams, paced": unit.PacketRate(2000),
		"all streams, flood": {}} {
		row(t, name, func(t *testing.T) {
			var ahead atomic.Int64
			began := time.Now()
			b := maker(t, Want{Clock: func() int64 { return int64(time.Since(began)) + ahead.Load() }})
			b.Flow.Rate, b.Flow.Streams, b.Timing.MeasureSeconds = rate, 2, 600
			b.During = func(p *Pair) {
				testenv.Await(t, "packets", func() bool { return p.Sender.Snapshot().Packets > 0 })
				ahead.Add(int64(engine.ConsentLasts))
				if err := p.Sender.Wait(t); err != nil {
					t.Error(err)
				}
			}
			send, receive := b.Play(t)
			Balance(t, b.Order, send, receive)
			if s := send.Send; s.Silent != 2 || time.Duration(s.DurationNanos) >= b.Timing.Measure() {
				t.Errorf("silent %d of 2, after %d ns", s.Silent, s.DurationNanos)
			}
		})
	}
}
