package iperf3

import (
	"bytes"
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

	alone bool // the client ends the test

	mu     sync.Mutex
	asked  netip.AddrPort // who asked for a stream last
	params map[string]any
	next   uint32 // sequence
	bytes  int
	lost   int // sequences that did not come
}

func newServer(t *testing.T) *server {
	t.Helper()
	port := testenv.Port(t)
	s := &server{t: t, at: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)), reply: []byte("6789"), next: 1}
	var err error
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
			s.mu.Lock()
			s.asked = from
			s.mu.Unlock()
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
	s.mu.Lock()
	sends := s.params["reverse"] == true
	s.mu.Unlock()
	if sends {
		testenv.Await(s.t, "a request", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.asked.IsValid() })
	}
	say(byte(testStart), byte(testRunning))
	if s.alone {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	if sends {
		s.send()
	}
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

// sentHere is what a server that sends sends.
const sentHere = 50

func (s *server) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range sentHere {
		b := make([]byte, 64)
		binary.BigEndian.PutUint32(b, 77777)
		binary.BigEndian.PutUint32(b[8:], s.next)
		_, _ = s.data.WriteToUDPAddrPort(b, s.asked)
		s.next, s.bytes = s.next+1, s.bytes+len(b)
	}
}

func jsonOf(n any) string { b, _ := json.Marshal(n); return string(b) }

const counted = `{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,"sender_has_retransmits":-1,"streams":[{"id":1,` +
	`"bytes":BYTES,"retransmits":-1,"jitter":0,"errors":LOST,"omitted_errors":0,"packets":PACKETS,"omitted_packets":0,` +
	`"start_time":0,"end_time":1}]}`

// trial is a short flow to a server.
func (s *server) trial(t *testing.T) enginetest.Trial {
	c := NewClient(s.at, "")
	t.Cleanup(func() {
		if len(c.legs) > 0 {
			t.Error("a test is left")
		}
	})
	r := enginetest.New(model.UDP)
	r.Timing = model.Timing{MeasureSeconds: 0.25, DrainSeconds: 1}
	r.Near, r.Far = enginetest.Side{Host: enginetest.Here{}, Engine: c.Near(model.UDP)}, enginetest.Side{Host: enginetest.Here{},
		Engine: c.Far(model.UDP)}
	return r
}

func TestMain(m *testing.M) { testenv.Main(m) }

// TestVersions: what the versions of iperf3 differ in, where a client meets it.
func TestVersions(t *testing.T) {
	t.Parallel()
	const minus = "18446744073709551615"
	unsigned := strings.NewReplacer(`"omitted_errors":0,`, "", `,"omitted_packets":0`, "", "-1", minus).Replace(counted)
	for _, c := range []struct {
		name, results, reply string
		up, down             string // what it is called
	}{
		{"3.1, which tells no times", strings.Replace(unsigned, `,"start_time":0,"end_time":1`, "", 1), string(oldReply[:]),
			"iperf3 3.1 or older", "iperf3 3.1 or older"},
		{"3.11, with other words, and -1 without a sign", unsigned, string(oldReply[:]), "iperf3 3.2 to 3.11", "iperf3 3.2 to 3.13"},
		{"3.12", unsigned, "6789", "iperf3 3.12 or 3.13", "iperf3 3.2 to 3.13"},
		{"3.12 of the other byte order, with swapped words", unsigned, "9876", "iperf3 3.12 or 3.13", "iperf3 3.2 to 3.13"},
		{"3.14, with omitted packets", counted, "6789", "iperf3 3.14 or newer", "iperf3 3.14 or newer"},
		{"keys of later ones", strings.Replace(counted, `"id"`, `"later":{"x":[1]},"id"`, 1), "6789", "iperf3 3.14 or newer",
			"iperf3 3.14 or newer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, role := range []engine.Role{engine.Send, engine.Receive} {
				s := newServer(t)
				s.results, s.reply = c.results, []byte(c.reply)
				s.serve()
				r := s.trial(t)
				r.Role = role
				send, receive := r.Play(t)
				peer, want, sent := receive.Receive.Peer, c.up, send.Send.Attempted
				if role == engine.Receive {
					peer, want = send.Send.Peer, c.down
				}
				if peer == nil || peer.Program != want || sent == 0 || receive.Receive.Tally.Received != sent {
					t.Errorf("%s: %+v; %d sent, %d received; want %s", role, peer, sent, receive.Receive.Tally.Received, want)
				}
				if role == engine.Receive && sent != sentHere {
					t.Errorf("%d sent, want %d", sent, sentHere)
				}
				s.mu.Lock()
				for key, value := range s.params { // whose mere presence is true to them
					if value == false || key == "reverse" && role == engine.Send {
						t.Errorf("%s: %v", key, value)
					}
				}
				s.mu.Unlock()
			}
		})
	}
}

// TestBothWays: a server before 3.7 does not know of tests in both directions, and begins when the streams of one are open.
func TestBothWays(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.alone = true
	s.serve()
	r := s.trial(t)
	var near []engine.Transport
	for _, step := range []string{"far", "near"} {
		for i, role := range []engine.Role{engine.Send, engine.Receive} {
			o := r.Order
			o.Trial, o.Key = o.Trial+uint16(i), bytes.Repeat([]byte{byte(i + 1)}, engine.KeyBytes)
			o.Role, o.Peer, o.Ports = role, s.at.Addr(), []uint16{s.at.Port()}
			e := r.Near.Engine
			if step == "far" {
				o.Listen, e = true, r.Far.Engine
				o.Role = []engine.Role{engine.Receive, engine.Send}[i]
			}
			end, err := e.Open(t.Context(), enginetest.Here{}, o)
			testenv.Must(t, err)
			t.Cleanup(func() { _ = end.Close() })
			if step == "near" {
				near = append(near, end)
			}
		}
	}
	for _, end := range near {
		if _, err := end.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "iperf3 does before 3.7") {
			t.Errorf("%v", err)
		}
	}
}

// TestRefusals: whatever a server answers, the user gets one line that says which server did what.
func TestRefusals(t *testing.T) {
	t.Parallel()
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
