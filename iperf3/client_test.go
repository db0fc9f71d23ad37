package iperf3

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/testenv"
	"pelt/model"
)

// server is a fake iperf3 server of one port.
type server struct {
	t       *testing.T
	at      netip.AddrPort
	control *net.TCPListener
	data    *net.UDPConn

	answer  []byte // to a client, in place of asking for its parameters
	refuse  []byte // to its parameters
	reply   []byte // to the requests of UDP; nil: none
	ends    []byte // sent in the middle of the test
	results string // %d are the bytes and the packets that came

	done sync.WaitGroup

	mu     sync.Mutex
	params map[string]any
	next   uint32 // sequence
	bytes  int
	lost   int // sequences that did not come
}

func newServer(t *testing.T) *server {
	t.Helper()
	port, err := testenv.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, at: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)), reply: []byte("6789"), next: 1}
	if s.control, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(s.at)); err != nil {
		t.Fatal(err)
	}
	if s.data, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(s.at)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.control.Close(); s.data.Close(); s.done.Wait() })
	return s
}

// serve serves clients until the test ends.
func (s *server) serve() {
	s.done.Go(func() {
		for {
			c, err := s.control.Accept()
			if err != nil {
				return
			}
			s.test(c.(*net.TCPConn))
			c.Close()
		}
	})
	s.done.Go(s.count)
}

// count answers requests, and counts data.
func (s *server) count() {
	b := make([]byte, 1<<16)
	for {
		n, from, err := s.data.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if n == 4 {
			if s.reply != nil {
				_, _ = s.data.WriteToUDPAddrPort(s.reply, from)
			}
			continue
		}
		s.mu.Lock()
		if seq := binary.BigEndian.Uint32(b[8:]); seq >= s.next {
			s.lost += int(seq - s.next)
			s.next = seq + 1
		}
		s.bytes += n
		s.mu.Unlock()
	}
}

// test serves one client.
func (s *server) test(c *net.TCPConn) {
	say := func(b ...byte) { _, _ = c.Write(b) }
	read := func(n int) []byte { b := make([]byte, n); _, _ = io.ReadFull(c, b); return b }
	document := func() []byte { return read(int(binary.BigEndian.Uint32(read(4)))) }
	if s.answer != nil {
		say(s.answer...)
		_, _ = io.Copy(io.Discard, c)
		return
	}
	read(cookieBytes)
	say(byte(paramExchange))
	s.mu.Lock()
	_ = json.Unmarshal(document(), &s.params)
	s.mu.Unlock()
	if s.refuse != nil {
		say(s.refuse...)
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		return
	}
	say(byte(createStreams))
	if s.reply == nil {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	say(byte(testStart), byte(testRunning))
	if s.ends != nil {
		testenv.Await(s.t, "data", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.bytes > 0 })
		say(s.ends...)
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		return
	}
	if got := read(1); state(got[0]) != testEnd {
		s.t.Errorf("state %d came in place of the end of the test", got[0])
		return
	}
	say(byte(exchangeResults))
	document()
	s.mu.Lock()
	text := strings.NewReplacer("BYTES", jsonOf(s.bytes), "LOST", jsonOf(s.lost), "PACKETS", jsonOf(s.next-1)).Replace(s.results)
	s.mu.Unlock()
	say(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)...)
	say(byte(displayResults))
	if got := read(1); state(got[0]) != iperfDone {
		s.t.Errorf("state %d came in place of the end", got[0])
	}
}

func jsonOf(n any) string { b, _ := json.Marshal(n); return string(b) }

const counted = `{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,"sender_has_retransmits":-1,"streams":[{"id":1,` +
	`"bytes":BYTES,"retransmits":-1,"jitter":0,"errors":LOST,"omitted_errors":0,"packets":PACKETS,"omitted_packets":0,` +
	`"start_time":0,"end_time":1}]}`

// trial is a short flow to a server.
func (s *server) trial(t *testing.T) enginetest.Trial {
	c := NewClient(s.at)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if len(c.tests) > 0 {
			t.Error("a test is left")
		}
	})
	r := enginetest.New(model.UDP)
	r.Timing = model.Timing{MeasureSeconds: 0.25, DrainSeconds: 1}
	r.Near, r.Far = enginetest.Side{Host: enginetest.Here{}, Engine: c.Near()}, enginetest.Side{Host: enginetest.Here{},
		Engine: c.Far()}
	return r
}

func TestTrial(t *testing.T) {
	s := newServer(t)
	s.results = counted
	s.serve()
	for range 2 { // the ends of a test leave nothing behind
		s.mu.Lock()
		s.next, s.bytes, s.lost = 1, 0, 0
		s.mu.Unlock()
		r := s.trial(t)
		send, receive := r.Play(t)
		sent, in := send.Send.Attempted, receive.Receive
		if sent == 0 || in.Tally.Received != sent || in.Tally.Bytes != 64*sent || in.Peer.Tail != 0 || in.Peer.Highest != sent {
			t.Errorf("%d sent; %+v, %+v", sent, in.Tally, in.Peer)
		}
	}
	want := map[string]any{"udp": true, "omit": 0., "time": 1., "num": 0., "blockcount": 0., "parallel": 1., "len": 64.,
		"bandwidth": 2000. * 64 * 8, "client_version": "pelt"}
	if jsonOf(s.params) != jsonOf(want) {
		t.Errorf("parameters %v; want %v", s.params, want)
	}
}

// TestRefusals: whatever a server answers, the user gets one line that says which server did what.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*server)
		want string
	}{
		{"busy", func(s *server) { s.answer = []byte{0xff} }, "is busy with another test"},
		{"another protocol", func(s *server) { s.answer = []byte("SSH-2.0-") }, "state 83, which no iperf3 server sends"},
		{"a code, and an errno", func(s *server) { s.refuse = []byte{0xfe, 0, 0, 0, 27, 0, 0, 0, 0} }, "--server-bitrate-limit"},
		{"a code alone", func(s *server) { s.refuse = []byte{0xfe, 0, 0, 0, 142} }, "asks for a login"},
		{"a code that nobody knows", func(s *server) { s.refuse = []byte{0xfe, 0, 0, 1, 0} }, "error 256"},
		{"closed without a word", func(s *server) { s.refuse = []byte{} }, "refused the test without a reason"},
		{"UDP is dropped", func(s *server) { s.reply = nil }, "a firewall may drop UDP to that port"},
		{"ended by its owner", func(s *server) { s.ends = []byte{byte(serverTerminate)} }, "it ended the test"},
		{"gone in the middle", func(s *server) { s.ends = []byte{} }, "it closed the control connection"},
		{"results that are none", func(s *server) { s.results = "{}" }, "results of 0 streams, not 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			c.set(s)
			s.serve()
			r := s.trial(t)
			if s.ends != nil {
				r.Timing.MeasureSeconds = 600
				r.During = func(p *enginetest.Pair) {
					testenv.Receive(t, "the end of the receiver", p.Receiver.Done())
					p.Sender.Stop() // as a session does
				}
			}
			_, _, err := r.Try(t)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "the iperf3 server at "+
				s.at.String()) {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
}

// TestOrdersRefused: what an iperf3 server cannot do is refused before anything is sent.
func TestOrdersRefused(t *testing.T) {
	c := NewClient(netip.MustParseAddrPort("127.0.0.1:1"))
	for name, change := range map[string]func(*engine.Order){
		"TCP":                   func(o *engine.Order) { o.Flow.Protocol = model.TCP },
		"a probe":               func(o *engine.Order) { o.Role = engine.Probe },
		"a warm-up":             func(o *engine.Order) { o.Timing.WarmupSeconds = 1 },
		"down":                  func(o *engine.Order) { o.Role = engine.Receive },
		"2^32 packets":          func(o *engine.Order) { o.Timing.MeasureSeconds = 1 << 22 },
		"more than 128 streams": func(o *engine.Order) { o.Flow.Streams = 129 },
	} {
		o := enginetest.New(model.UDP).Order
		o.Timing.WarmupSeconds = 0
		change(&o)
		var refusal *engine.Refusal
		if _, err := c.Near().Open(t.Context(), enginetest.Here{}, o); !errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
