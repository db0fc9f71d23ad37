package iperf3

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

// served runs a test's ends through their steps, as a run does.
func served(ctx context.Context, x *Session) (string, error) {
	type flow struct{ near, far, sends, receives *engine.End }
	var flows []flow
	k := engine.Known{}
	for i, f := range x.Flows() {
		o := engine.Order{Flow: f, Timing: x.Timing(), Role: engine.Receive, Listen: true, Trial: uint16(7 + i), CPU: -1}
		far := o
		far.Listen, far.Peer, far.Role = false, x.Local.Addr(), engine.Send
		if f.From == model.Receiver {
			o.Role, far.Role = engine.Send, engine.Receive
		}
		one := flow{near: engine.New(x.Near(), engine.ThisHost{}, o), far: engine.New(x.Far(), engine.ThisHost{}, far)}
		one.sends, one.receives = one.far, one.near
		if o.Role == engine.Send {
			one.sends, one.receives = one.near, one.far
		}
		defer one.near.Close()
		defer one.far.Close()
		defer context.AfterFunc(ctx, func() { one.near.Stop(); one.far.Stop() })()
		flows, k.Living = append(flows, one), slices.Repeat([]bool{true}, f.Streams)
	}
	for _, s := range []engine.Step{engine.Open, engine.Meet, engine.Met, engine.Ready} {
		for _, f := range flows {
			l, err := f.near.Do(ctx, s, k)
			if k.Ports = l.Ports; err != nil {
				return "", err
			}
			if _, err = f.far.Do(ctx, s, k); err != nil {
				return "", err
			}
		}
	}
	var going sync.WaitGroup
	errs := make([]error, len(flows))
	for i, f := range flows {
		going.Go(func() { _, errs[i] = f.sends.Do(ctx, engine.Go, k) })
	}
	going.Wait()
	for _, f := range flows {
		halted, err := f.sends.Do(ctx, engine.Halt, k)
		if err == nil && errors.Join(errs...) == nil {
			_, err = f.receives.Do(ctx, engine.Drain, engine.Known{Sent: halted.Sent})
		}
		errs = append(errs, err)
	}
	client, _ := flows[0].far.Report() // one that failed is in errs
	return fmt.Sprintf("100 %% of the packets that died did so elsewhere; the client took %g of a core\n",
		client.CPU.ThreadRatio), errors.Join(errs...)
}

// startServer serves on loopback until the test ends.
func startServer(t *testing.T, sessions int) *Server {
	t.Helper()
	s, err := Listen(ServerConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Sessions: sessions, Longest: time.Hour,
		Welcome: func(a netip.Addr) error {
			if a == netip.MustParseAddr("127.0.0.9") {
				return errors.New("a stranger")
			}
			return nil
		},
		Admit: func(x *Session, under []*Session) error {
			if f := x.Flows()[0]; f.Protocol == model.UDP && f.Rate.IsMax() {
				return TooFast(errors.New("no floods"))
			}
			return nil
		},
		Run: served, Events: func(said error) { t.Log(said) }})
	testenv.Must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(ctx) })
	t.Cleanup(func() {
		stop()
		serving.Wait()
	})
	return s
}

// fakeClient is an iperf3 client of any kind.
type fakeClient struct {
	*testing.T
	net.Conn
	port uint16
}

func dialServer(t *testing.T, s *Server, from string) fakeClient {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port()))
	testenv.Must(t, err)
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(testenv.Patience))
	return fakeClient{t, c, s.Port()}
}

func (c fakeClient) put(b ...byte) { _, _ = c.Write(b) } // an error shows when the answer is read

// want reads the states that the server is to send.
func (c fakeClient) want(states ...state) {
	c.Helper()
	b := make([]byte, len(states))
	n, err := io.ReadFull(c, b)
	for i := range states {
		if i >= n || state(int8(b[i])) != states[i] {
			c.Fatalf("the server sent %v (%v), want %v", b[:n], err, states)
		}
	}
}

// document sends a document behind its length.
func (c fakeClient) document(text string) {
	c.put(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)...)
}

// hello says who it is, and what it wants.
func (c fakeClient) hello(params string) (cookie [cookieBytes]byte) {
	c.Helper()
	cookie = newCookie()
	c.put(cookie[:]...)
	c.want(paramExchange)
	c.document(params)
	return cookie
}

// asks requests a UDP stream from an address.
func (c fakeClient) asks(from string, word [4]byte) *net.UDPConn {
	c.Helper()
	u, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(c.port)})
	testenv.Must(c, err)
	c.Cleanup(func() { u.Close() })
	_, _ = u.Write(word[:])
	return u
}

// stream opens a UDP stream, and waits for the server's answer.
func (c fakeClient) stream(word [4]byte) (u *net.UDPConn, reply [4]byte) {
	c.Helper()
	u = c.asks("127.0.0.1", word)
	_ = u.SetReadDeadline(time.Now().Add(testenv.Patience))
	if _, err := io.ReadFull(u, reply[:]); err != nil {
		c.Fatalf("the request for a stream has no answer: %v", err)
	}
	return u, reply
}

// unanswered requests a UDP stream, to which the server is to say nothing.
func (c fakeClient) unanswered(from string) {
	c.Helper()
	u := c.asks(from, request)
	_ = u.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	b := make([]byte, 16)
	if n, _ := u.Read(b); n > 0 {
		c.Errorf("a request from %s is answered: % x", from, b[:n])
	}
}

const rightParams = `{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"len":64,"bandwidth":1000000,` +
	`"udp_counters_64bit":1,"get_server_output":1,"client_version":"3.12"}`

// run is a whole test of two streams: of the first, packet 3 of 10 is lost, of the second the last two of 5.
func (c fakeClient) run() {
	c.Helper()
	c.hello(rightParams)
	c.want(createStreams)
	big := [4]byte{0x36, 0x37, 0x38, 0x39}
	first, reply := c.stream(request)
	if reply != big {
		c.Errorf("reply % x", reply)
	}
	second, reply := c.stream(big)
	if reply != request {
		c.Errorf("reply % x to a big-endian client", reply)
	}
	c.want(testStart, testRunning)
	b := make([]byte, 64)
	for i := range 10 {
		binary.BigEndian.PutUint32(b, uint32(10*(i%2))) // says that it was sent 10 s before or after the last one
		binary.BigEndian.PutUint64(b[8:], uint64(i+1))
		if i != 2 {
			_, _ = first.Write(b)
		}
		if i < 3 {
			_, _ = second.Write(b)
		}
	}
	c.put(byte(testEnd))
	c.want(exchangeResults)
	c.document(`{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,"sender_has_retransmits":18446744073709551615,"streams":[` +
		`{"id":1,"bytes":640,"retransmits":-1,"jitter":0,"errors":0,"packets":10},` +
		`{"id":3,"bytes":320,"retransmits":-1,"jitter":0,"errors":0,"packets":5}]}`)
	r := c.results(2)
	for i, want := range []struct{ packets, lost count }{{10, 1}, {5, 2}} {
		if s := r.Streams[i]; s.Packets != want.packets || s.Errors != want.lost ||
			s.Bytes != 64*(want.packets-want.lost) || s.Jitter < 0.1 || s.Jitter > 10 {
			c.Errorf("stream %d: %+v, want %+v", i, s, want)
		}
	}
	if !strings.Contains(r.Output, "100 %") || !strings.Contains(r.Output, " 0.01 of a core") { // as it said
		c.Errorf("server output %q", r.Output)
	}
	c.want(displayResults)
	c.put(byte(iperfDone))
}

// results reads the server's.
func (c fakeClient) results(streams int) results {
	c.Helper()
	var n [4]byte
	if _, err := io.ReadFull(c, n[:]); err != nil {
		c.Fatal(err)
	}
	text := make([]byte, binary.BigEndian.Uint32(n[:]))
	if _, err := io.ReadFull(c, text); err != nil {
		c.Fatal(err)
	}
	r, err := readResults(text, streams)
	if err != nil {
		c.Fatalf("%v\n%s", err, text)
	}
	return r
}

const tcpParams = `{"tcp":true,"omit":0,"time":0,"num":700,"blockcount":0,"parallel":3,"len":100,"client_version":"3.12"}`

// TestServerTCP: streams belong to the test whose cookie they bring, and are numbered as they came.
func TestServerTCP(t *testing.T) {
	t.Parallel()
	s := startServer(t, 2)
	var tests [2]fakeClient
	var streams [2][3]fakeClient
	var cookies [2][cookieBytes]byte
	for i := range tests {
		tests[i] = dialServer(t, s, "127.0.0.1")
		cookies[i] = tests[i].hello(tcpParams)
		tests[i].want(createStreams)
	}
	stranger := dialServer(t, s, "127.0.0.2") // has heard the cookie, and is a client like others
	stranger.put(cookies[0][:]...)
	stranger.want(paramExchange)
	for n := range 3 {
		for i := range tests {
			streams[i][n] = dialServer(t, s, "127.0.0.1")
		}
	}
	for n := range 3 { // the last to come speaks first
		for i := range tests {
			streams[i][2-n].put(cookies[i][:]...)
		}
	}
	for i, c := range tests {
		c.want(testStart, testRunning)
		more := dialServer(t, s, "127.0.0.1") // all are there
		more.put(cookies[i][:]...)
		if n, err := more.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("a fourth stream of three is answered")
		}
		for n, stream := range streams[i] {
			stream.put(make([]byte, 100*(n+1)+i)...)
		}
		c.put(byte(testEnd))
		c.want(exchangeResults)
		streams[i][2].put(make([]byte, 100)...) // was on its way
		c.document(fmt.Sprintf(`{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,"sender_has_retransmits":1,`+
			`"congestion_used":"cubic","streams":[{"id":1,"bytes":%d,"retransmits":2,"jitter":0,"errors":0,"packets":0},`+
			`{"id":3,"bytes":%d,"retransmits":0,"jitter":0,"errors":0,"packets":0},`+
			`{"id":4,"bytes":%d,"retransmits":0,"jitter":0,"errors":0,"packets":0}]}`, 100+i, 200+i, 400+i))
		for n, one := range c.results(3).Streams {
			if want := count([]int{100, 200, 400}[n] + i); one.Bytes != want || one.Packets != 0 {
				t.Errorf("test %d, stream %d: %+v, want %d B", i, n, one, want)
			}
		}
		c.want(displayResults)
		c.put(byte(iperfDone))
	}
}

// TestServerRefuses: each refusal has the code by which iperf3 knows it.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	s := startServer(t, 1)
	for _, c := range []struct {
		old, new string
		code     uint32
	}{
		{`"udp"`, `"sctp"`, codeNotDone},
		{`"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"len":64`, `"tcp":true,"len":1048577`, codeBlock},
		{`"omit":0`, `"omit":601`, codeOmit},
		{`"time":1`, `"time":86401`, codeTime},
		{`"time":1`, `"time":-1`, codeTime},
		{`"time":1`, `"time":0`, codeTime},
		{`"parallel":2`, `"parallel":129`, codeStreams},
		{`"parallel":2`, `"parallel":0`, codeStreams},
		{`"len":64`, `"len":15`, codePayload},
		{`"len":64`, `"len":65508`, codePayload},
		{`"len":64`, `"len":64,"window":1000000000`, codeWindow},
		{`"len":64`, `"len":64,"TOS":256`, codeTOS},
		{`"num":0`, `"num":-5`, codeParams},
		{`"bandwidth":1000000`, `"bandwidth":0`, codeRate},
		{`"bandwidth":1000000`, `"bandwidth":1e300`, codeRate},
		{`{`, `[`, codeParams},
	} {
		conn := dialServer(t, s, "127.0.0.1")
		conn.hello(strings.Replace(rightParams, c.old, c.new, 1))
		conn.want(serverError)
		var b [8]byte
		if _, err := io.ReadFull(conn, b[:]); err != nil || binary.BigEndian.Uint32(b[:]) != c.code {
			t.Errorf("%s: code %d (%v), want %d", c.new, binary.BigEndian.Uint32(b[:]), err, c.code)
		}
	}
	stranger := dialServer(t, s, "127.0.0.9")
	stranger.want(serverError)
}

// TestServerHostile: whatever others do, a right client is served.
func TestServerHostile(t *testing.T) {
	t.Parallel()
	s := startServer(t, 2)
	for range 2 * mostGuests { // they say nothing, and hold no place
		dialServer(t, s, "127.0.0.1")
	}
	for _, announced := range []uint32{0, mostParams + 1, 1<<32 - 1} {
		c := dialServer(t, s, "127.0.0.1")
		cookie := newCookie()
		c.put(cookie[:]...)
		c.want(paramExchange)
		c.put(binary.BigEndian.AppendUint32(nil, announced)...)
		c.want(serverError)
	}
	dialServer(t, s, "127.0.0.1").run()

	stalls := dialServer(t, s, "127.0.0.1") // and never opens its streams
	stalls.hello(rightParams)
	stalls.want(createStreams)
	stalls.unanswered("127.0.0.2") // it has no control connection
	other := dialServer(t, s, "127.0.0.2")
	other.hello(rightParams)
	other.want(createStreams)
	full := dialServer(t, s, "127.0.0.1")
	full.hello(rightParams)
	full.want(accessDenied)
	other.put(byte(clientTerminate))
	stalls.Close()
	testenv.Await(t, "free places", func() bool { return s.served() == 0 })

	liar := dialServer(t, s, "127.0.0.1")
	liar.hello(strings.Replace(rightParams, `"parallel":2`, `"parallel":1`, 1))
	liar.want(createStreams)
	liar.stream(request)
	liar.want(testStart, testRunning)
	liar.put(byte(testEnd))
	liar.want(exchangeResults)
	liar.put(0xFF, 0xFF, 0xFF, 0xFF)
	liar.want(serverError)
	dialServer(t, s, "127.0.0.1").run()
}

// TestServerStalled: a thousand connections stop in each state that holds no place, and some in each that does. A right
// client is served meanwhile, and what the server remembers of them is bounded.
func TestServerStalled(t *testing.T) {
	t.Parallel()
	const each, places = 1000, 5
	s := startServer(t, 3*places+1)
	long := newCookie()
	for _, said := range [][]byte{nil, long[:20], long[:], append(long[:], 0, 0), append(long[:], 0, 0, 0, 100, '{')} {
		for range each {
			dialServer(t, s, "127.0.0.1").put(said...)
		}
	}
	dialServer(t, s, "127.0.0.1").run()
	if n := s.waiting(); n > mostGuests {
		t.Errorf("%d connections are held that say nothing", n)
	}
	for i := range places {
		from := fmt.Sprintf("127.0.1.%d", i+1)
		opens := dialServer(t, s, from)
		opens.hello(rightParams)
		opens.want(createStreams)
		runs := dialServer(t, s, from)
		cookie := runs.hello(strings.Replace(tcpParams, `"parallel":3`, `"parallel":1`, 1))
		runs.want(createStreams)
		dialServer(t, s, from).put(cookie[:]...)
		runs.want(testStart, testRunning)
		ends := dialServer(t, s, from)
		cookie = ends.hello(strings.Replace(tcpParams, `"parallel":3`, `"parallel":1`, 1))
		ends.want(createStreams)
		dialServer(t, s, from).put(cookie[:]...)
		ends.want(testStart, testRunning)
		ends.put(byte(testEnd))
		ends.want(exchangeResults)
	}
	dialServer(t, s, "127.0.0.1").run()
}

func TestLines(t *testing.T) {
	var l lines
	at := time.Now()
	for i := range 3 * mostLines {
		if more, ok := l.next(at); ok != (i < mostLines) || more != 0 {
			t.Errorf("line %d: %d, %v", i, more, ok)
		}
	}
	if more, ok := l.next(at.Add(linesTime)); !ok || more != 2*mostLines {
		t.Errorf("later: %d, %v", more, ok)
	}
}

func (s *Server) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.guests)
}

func (s *Server) served() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

func FuzzAsked(f *testing.F) {
	f.Add([]byte(rightParams))
	f.Add([]byte(`{"udp":true,"num":9223372036854775807,"len":1e9}`))
	f.Add([]byte(`{"tcp":true,"blockcount":8589934592,"len":1048576}`))
	f.Add([]byte(strings.Replace(rightParams, `"omit":0`, `"omit":1,"bidirectional":true,"congestion":"a+b","nodelay":0`, 1)))
	f.Add([]byte(`{"udp":1,"time":null,"parallel":"x","bandwidth":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := readAsked(b)
		if err != nil {
			if !errors.As(err, new(*Denial)) {
				t.Errorf("%q: %v has no code", b, err)
			}
			return
		}
		if a.streams < 1 || a.streams > mostStreams || a.payload < 1 || a.payload > 1<<20 ||
			a.udp && (a.payload < 16 || a.payload > 65507) || a.window > mostWindow ||
			a.bandwidth < 0 || (a.seconds == 0) != (a.bytes > 0) {
			t.Errorf("%q: %+v", b, a)
		}
		list, _ := a.flows()
		for _, f := range list {
			if f.Streams != a.streams || f.PayloadBytes != a.payload || f.Packets > 0 && f.From == model.Receiver {
				t.Errorf("%q: %+v", b, f)
			}
		}
	})
}

// hear reads what the server sends over a stream until nothing comes for a while.
func hear(u *net.UDPConn, quiet time.Duration) (sequences []uint64) {
	const waits = 2 // of a silence: a machine that stands still ends one early
	b := make([]byte, 1<<16)
	for silent := 0; silent < waits; {
		_ = u.SetReadDeadline(time.Now().Add(quiet / waits))
		switch n, err := u.Read(b); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			silent++
		case err != nil || n < 16:
			return sequences
		default:
			silent, sequences = 0, append(sequences, binary.BigEndian.Uint64(b[8:n]))
		}
	}
	return sequences
}

// said is a client's results of streams of 64 B, by their highest sequences and what did not come of these.
func said(highest, gaps []uint64) string {
	r := results{HasRetransmits: -1}
	for i, id := range streamIDs(len(highest)) {
		r.Streams = append(r.Streams, streamResult{ID: id, Packets: count(highest[i]), Errors: count(gaps[i]),
			Bytes: 64 * count(highest[i]-gaps[i]), Retransmits: -1})
	}
	text, _ := json.Marshal(r)
	return string(text)
}

// asking returns parameters for one stream of UDP at 1000 packets a second, with others in place of some.
func asking(change ...string) string {
	text := strings.NewReplacer(`"parallel":2`, `"parallel":1`, `1000000`, `512000`).Replace(rightParams)
	return strings.NewReplacer(change...).Replace(text)
}

// TestServerBoth: of a test in both directions the streams that the client sends come first.
func TestServerBoth(t *testing.T) {
	t.Parallel()
	s := startServer(t, 1)
	k := dialServer(t, s, "127.0.0.1")
	k.hello(asking(`"omit":0`, `"omit":0,"bidirectional":true`))
	k.want(createStreams)
	up, _ := k.stream(request)
	down, _ := k.stream(request)
	k.want(testStart, testRunning)
	b := make([]byte, 64)
	for i := range 10 {
		binary.BigEndian.PutUint64(b[8:], uint64(i+1))
		if i != 4 {
			_, _ = up.Write(b)
		}
	}
	got := uint64(len(hear(down, 400*time.Millisecond)))
	k.put(byte(testEnd))
	k.want(exchangeResults)
	k.document(said([]uint64{10, got}, []uint64{0, 0}))
	r := k.results(2)
	if in, out := r.Streams[0], r.Streams[1]; in.Packets != 10 || in.Errors != 1 || got < 10 || out.Packets != count(got) || out.Errors != 0 {
		t.Errorf("%d came: %+v", got, r)
	}
	k.want(displayResults)
}

// TestServerStopsSending: a client that goes away in any state is sent no more, and a forged request gets nothing.
func TestServerStopsSending(t *testing.T) {
	t.Parallel()
	s := startServer(t, 4)
	endless := asking(`"omit":0`, `"omit":0,"reverse":true`, `"time":1`, `"time":0`, `"num":0`, `"num":1000000000`)
	for name, leave := range map[string]func(k fakeClient){
		"closes":                    func(k fakeClient) { k.Close() },
		"resets":                    func(k fakeClient) { _ = k.Conn.(*net.TCPConn).SetLinger(0); k.Close() },
		"gives up":                  func(k fakeClient) { k.put(byte(clientTerminate)) },
		"says nonsense":             func(k fakeClient) { k.put(77) },
		"closes before its results": func(k fakeClient) { k.put(byte(testEnd)); k.want(exchangeResults); k.Close() },
		"lies in its results": func(k fakeClient) {
			k.put(byte(testEnd))
			k.want(exchangeResults)
			k.document(said([]uint64{1 << 60}, []uint64{0}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := dialServer(t, s, "127.0.0.1")
			k.hello(endless)
			k.want(createStreams)
			k.unanswered("127.0.0.2") // it has no control connection
			u, _ := k.stream(request)
			k.unanswered("127.0.0.1") // a second stream of one
			k.want(testStart, testRunning)
			_ = u.SetReadDeadline(time.Now().Add(testenv.Patience))
			if _, err := u.Read(make([]byte, 64)); err != nil {
				t.Fatal(err)
			}
			leave(k)
			testenv.Await(t, "a free place", func() bool { return s.served() == 0 })
			hear(u, 50*time.Millisecond) // what was on its way
			if late := hear(u, 300*time.Millisecond); len(late) > 0 {
				t.Errorf("%d packets are still sent", len(late))
			}
		})
	}
}
