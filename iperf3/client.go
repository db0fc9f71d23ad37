package iperf3

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/model"
)

const (
	patience  = 10 * time.Second // for the next state, and for results
	replyWait = 2 * time.Second  // for the answer to a stream's request
	lookEvery = 100 * time.Millisecond
	mostTries = 3 // of a whole test whose requests or replies are lost

	// A server opens its listener anew after each test. For so long a client that is refused tries again.
	betweenTests = 2 * time.Second
	firstPause   = 50 * time.Millisecond
	mostPause    = 400 * time.Millisecond

	mostRefused = 8 // requests of one stream that find no port: they were read by nobody, so they are repeated
)

// Client makes the ends of flows to one iperf3 server.
type Client struct {
	server netip.AddrPort
	udp    *udp.Engine

	mu    sync.Mutex
	tests map[string]*test // under way, by the key that both ends of a flow share
}

// NewClient makes a client of a server. It sends nothing.
func NewClient(server netip.AddrPort) *Client {
	return &Client{server: server, udp: udp.New(udp.Config{}), tests: map[string]*test{}}
}

// Near makes ends that send to the server.
func (c *Client) Near() engine.Engine { return nearEngine{c} }

// Far makes ends that stand for the server.
func (c *Client) Far() engine.Engine { return farEngine{c} }

// Close frees what the ends share. They must be closed before.
func (c *Client) Close() error { return c.udp.Close() }

// test is one test of iperf3: a flow of one trial. Its two ends share it.
type test struct {
	client *Client
	order  engine.Order

	met     chan struct{} // closed when what follows is set
	meeting engine.Meeting
	err     error
	control *control
	old     bool // the server answers as those up to 3.11 do

	mu   sync.Mutex
	ends int      // that are open
	sent []uint64 // packets that each stream has sent, once the near end is over
	over bool     // the server has sent its results
}

// begin makes the test of a far end's order.
func (c *Client) begin(o engine.Order) *test {
	t := &test{client: c, order: o, met: make(chan struct{}), ends: 1}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tests[string(o.Key)] = t
	return t
}

// of finds the test of a near end's order.
func (c *Client) of(o engine.Order) (*test, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tests[string(o.Key)]; t != nil {
		return t, nil
	}
	return nil, errors.New("no end stands for the iperf3 server")
}

// close is called by each end once. The last one ends the test: a server that is still in it is told.
func (t *test) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends--; t.ends > 0 {
		return nil
	}
	t.client.mu.Lock()
	delete(t.client.tests, string(t.order.Key))
	t.client.mu.Unlock()
	if t.control == nil {
		return nil
	}
	if !t.over {
		_ = t.control.send(clientTerminate)
	}
	return t.control.close()
}

// explain says which server an error is about.
func (t *test) explain(err error) error {
	return fmt.Errorf("the iperf3 server at %v: %w", t.client.server, err)
}

// meet opens the test and its streams, and tells the far end.
func (t *test) meet(ctx context.Context, sockets *udp.Sockets) (engine.Meeting, error) {
	defer close(t.met)
	for try := 1; ; try++ {
		t.meeting, t.err = t.open(ctx, sockets)
		if t.err == nil || !errors.Is(t.err, errNoReply) || try == mostTries || ctx.Err() != nil {
			break
		}
	}
	if t.err != nil {
		t.err = t.explain(t.err)
	}
	return t.meeting, t.err
}

// open goes from the control connection to the moment when the server counts data.
func (t *test) open(ctx context.Context, sockets *udp.Sockets) (m engine.Meeting, err error) {
	k, err := t.enter(ctx)
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			_ = k.send(clientTerminate)
			_ = k.close()
		}
	}()
	if err := k.sendJSON(t.params()); err != nil {
		return m, err
	}
	switch err := k.expect(ctx, patience, createStreams); {
	case errors.Is(err, errClosed): // up to 3.19 it does not say why
		return m, errors.New("it refused the test without a reason: a rate limit, a login, or a size that it does not take")
	case err != nil:
		return m, err
	}
	started := false
	for i := range t.order.Flow.Streams {
		one := engine.MetStream{Stream: sockets.Stream(i), Sent: 1}
		if one.Met, started, err = t.ask(ctx, k, sockets, i); err != nil {
			return m, err
		}
		one.Heard = 1
		m.Streams = append(m.Streams, one)
	}
	if !started {
		if err := k.expect(ctx, patience, testStart); err != nil {
			return m, err
		}
	}
	if err := k.expect(ctx, patience, testRunning, testStart); err != nil {
		return m, err
	}
	t.control = k
	return m, nil
}

// enter connects until the server asks for parameters.
func (t *test) enter(ctx context.Context) (*control, error) {
	for until, pause := time.Now().Add(betweenTests), firstPause; ; pause = min(2*pause, mostPause) {
		k, err := t.knock(ctx)
		if err == nil || ctx.Err() != nil || time.Now().Add(pause).After(until) || !between(err) {
			return k, err
		}
		engine.Sleep(ctx, pause)
	}
}

// between reports whether an error may only mean that the server is between two tests.
func between(err error) bool {
	return errors.Is(err, errBusy) || errors.Is(err, errClosed) || errors.Is(err, syscall.ECONNREFUSED)
}

func (t *test) knock(ctx context.Context) (*control, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", t.client.server.String())
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("nothing listens there (%w): start iperf3 -s, or name its port as iperf3://HOST:PORT",
			syscall.ECONNREFUSED)
	case err != nil:
		return nil, err
	}
	k, cookie := newControl(conn.(*net.TCPConn)), newCookie()
	_ = k.write(cookie[:]) // an error must not hide that the server is busy, which it says first
	if err := k.expect(ctx, patience, paramExchange); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// params are those of the test.
func (t *test) params() params {
	f := t.order.Flow
	p := params{UDP: true, Time: int(math.Ceil(t.order.Timing.MeasureSeconds)), Parallel: f.Streams, Len: f.PayloadBytes,
		Window: f.ReceiveBuffer / 2, // the kernel counts twice what it is asked for
		TOS:    f.DSCP << 2, Client: "pelt"}
	if pps, paced := f.Rate.PPS(f.PayloadBytes); paced {
		p.Bandwidth = int64(math.Ceil(pps * float64(8*f.PayloadBytes) / float64(f.Streams)))
	}
	return p
}

var errNoReply = errors.New("its TCP port answers, but no answer came over UDP: a firewall may drop UDP to that port")

// ask opens a stream. The request is never repeated once the server may have read it: it would take the second one for
// data. started says that the server has begun, as it does when only the last reply is lost.
func (t *test) ask(ctx context.Context, k *control, sockets *udp.Sockets, stream int) (met, started bool, err error) {
	if err := sockets.Tell(stream, request[:]); err != nil {
		return false, false, fmt.Errorf("a UDP packet could not be sent: %w", err)
	}
	for until, refused := time.Now().Add(replyWait), 0; ; {
		b, err := sockets.Hear(stream, lookEvery)
		switch {
		case err != nil && refused == mostRefused:
			return false, false, fmt.Errorf("UDP packets are refused there: %w", err)
		case err != nil:
			refused++
			engine.Sleep(ctx, time.Duration(refused)*5*time.Millisecond)
			_ = sockets.Tell(stream, request[:]) // its error is that of the one before
		case isReply(b):
			t.old = [4]byte(b) == oldReply
			return true, false, nil
		}
		select {
		case e := <-k.events:
			return true, true, e.problem(testStart)
		default:
		}
		if ctx.Err() != nil {
			return false, false, ctx.Err()
		}
		if time.Now().After(until) {
			return false, false, errNoReply
		}
	}
}

// finish ends the test and returns the server's results.
func (t *test) finish() (results, error) {
	k := t.control
	if err := k.send(testEnd); err != nil {
		return results{}, err
	}
	if err := k.expect(context.Background(), patience, exchangeResults, testStart, testRunning); err != nil {
		return results{}, err
	}
	if err := k.sendJSON(t.own()); err != nil {
		return results{}, err
	}
	b, err := k.readJSON(mostResults)
	if err != nil {
		return results{}, err
	}
	r, err := readResults(b, t.order.Flow.Streams)
	if e := k.next(); e.err == nil && e.state == displayResults { // the results are here already
		_ = k.send(iperfDone)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	return r, err
}

// own are this side's results.
func (t *test) own() results {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := results{}
	none, seconds := count(0), t.order.Timing.MeasureSeconds
	for i, id := range streamIDs(t.order.Flow.Streams) {
		s := streamResult{ID: id, Retransmits: -1, OmittedErrors: &none, OmittedPackets: &none, End: &seconds}
		if i < len(t.sent) {
			s.Packets, s.Bytes = count(t.sent[i]), count(t.sent[i]*uint64(t.order.Flow.PayloadBytes))
		}
		r.Streams = append(r.Streams, s)
	}
	return r
}

// program names the server's versions that report as it does.
func (r results) program(oldReply bool) string {
	switch s := r.Streams[0]; {
	case s.OmittedPackets != nil:
		return "iperf3 3.14 or newer"
	case s.End == nil:
		return "iperf3 3.1 or older"
	case oldReply:
		return "iperf3 3.2 to 3.11"
	case r.oldMinus:
		return "iperf3 3.12 or 3.13"
	}
	return "iperf3"
}

// report is the server's account of a flow. Of each stream, received is the smaller of two figures: all datagrams, which
// duplicates make too great, and the sequences less the gaps. Up to 3.1 the gaps count what came out of order, too.
func (r results) report(payload int, sent []uint64, oldReply bool) (model.Tally, model.PeerReport) {
	t, p := model.Tally{}, model.PeerReport{Program: r.program(oldReply), CPURatio: r.CPU / 100}
	for i, s := range r.Streams {
		came := uint64(s.Bytes) / uint64(payload)
		distinct := came
		if n := s.Packets - s.Errors; s.End != nil && n >= 0 {
			distinct = min(came, uint64(n))
		}
		t.Received, t.Duplicates = t.Received+distinct, t.Duplicates+came-distinct
		p.Highest, p.Gaps = p.Highest+uint64(s.Packets), p.Gaps+uint64(max(s.Errors, 0))
		if i < len(sent) {
			p.Tail += sent[i] - min(uint64(s.Packets), sent[i])
		}
		t.JitterNanos = max(t.JitterNanos, s.Jitter*1e9)
	}
	t.Bytes = t.Received * uint64(payload)
	return t, p
}
