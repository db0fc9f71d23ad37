package enginetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// Want is what a test of the suite needs of its hosts.
type Want struct {
	Six   bool         // the peer's address is of IPv6
	Relay bool         // there is a host between the two ends
	Clock func() int64 // of the consent; nil: the host's
}

// Bed is a flow between two hosts, with engines that are closed with the test.
type Bed struct {
	Trial
	Middle engine.Host // where a relay stands, if one is wanted
	At     netip.Addr  // its address
}

// Maker makes a bed.
type Maker func(t testing.TB, w Want) Bed

// Run tests one transport.
func Run(t *testing.T, maker Maker) {
	testenv.LeakCheck(t)
	datagrams := maker(t, Want{}).Flow.Protocol != model.TCP
	t.Run("account", func(t *testing.T) { testAccount(t, maker, datagrams) })
	t.Run("flood", func(t *testing.T) { testFlood(t, maker) })
	t.Run("both directions at once", func(t *testing.T) { testBothDirections(t, maker, datagrams) })
	t.Run("stop", func(t *testing.T) { testStop(t, maker, datagrams) })
	t.Run("stop races", func(t *testing.T) { testStopRaces(t, maker) })
	t.Run("another key", func(t *testing.T) { testAnotherKey(t, maker) })
	t.Run("no consent", func(t *testing.T) { testNoConsent(t, maker) })
	t.Run("same numbers", func(t *testing.T) { testSameNumbers(t, maker) })
	t.Run("strangers", func(t *testing.T) { testStrangers(t, maker, datagrams) })
	if datagrams {
		t.Run("warm-up", func(t *testing.T) { testWarmup(t, maker) })
		t.Run("sent is not told", func(t *testing.T) { testSentIsNotTold(t, maker) })
		t.Run("relay", func(t *testing.T) { testRelay(t, maker) })
		t.Run("consent is lost", func(t *testing.T) { testLostConsent(t, maker) })
	}
}

// some has the trial last until both ends have counted some packets.
func (r *Trial) some() {
	r.Until(func(p *Pair) bool {
		return min(p.Sender.Snapshot().Bytes, p.Receiver.Snapshot().Bytes) >= 200*uint64(r.Flow.PayloadBytes)
	})
}

// judge checks the account of a flow over a path that loses nothing.
func (r *Trial) judge(t testing.TB, datagrams bool, send, receive engine.Report) {
	t.Helper()
	if datagrams {
		r.Undisturbed(t, send, receive)
		return
	}
	Balance(t, r.Order, send, receive)
	if send.Send.Accepted != send.Send.Attempted || r.During != nil && (send.Send.TCP.SentBytes == 0 || receive.Receive.Tally.Bytes == 0) {
		t.Errorf("attempted %d, accepted %d, %d B sent, %d B received", send.Send.Attempted, send.Send.Accepted, send.Send.TCP.SentBytes,
			receive.Receive.Tally.Bytes)
	}
}

func testAccount(t *testing.T, maker Maker, datagrams bool) {
	for _, c := range []struct {
		name string
		set  func(*Trial)
		want Want
	}{
		{"one stream", func(*Trial) {}, Want{}},
		{"IPv6, three streams", func(r *Trial) { r.Flow.Streams = 3 }, Want{Six: true}},
		{"the dialing end receives", func(r *Trial) { r.Role = engine.Receive }, Want{}},
		{"no warm-up", func(r *Trial) { r.Timing.WarmupSeconds = 0 }, Want{}},
		{"a fixed time", func(r *Trial) { r.Timing.MeasureSeconds, r.During = 0.25, nil }, Want{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := maker(t, c.want)
			b.some()
			c.set(&b.Trial)
			send, receive := b.Play(t)
			b.judge(t, datagrams, send, receive)
		})
	}
}

// As fast as it can, a sender plans what it attempts.
func testFlood(t *testing.T, maker Maker) {
	b := maker(t, Want{})
	b.Flow.Rate, b.Flow.Streams, b.Timing.WarmupSeconds, b.Timing.MeasureSeconds = unit.Rate{}, 2, 0, 600
	b.During = func(p *Pair) {
		testenv.Await(t, "packets of the flood", func() bool { return p.Receiver.Snapshot().Packets >= 100 && p.Sender.Snapshot().Packets >= 1000 })
		p.Sender.Stop()
	}
	send, receive := b.Play(t)
	Balance(t, b.Order, send, receive)
	s, got := send.Send, receive.Receive
	if s.Planned != s.Attempted || s.Attempted == 0 || got.Tally.Received == 0 {
		t.Errorf("planned %d, attempted %d, received %d", s.Planned, s.Attempted, got.Tally.Received)
	}
	if b.Flow.Protocol != model.TCP {
		b.Dropped(t, send, receive)
	}
}

// What comes during the warm-up is a sign of life, though it is not counted.
func testWarmup(t *testing.T, maker Maker) {
	b := maker(t, Want{})
	b.Timing.WarmupSeconds = 600
	p := b.Prepare(t).Connect().Start()
	testenv.Await(t, "the receiver to hear", func() bool { return p.Receiver.Snapshot().Heard > 10 })
	p.Stop()
	send, receive := p.Sender.Account().Send, p.Receiver.Account().Receive
	if send.Attempted+receive.Tally.Received+receive.Unread > 0 || receive.WarmupReceived == 0 || send.WarmupSent < receive.WarmupReceived {
		t.Errorf("attempted %d and received %d in the warm-up: %d of %d", send.Attempted, receive.Tally.Received, receive.WarmupReceived, send.WarmupSent)
	}
}

// A receiver that nobody told what each stream attempted does not guess what is missing.
func testSentIsNotTold(t *testing.T, maker Maker) {
	for _, attempted := range [][]uint64{{5}, {5, 5, 5}} {
		b := maker(t, Want{})
		b.Flow.Streams, b.Timing.DrainSeconds = 2, 0
		p := b.Prepare(t).Connect()
		if err := errors.Join(p.Receiver.Start(t.Context()), p.Receiver.Drain(t.Context(), engine.Sent{Streams: attempted})); err != nil {
			t.Fatal(err)
		}
		if got := p.Receiver.Account().Receive; got.MissingKnown || got.Missing != nil {
			t.Errorf("told %v of 2 streams, it knows %+v", attempted, got.Missing)
		}
	}
}

func testBothDirections(t *testing.T, maker Maker, datagrams bool) {
	up := maker(t, Want{})
	up.some()
	down := up
	down.Tag, down.Role = up.Tag+1, engine.Receive
	var both sync.WaitGroup
	for _, r := range []*Trial{&up.Trial, &down.Trial} {
		both.Go(func() {
			send, receive, err := r.Try(t)
			if err != nil {
				t.Error(err)
				return
			}
			r.judge(t, datagrams, send, receive)
		})
	}
	both.Wait()
}

// An end stops in whatever state it is, and plans nothing after that.
func testStop(t *testing.T, maker Maker, datagrams bool) {
	failed := func(t *testing.T, e *End) {
		t.Helper()
		if err := e.Connect(t.Context()); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stopped, Connect ended with %v", err)
		}
	}
	t.Run("before it connects", func(t *testing.T) {
		b := maker(t, Want{})
		p := b.Prepare(t)
		for _, e := range []*End{p.Dialer, p.Listener} {
			e.Stop()
			failed(t, e)
		}
	})
	t.Run("while it connects", func(t *testing.T) {
		b := maker(t, Want{})
		mute := b.listen(t, nil)
		_, p, err := b.toward(t, mute)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*End{p.Dialer, p.Listener} {
			time.AfterFunc(20*time.Millisecond, e.Stop)
			failed(t, e)
		}
	})
	t.Run("before it starts", func(t *testing.T) {
		b := maker(t, Want{})
		b.Timing.MeasureSeconds = 600
		p := b.Prepare(t).Connect()
		p.Sender.Stop()
		p.Receiver.Stop()
		p.Start().Stop()
	})
	for name, rate := range map[string]unit.Rate{"slow": unit.IntervalRate(10 * time.Minute), "paced": unit.PacketRate(2000), "fast": unit.PacketRate(50_000)} {
		t.Run(name, func(t *testing.T) {
			b := maker(t, Want{})
			b.Flow.Rate, b.Timing.WarmupSeconds, b.Timing.MeasureSeconds = rate, 0, 3600
			p := b.Prepare(t).Connect().Start()
			testenv.Await(t, "a packet", func() bool { n := p.Sender.Snapshot(); return n.Packets+n.Bytes > 0 })
			p.Stop()
			send, receive := p.Sender.Account(), p.Receiver.Account()
			Balance(t, b.Order, send, receive)
			s := send.Send
			schedule, _ := rate.Schedule(b.Flow.PayloadBytes)
			if most := schedule.Count(s.DurationNanos) + 1; datagrams && (s.Attempted == 0 || s.Planned > most) {
				t.Errorf("planned %d, attempted %d in %d ns: want %d at most", s.Planned, s.Attempted, s.DurationNanos, most)
			}
			if receive.Receive.MissingKnown {
				t.Error("nobody told the receiver what was sent, and it knows what is missing")
			}
		})
	}
}

// Whatever is called beside whatever, everything ends.
func testStopRaces(t *testing.T, maker Maker) {
	b := maker(t, Want{})
	b.Timing.MeasureSeconds = 600
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 8 {
		b.Tag = uint16(100 + round)
		p := b.Prepare(t)
		var all sync.WaitGroup
		for _, e := range []*End{p.Dialer, p.Listener} {
			moment := time.Duration(random.IntN(30)) * time.Millisecond
			all.Go(func() {
				if e.Connect(t.Context()) == nil && e.Start(t.Context()) == nil {
					<-e.Done()
				}
			})
			all.Go(func() {
				for {
					select {
					case <-e.Done():
						return
					default:
						e.Snapshot()
						e.Pulse(1)
						e.Report()
						e.Ports()
						time.Sleep(100 * time.Microsecond)
					}
				}
			})
			all.Go(func() {
				time.Sleep(moment)
				if round%2 == 0 {
					e.Stop()
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
			if round%3 == 0 {
				all.Go(func() { _ = e.Drain(t.Context(), engine.Sent{}) })
			}
		}
		over := closedAfter(&all)
		testenv.Receive(t, "all ends to end", over)
	}
}

// closedAfter closes a channel once a group is over.
func closedAfter(all *sync.WaitGroup) <-chan struct{} {
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	return over
}

// brief is how long a test gives to what must not happen.
const brief = 200 * time.Millisecond

// A dialing end with another key gets no consent, and the peer's end waits for the right one.
func testAnotherKey(t *testing.T, maker Maker) {
	b := maker(t, Want{})
	p := b.Prepare(t)
	o := p.Dialer.Order
	o.Key = bytes.Repeat([]byte{8}, engine.KeyBytes)
	stranger, err := Open(t, b.Near, o)
	if err != nil {
		t.Fatal(err)
	}
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
		if err := b.Far.Host.Do(func() (err error) { l, err = net.Listen("tcp", at); return err }); err != nil {
			t.Fatal(err)
		}
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
	if err := b.Far.Host.Do(func() (err error) { conn, err = net.ListenPacket("udp", at); return err }); err != nil {
		t.Fatal(err)
	}
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
func (b *Bed) toward(t testing.TB, port uint16) (uint16, *Pair, error) {
	b.Through = func(ports []uint16) []uint16 {
		for i := range ports {
			ports[i] = port
		}
		return ports
	}
	p, err := b.open(t)
	return port, p, err
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
		t.Run(c.name, func(t *testing.T) {
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
			_, p, err := b.toward(t, port)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), brief)
			defer cancel()
			err = p.Dialer.Connect(ctx)
			if err == nil || c.answer == nil && !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), b.Peer.String()) {
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
		if err := b.Near.Host.Do(func() (err error) { conn, err = net.Dial(string(b.Flow.Protocol), at); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	wrong := engine.NewConsentDialer(engine.StreamKey{Trial: b.Order.Trial, Tag: b.Tag, Key: bytes.Repeat([]byte{1}, engine.KeyBytes)}).Message()
	packet := zeros(b.Flow.PayloadBytes)
	pester = func() {
		for _, text := range [][]byte{wrong[:], {0x9e}, zeros(1400), bytes.Repeat([]byte{0x9e, 0x18}, engine.ConsentBytes/2), wrong[:30]} {
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

// What a path loses, repeats and swaps is what the account says.
func testRelay(t *testing.T, maker Maker) {
	for name, role := range map[string]engine.Role{"the dialing end sends": engine.Send, "the dialing end receives": engine.Receive} {
		t.Run(name, func(t *testing.T) {
			b := maker(t, Want{Relay: true})
			b.Role, b.Flow.Streams = role, 2
			b.some()
			y := newRelay(t, &b.Trial, b.Middle, b.At)
			y.changes = true
			send, receive := b.Play(t)
			y.check(t, &b.Trial, send, receive)
		})
	}
}

// A stream whose receiver no longer consents ends, and the others go on. What it had left is told apart from what is
// lost and from what the sender was too late for.
func testLostConsent(t *testing.T, maker Maker) {
	for name, role := range map[string]engine.Role{"the dialing end sends": engine.Send, "the dialing end receives": engine.Receive} {
		t.Run(name, func(t *testing.T) {
			var ahead atomic.Int64
			began := time.Now()
			b := maker(t, Want{Relay: true, Clock: func() int64 { return int64(time.Since(began)) + ahead.Load() }})
			b.Role, b.Flow.Streams, b.Timing.MeasureSeconds = role, 3, 600
			y := newRelay(t, &b.Trial, b.Middle, b.At)
			b.During = func(p *Pair) {
				y.look(func(s []relayed) { s[1].muted = true })
				for p.Sender.Snapshot().Silent == 0 { // 10 s later each stream is checked anew
					before := y.answers()
					ahead.Add(int64(10 * time.Second))
					testenv.Await(t, "an answer of each stream", func() bool {
						now := y.answers()
						return now[0] > before[0] && now[1] > before[1] && now[2] > before[2] || p.Sender.Snapshot().Silent > 0
					})
				}
				if lasted := time.Duration(ahead.Load()) + time.Since(began); lasted < engine.ConsentLasts {
					t.Errorf("the stream ended after %v", lasted)
				}
				sent := p.Sender.Snapshot().Packets
				testenv.Await(t, "the others to go on", func() bool { return p.Sender.Snapshot().Packets > sent+200 })
				p.Sender.Stop()
			}
			send, receive := b.Play(t)
			y.check(t, &b.Trial, send, receive)
			s := send.Send
			if s.Silent != 1 || s.SlotsSilent < 20 { // the others' 200 packets took the time of 50 of its own at least
				t.Errorf("silent %d, streams %v, planned %d, %d of them left", s.Silent, s.Streams, s.Planned, s.SlotsSilent)
			}
		})
	}
	for name, rate := range map[string]unit.Rate{"all streams, paced": unit.PacketRate(2000), "all streams, flood": {}} {
		t.Run(name, func(t *testing.T) {
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
