package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/internal/testenv"
)

// TestGuessing lets one address guess twenty times while another address comes with the right code. A client that is in
// comes back, whoever guesses wrong at its address.
func TestGuessing(t *testing.T) {
	t.Parallel()
	late := heldUp(t)
	s := serve(t, newWire(), nil)
	in := newLink()
	in.from = netip.MustParseAddr(guesserAt)
	in, err := in.dial(t.Context(), []byte(testCode), s.addr)
	testenv.Must(t, err)
	defer in.close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			guesser := newLink()
			guesser.from = netip.MustParseAddr(guesserAt)
			if l, err := guesser.dial(ctx, []byte("tiger-42-umber"), s.addr); err == nil {
				l.close()
				t.Error("a wrong code was let in")
			}
		})
	}
	began := time.Now()
	l, err := dialHub(t.Context(), s.addr, []byte(testCode)) // from 127.0.0.1
	if err != nil {
		t.Fatalf("the right code from elsewhere: %v", err)
	}
	l.close()
	if d := time.Since(began); d > 2*time.Second+8*late() {
		t.Errorf("the right code from elsewhere took %v", d)
	}
	wg.Wait()
	if n := s.count("wrong code"); n > sourceGuesses {
		t.Errorf("%d of 20 guesses were looked at", n)
	}
	renewed := in.reconnection()
	in.forceReconnect(time.Now())
	testenv.Receive(t, "the client to come back", renewed)
}

// TestMiddle: somebody in the middle, who speaks TLS with both sides and passes on what they say, is
// let in by neither.
func TestMiddle(t *testing.T) {
	t.Parallel()
	s := serve(t, newWire(), nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	defer l.Close()
	own, err := serverTLS()
	testenv.Must(t, err)
	go func() {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := tls.Dial("tcp", s.addr.String(), clientTLS())
		if err != nil {
			t.Error(err)
			return
		}
		c := tls.Server(near, own)
		go func() { io.Copy(far, c); far.Close() }()
		io.Copy(c, far)
		c.Close()
	}()
	_, err = dialHub(t.Context(), l.Addr().(*net.TCPAddr).AddrPort(), []byte(testCode))
	if !errors.Is(err, ErrWrongCode) {
		t.Errorf("through somebody in the middle: %v", err)
	}
}

// TestStrangerCannotSpeak tries what a connection without the code may do.
func TestStrangerCannotSpeak(t *testing.T) {
	t.Parallel()
	s := serve(t, newWire(), nil)
	for _, opts := range [][]nats.Option{
		{nats.Name(strings.Repeat("0", 32))},
		{nats.Token("tiger-42-amber"), nats.Secure(clientTLS()), nats.TLSHandshakeFirst()},
	} {
		nc, err := nats.Connect("nats://"+s.addr.String(), append(opts, nats.NoReconnect())...)
		if err == nil {
			nc.Close()
			t.Error("a connection without the code was let in")
		}
	}
}

// TestClientsAreApart: a client with the code sees nothing of another's.
func TestClientsAreApart(t *testing.T) {
	t.Parallel()
	w := newWire()
	s := serve(t, w, nil)
	spy, err := dialHub(t.Context(), s.addr, []byte(testCode))
	testenv.Must(t, err)
	defer spy.close()
	var seen atomic.Int64
	for _, subject := range []string{">", "pelt.>", "pelt.session.>", "pelt.inbox.>", "pelt.agent.>"} {
		if _, err := spy.subscribe(subject, func(*nats.Msg) { seen.Add(1) }); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Must(t, spy.nc.Flush())
	c := dial(t, s.addr, agentOn(w, "near"))
	measured(t, c, upTrial("near", "far", 100*time.Millisecond), nil)
	testenv.Must(t, spy.nc.Flush())
	if seen.Load() != 0 {
		t.Errorf("another client saw %d messages", seen.Load())
	}
}

func TestDialErrors(t *testing.T) {
	t.Parallel()
	config, err := serverTLS()
	testenv.Must(t, err)
	const full = "it ended the connection without a word: it may have too many from this address (try again in a few " +
		"seconds), or it is not `pelt serve` (is the port right?)"
	const otherTLS = "a TLS server listens there, but not this version of `pelt serve`: is the port right?"
	says := func(t *testing.T, greeting string) netip.AddrPort {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		testenv.Must(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				switch greeting {
				case "closes":
				case "resets":
					_ = c.(*net.TCPConn).SetLinger(0)
				case "TLS", "h2":
					own := config.Clone()
					if own.NextProtos = nil; greeting == "h2" {
						own.NextProtos = []string{greeting}
					}
					_ = tls.Server(c, own).Handshake() // which the client may refuse
				default:
					io.WriteString(c, greeting)
				}
				if greeting != "" {
					c.Close()
				}
				defer c.Close() // at the end of the test
			}
		}()
		return l.Addr().(*net.TCPAddr).AddrPort()
	}
	for _, c := range []struct {
		name, greeting, want string
	}{
		{"silent", "",
			"it takes connections, but says nothing for 5 s: `pelt serve` is stopped or hangs there (start it again), or another program listens (is the port right?)"},
		{"full", "closes", full},
		{"nothing behind a forwarded port", "resets", full},
		{"TLS", "TLS", otherTLS},
		{"TLS of other protocols", "h2", otherTLS},
		{"ssh", "SSH-2.0-OpenSSH_9\r\n",
			"what listens there is not this version of `pelt serve` (it says \"SSH-2\"): is the port right?"},
		{"NATS", "INFO {\"server_name\":\"other\"}\r\n",
			"what listens there is not this version of `pelt serve` (it says \"INFO \"): is the port right?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr := says(t, c.greeting)
			_, err := dialWith(t, addr, "a-10-b", agentOn(newWire(), "near"))
			if want := addr.String() + ": " + c.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
	for nats, want := range map[string]string{
		"nats://" + says(t, "resets").String(): "--nats: no NATS server answers there",
		"nats://127.0.0.1:99999":               "--nats: want URLs of servers, as nats://192.0.2.7:4222",
		"nats://user:secret@a b":               "--nats: want URLs of servers, as nats://192.0.2.7:4222",
	} {
		if _, err := NewFleetController(t.Context(), "1.0", HubAddress{NATS: nats}); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	t.Run("source address", func(t *testing.T) {
		_, err := NewController(t.Context(), "1.0",
			HubAddress{Addr: netip.MustParseAddrPort("127.0.0.1:9"), From: netip.MustParseAddr("192.0.2.1")})
		if want := "192.0.2.1 is no address of this host: want one for --source-address that it has"; err == nil ||
			err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
	t.Run("no such interface", func(t *testing.T) {
		_, err := Resolve(t.Context(), "fe80::1%nosuch", 0)
		if want := "fe80::1%nosuch: this host has no interface nosuch: want one of its own after the %"; err == nil ||
			err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	s := serve(t, newWire(), nil)
	_, err := StartHub(HubConfig{Listen: s.addr, Code: "a-10-b"})
	if err == nil || !strings.Contains(err.Error(), "is in use: stop what listens there") {
		t.Errorf("got %v", err)
	}
}

// What an agent says last is heard though its hub ends right after it: a controller would wait for the answer as for one
// whose connection was cut for a moment.
func TestLastAnswersAreHeard(t *testing.T) {
	t.Parallel()
	h := hubAt(t, func(c *HubConfig) { c.Joins = true })
	a, err := h.Join(agentOn(newWire(), "far"))
	testenv.Must(t, err)
	hears, err := HubAddress{Addr: h.Addr(), Code: testCode}.dial(t.Context(), "near", true)
	testenv.Must(t, err)
	defer hears.close()
	const answers = 300
	heard, subject := make(chan struct{}, answers), hears.nc.NewInbox()
	if _, err := hears.subscribe(subject, func(*nats.Msg) { heard <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, hears.nc.Flush())
	for range answers {
		testenv.Must(t, a.link.nc.Publish(subject, make([]byte, 4<<10)))
	}
	testenv.Must(t, h.Close())
	testenv.Await(t, "the last answers", func() bool { return len(heard) == answers })
}
