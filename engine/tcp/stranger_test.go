package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

// countListeners reads /proc/net/tcp: local address in column 2, state 0A is listening.
func countListeners(table string, port uint16) (n int) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] == "0A" {
			n++
		}
	}
	return n
}

func TestWrongKeyIsRefused(t *testing.T) {
	p := newPair(t, here{}, "127.0.0.1", false, flow(2, 64, false), timing(0, time.Second, 0))
	wrong := p.send
	wrong.Key = []byte(strings.Repeat("x", engine.KeyBytes))
	stranger := p.prepare(wrong)
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	err := stranger.connect(ctx)
	if err == nil || !strings.Contains(err.Error(), "does not consent") {
		t.Errorf("with a wrong key: %v, want that the peer does not consent", err)
	}
	p.connect() // the right peer still comes in
	stranger.Close()
}

// Who listens in the peer's place cannot know the key, and one that says nothing holds nobody.
func TestImpostorIsFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer int
		limit  time.Duration
		want   string
	}{
		{"answers", engine.ConsentBytes, time.Minute, "not the peer"},
		{"says nothing", 0, 200 * time.Millisecond, context.DeadlineExceeded.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			leakCheck(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				io.ReadFull(conn, make([]byte, engine.ConsentBytes))
				conn.Write(make([]byte, c.answer))
				io.Copy(io.Discard, conn)
			}()
			o := engine.Order{Flow: flow(1, 64, false), Timing: timing(0, time.Second, 0), Role: engine.Send, Key: make([]byte, engine.KeyBytes), CPU: -1,
				Peer: mustAddr("127.0.0.1"), Ports: []uint16{uint16(l.Addr().(*net.TCPAddr).Port)}}
			e, err := prepare(New(Config{}), here{}, o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			ctx, cancel := context.WithTimeout(t.Context(), c.limit)
			defer cancel()
			within(t, "giving up", func() {
				if err := e.connect(ctx); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		})
	}
}

// Two clients that chose the same trial and tag are told apart by their keys.
func TestSameNumbersDifferentKeys(t *testing.T) {
	leakCheck(t)
	shared := New(Config{})
	var pairs []*pair
	for _, key := range []string{"a", "b"} {
		p := &pair{t: t, host: here{}, engines: [2]*Engine{New(Config{}), shared}}
		o := engine.Order{Flow: flow(2, 64, false), Timing: timing(0, 100*time.Millisecond, time.Second), Trial: 1, Tag: 1, CPU: -1, Key: []byte(strings.Repeat(key, engine.KeyBytes))}
		o.Flow.Rate = unit.PacketRate(1000)
		o.Role, o.Listen = engine.Receive, true
		p.receiver = p.prepare(o)
		o.Role, o.Listen = engine.Send, false
		o.Peer, o.Ports = mustAddr("127.0.0.1"), p.receiver.Ports()
		p.sender = p.prepare(o)
		pairs = append(pairs, p)
	}
	if a, b := pairs[0].receiver.Ports()[0], pairs[1].receiver.Ports()[0]; a != b {
		t.Errorf("ends of one engine listen on ports %d and %d, want one", a, b)
	}
	for _, p := range pairs {
		p.connect()
	}
	for _, p := range pairs {
		s, r := p.play()
		if s.TCP.Writes == 0 || r.Tally.Bytes == 0 {
			t.Errorf("%d writes, %d bytes received", s.TCP.Writes, r.Tally.Bytes)
		}
		p.close()
	}
}

// Strangers of every kind call while a flow connects and runs.
func TestStrangersDoNotDisturb(t *testing.T) {
	f := flow(2, 64, false)
	f.Rate = unit.PacketRate(1000)
	f.Burst = 1000 // a machine that was busy elsewhere makes up for it
	p := newPair(t, here{}, "127.0.0.1", false, f, timing(50*time.Millisecond, 400*time.Millisecond, time.Second))
	port := p.receiver.Ports()[0]
	half := make([]net.Conn, 0, 200)
	for range cap(half) { // connected, silent
		half = append(half, call(t, port))
	}
	var group sync.WaitGroup
	done := make(chan struct{})
	random := rand.New(rand.NewPCG(1, 2))
	for kind := range 3 {
		seed := random.Uint64()
		group.Go(func() { pester(t, port, kind, rand.New(rand.NewPCG(seed, 0)), done) })
	}
	p.connect()
	s, r := p.play()
	close(done)
	group.Wait()
	for _, c := range half {
		c.Close()
	}
	if s.TCP.Writes == 0 || r.Tally.Bytes == 0 {
		t.Errorf("among strangers %d writes were made, and %d B came", s.TCP.Writes, r.Tally.Bytes)
	}
	if w := strings.Join(p.receiver.account().Warnings, " "); !strings.Contains(w, "strange connections") {
		t.Errorf("strangers are not told: %q", w)
	}
}

func call(t *testing.T, port uint16) net.Conn {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("a stranger's call: %v", err)
	}
	return c
}

func pester(t *testing.T, port uint16, kind int, random *rand.Rand, done chan struct{}) {
	for n := 0; n < 300; n++ {
		select {
		case <-done:
			return
		default:
		}
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Errorf("a stranger's call: %v", err)
			return
		}
		switch kind {
		case 0: // garbage
			b := make([]byte, random.IntN(500))
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			c.Write(b)
		case 1: // a hello of the right shape without the key
			h := helloOf(uint8(random.IntN(4)))
			c.Write(h[:])
			io.Copy(io.Discard, c)
		case 2: // part of one
			h := helloOf(0)
			c.Write(h[:random.IntN(len(h))])
		}
		c.Close()
	}
}

// helloOf is that of a stranger, who has another key.
func helloOf(stream uint8) engine.ConsentMessage {
	return engine.NewConsentDialer(engine.StreamKey{Trial: 7, Tag: 3, Stream: stream, Key: make([]byte, engine.KeyBytes)}).Message()
}

// More silent callers than are kept do not keep the peer out: the oldest goes.
func TestOldestStrangerGoes(t *testing.T) {
	p := newPair(t, here{}, "127.0.0.1", false, flow(1, 64, false), timing(0, 50*time.Millisecond, 0))
	var silent []net.Conn
	for range maxGreeted + 50 {
		silent = append(silent, call(t, p.receiver.Ports()[0]))
	}
	p.connect()
	silent[0].SetReadDeadline(time.Now().Add(testenv.Patience))
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest silent caller reads %v, want its connection closed", err)
	}
	for _, c := range silent {
		c.Close()
	}
}

// A recorded consent, sent again, takes no stream: the confirmation answers another nonce.
func TestReplayTakesNoStream(t *testing.T) {
	p := newPair(t, here{}, "127.0.0.1", false, flow(1, 64, false), timing(0, 50*time.Millisecond, 0))
	key := p.receiver.t.order.StreamKey(0)
	dialer := engine.NewConsentDialer(key)
	hello := dialer.Message()
	welcome, _ := engine.NewConsentListener(key).Answer(hello[:], netip.MustParseAddrPort("127.0.0.1:9"))
	if turn, _ := dialer.Hear(welcome[:]); !turn {
		t.Fatal("a good welcome is refused")
	}
	confirm := dialer.Message()
	c := call(t, p.receiver.Ports()[0])
	c.Write(append(hello[:], confirm[:]...))
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, io.EOF) {
		t.Logf("replay ended with %v", err)
	}
	c.Close()
	p.connect()
}

func TestPortInUse(t *testing.T) {
	leakCheck(t)
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	o := engine.Order{Flow: flow(1, 64, false), Timing: timing(0, time.Second, 0), Role: engine.Receive, Listen: true, Key: make([]byte, engine.KeyBytes)}
	_, err = prepare(New(Config{Listen: netip.AddrPortFrom(netip.Addr{}, uint16(port))}), here{}, o)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(port)) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("listening on a busy port: %v, want its number and that it is in use", err)
	}
	o.Listen, o.Role, o.Peer, o.Ports = false, engine.Send, mustAddr("127.0.0.1"), []uint16{uint16(port)}
	o.Flow.SourcePort = port
	e, err := prepare(New(Config{}), here{}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.connect(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("local port %d is in use", port)) {
		t.Errorf("dialing from a busy port: %v", err)
	}
}

func TestOrdersThatCannotRun(t *testing.T) {
	good := engine.Order{Flow: flow(1, 64, false), Timing: timing(0, time.Second, 0), Role: engine.Send}
	if err := check(good); err != nil {
		t.Fatalf("a good order is refused: %v", err)
	}
	for _, c := range []struct {
		name   string
		change func(*engine.Order)
	}{
		{"UDP", func(o *engine.Order) { o.Flow.Protocol = model.UDP }},
		{"probe", func(o *engine.Order) { o.Role = engine.Probe }},
		{"connections that the listening end opens", func(o *engine.Order) { o.Listen, o.Flow.Connections = true, model.ConnectionRate }},
	} {
		o := good
		c.change(&o)
		var refusal *engine.Refusal
		if err := check(o); !errors.As(err, &refusal) {
			t.Errorf("%s: %v, want a refusal", c.name, err)
		}
	}
}
