package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/engine/tcp"
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

// Client makes the ends of flows to and from one iperf3 server.
type Client struct {
	server netip.AddrPort
	udp    *udp.Engine
	tcp    *tcp.Engine

	mu   sync.Mutex
	legs map[string]*leg // of the tests under way, by the key that both ends of a flow share
}

// NewClient makes a client of a server. It sends nothing.
func NewClient(server netip.AddrPort) *Client {
	return &Client{server: server, udp: udp.New(udp.Config{}), tcp: tcp.New(tcp.Config{}), legs: map[string]*leg{}}
}

// Near makes the ends at this host, of flows of a protocol.
func (c *Client) Near(p model.Protocol) engine.Engine { return nearEngine{c, string(p)} }

// Far makes ends that stand for the server.
func (c *Client) Far(p model.Protocol) engine.Engine { return farEngine{c, string(p)} }

// Close frees what the ends share. They must be closed before.
func (c *Client) Close() error { return c.udp.Close() }

// test is one test of iperf3: the flows of one trial, one in each direction at most.
type test struct {
	client *Client
	legs   []*leg // up before down: in this order a server opens their streams

	meeting sync.Once
	met     chan struct{} // closed when what follows is set
	err     error
	control *control
	cookie  [cookieBytes]byte
	trip    time.Duration // to the server and back
	reply   [4]byte       // what the server answered to the first request; 0 where that was not seen

	running chan struct{} // closed when the server counts and sends
	over    chan struct{} // closed when the server has sent its results, or not
	results results

	mu   sync.Mutex
	ends int  // that are open
	told bool // the server has sent its results
}

// leg is one flow of a test. Its two ends share it.
type leg struct {
	test    *test
	order   engine.Order // of the end that stands for the server
	meeting engine.Meeting
	near    *nearEnd
	sent    []streamResult // up: of each stream, once the near end is over
	counts  *counter       // down, UDP: what came

	mu   sync.Mutex
	held func() error // down: has the server open the last stream; nil once the near end is closed
}

// down reports whether the server sends.
func (l *leg) down() bool { return l.order.Role == engine.Send }

// begin adds the flow of a far end's order to its test. The numbers of the flows of a trial follow each other, and no
// other trial's follow them.
func (c *Client) begin(o engine.Order) *leg {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &leg{order: o}
	for _, other := range c.legs {
		if n := other.order.Trial; o.Trial == engine.NumberAfter(n, 1) || n == engine.NumberAfter(o.Trial, 1) {
			l.test = other.test
		}
	}
	if l.test == nil {
		l.test = &test{client: c, met: make(chan struct{}), running: make(chan struct{}), over: make(chan struct{})}
	}
	t := l.test
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends++; l.down() {
		t.legs = append(t.legs, l)
	} else {
		t.legs = append([]*leg{l}, t.legs...)
	}
	c.legs[string(o.Key)] = l
	return l
}

// of finds the flow of a near end's order.
func (c *Client) of(o engine.Order) (*leg, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.legs[string(o.Key)]; l != nil {
		return l, nil
	}
	return nil, errors.New("no end stands for the iperf3 server")
}

// close is called by each end once. The last one ends the test: a server that is still in it is told.
func (l *leg) close() error {
	t := l.test
	t.client.mu.Lock()
	delete(t.client.legs, string(l.order.Key))
	t.client.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends--; t.ends > 0 || t.control == nil {
		return nil
	}
	if !t.told {
		_ = t.control.send(clientTerminate)
	}
	return t.control.close()
}

// last is the flow whose last stream is opened when the server is to send; nil if it only receives.
func (t *test) last() *leg {
	if l := t.legs[len(t.legs)-1]; l.down() {
		return l
	}
	return nil
}

// explain says which server an error is about.
func (t *test) explain(err error) error {
	return fmt.Errorf("the iperf3 server at %v: %w", t.client.server, err)
}

// meet opens the test and its streams, and tells the far ends.
func (t *test) meet(ctx context.Context) error {
	t.meeting.Do(func() {
		defer close(t.met)
		for try := 1; ; try++ {
			t.err = t.open(ctx)
			if t.err == nil || !errors.Is(t.err, errNoReply) || try == mostTries || ctx.Err() != nil {
				break
			}
		}
		if t.err != nil {
			t.err = t.explain(t.err)
		} else if t.last() == nil {
			close(t.running)
		}
	})
	return t.err
}

// open goes from the control connection to the moment when the server counts data. Of a test in which the server sends
// the last stream is left: see start.
func (t *test) open(ctx context.Context) error {
	k, err := t.enter(ctx)
	if err != nil {
		return err
	}
	started, err := t.openStreams(ctx, k)
	if err == nil && t.last() == nil && !started {
		err = k.expect(ctx, patience, testStart)
	}
	if err == nil && t.last() == nil {
		err = k.expect(ctx, patience, testRunning, testStart)
	}
	if err != nil {
		_ = k.send(clientTerminate)
		return errors.Join(err, k.close())
	}
	t.control = k
	return nil
}

// openStreams tells the server what is asked for, and opens the streams. started says that the server has begun.
func (t *test) openStreams(ctx context.Context, k *control) (started bool, err error) {
	if err := k.sendJSON(t.params()); err != nil {
		return false, err
	}
	switch err := k.expect(ctx, patience, createStreams); {
	case errors.Is(err, errClosed): // up to 3.19 it does not say why
		return false, errors.New("it refused the test without a reason: a rate limit, a login, or a size that it does not take")
	case err != nil:
		return false, err
	}
	for i, l := range t.legs {
		if i > 0 && !started { // a server that knows both waits for more streams
			select {
			case e := <-k.events:
				started = true
				if err := e.problem(testStart); err != nil {
					return false, err
				}
			case <-time.After(2*t.trip + settles):
			}
		}
		if started {
			return false, errors.New("it sends or receives, and not both at once, as iperf3 does before 3.7: " +
				"try --direction up or down")
		}
		if started, err = l.near.open(ctx, k); err != nil {
			return started, err
		}
	}
	return started, nil
}

// start has the server open the last stream, upon which it begins. It tries again until the server says that it has: one
// that only sends reads nothing from its streams. A server that has begun before is not asked.
func (t *test) start(ctx context.Context) error {
	l := t.last()
	again, late := time.NewTicker(lookEvery), time.NewTimer(replyWait)
	defer again.Stop()
	defer late.Stop()
	failed := l.openLast()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return cmp.Or(failed, errNoReply)
		case <-again.C:
			failed = l.openLast()
		case e, isOpen := <-t.control.events:
			if !isOpen {
				return errClosed
			}
			if err := e.problem(testStart, testRunning); err != nil || e.state == testRunning {
				return err
			}
		}
	}
}

// openLast has the server open the last stream.
func (l *leg) openLast() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		return net.ErrClosed
	}
	return l.held()
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
	k := newControl(conn.(*net.TCPConn))
	t.cookie = newCookie()
	asked := time.Now()
	_ = k.write(t.cookie[:]) // an error must not hide that the server is busy, which it says first
	if err := k.expect(ctx, patience, paramExchange); err != nil {
		return nil, errors.Join(err, k.close())
	}
	t.trip = time.Since(asked)
	return k, nil
}

// params are those of the test.
func (t *test) params() params {
	l := t.legs[0]
	f := l.order.Flow
	p := params{UDP: f.Protocol == model.UDP, TCP: f.Protocol == model.TCP, Time: int(math.Ceil(l.order.Timing.MeasureSeconds)),
		Parallel: f.Streams, Len: f.PayloadBytes, Both: len(t.legs) > 1, Reverse: len(t.legs) == 1 && l.down(),
		NoDelay: f.Protocol == model.TCP && !f.Bulk, TOS: f.DSCP << 2, Client: "pelt"}
	if sends := t.last(); sends != nil {
		p.Congestion = sends.order.Flow.Control
	}
	p.Window = f.ReceiveBuffer / 2 // the kernel counts twice what it is asked for
	if p.Reverse {
		p.Window = f.SendBuffer / 2
	}
	if pps, paced := f.Rate.PPS(f.PayloadBytes); paced {
		p.Bandwidth = int64(math.Ceil(pps * float64(8*f.PayloadBytes) / float64(f.Streams)))
	}
	return p
}

var errNoReply = errors.New("its TCP port answers, but no answer came over UDP: a firewall may drop UDP to that port")

// ask opens a stream. The request is never repeated once the server may have read it: it would take the second one for
// data. started says that the server has begun, as it does when only the last reply is lost.
func (t *test) ask(ctx context.Context, k *control, sockets *udp.Sockets, stream int) (started bool, err error) {
	if err := sockets.Tell(stream, request[:]); err != nil {
		return false, fmt.Errorf("a UDP packet could not be sent: %w", err)
	}
	for until, refused := time.Now().Add(replyWait), 0; ; {
		b, err := sockets.Hear(stream, lookEvery)
		switch {
		case err != nil && refused == mostRefused:
			return false, fmt.Errorf("UDP packets are refused there: %w", err)
		case err != nil:
			refused++
			engine.Sleep(ctx, time.Duration(refused)*5*time.Millisecond)
			_ = sockets.Tell(stream, request[:]) // its error is that of the one before
		case isReply(b):
			t.reply = [4]byte(b)
			return false, nil
		}
		select {
		case e := <-k.events:
			return true, e.problem(testStart)
		default:
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if time.Now().After(until) {
			return false, errNoReply
		}
	}
}

// finish ends the test and takes the server's results.
func (t *test) finish() error {
	defer close(t.over)
	k := t.control
	if err := k.send(testEnd); err != nil {
		return err
	}
	if err := k.expect(context.Background(), patience, exchangeResults, testStart, testRunning); err != nil {
		return err
	}
	own := t.own()
	if err := k.sendJSON(own); err != nil {
		return err
	}
	b, err := k.readJSON(mostResults)
	if err != nil {
		return err
	}
	r, err := readResults(b, len(own.Streams))
	if e := k.next(); e.err == nil && e.state == displayResults { // the results are here already
		_ = k.send(iperfDone)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = true
	if err == nil {
		t.results = r
	}
	return err
}

// own are this side's results.
func (t *test) own() results {
	r := results{HasRetransmits: -1}
	for _, l := range t.legs {
		r.Streams = append(r.Streams, l.own()...)
	}
	for i, id := range streamIDs(len(r.Streams)) {
		r.Streams[i].ID = id
	}
	return r
}

// own are this side's results of a flow. Of TCP with many streams this side may know the sum only, which is what iperf3
// prints last.
func (l *leg) own() []streamResult {
	none, seconds := count(0), l.order.Timing.MeasureSeconds
	list := make([]streamResult, l.order.Flow.Streams)
	l.test.mu.Lock()
	defer l.test.mu.Unlock()
	for i := range list {
		s := &list[i]
		switch {
		case i < len(l.sent):
			*s = l.sent[i]
		case l.counts != nil:
			l.counts.streams[i].tell(s)
		case l.down():
			s.Bytes = count(l.near.Count().Bytes) / count(len(list))
		}
		s.Retransmits, s.OmittedErrors, s.OmittedPackets, s.End = -1, &none, &none, &seconds
	}
	return list
}

// theirs are the server's results of the flow.
func (l *leg) theirs() []streamResult {
	all, n := l.test.results.Streams, l.order.Flow.Streams
	switch {
	case len(all) == 0:
		return nil
	case l == l.test.legs[0]:
		return all[:n]
	}
	return all[n:]
}

// counter counts what comes of each stream, for the server, which is told at the end of the test.
type counter struct {
	engine.Meter
	streams []streamCount
}

type streamCount struct{ packets, bytes, highest atomic.Int64 }

// Observe counts a batch, as engine.Meter does.
func (c *counter) Observe(stream int, batch []model.Arrival) {
	s := &c.streams[stream]
	for _, a := range batch {
		s.bytes.Add(int64(a.Bytes))
		s.highest.Store(max(s.highest.Load(), int64(a.Sequence)+1))
	}
	s.packets.Add(int64(len(batch)))
	c.Meter.Observe(stream, batch)
}

// tell says what came as iperf3 counts it: packets is the highest sequence.
func (s *streamCount) tell(r *streamResult) {
	r.Bytes, r.Packets = count(s.bytes.Load()), count(s.highest.Load())
	r.Errors = max(0, r.Packets-count(s.packets.Load()))
}

// program names the server's versions that report as it does. reply is what it answered to a request; 0: not known.
func (r results) program(reply [4]byte) string {
	switch s := r.Streams[0]; {
	case s.OmittedPackets != nil:
		return "iperf3 3.14 or newer"
	case s.End == nil:
		return "iperf3 3.1 or older"
	case reply == oldReply:
		return "iperf3 3.2 to 3.11"
	case reply != [4]byte{} && r.oldMinus:
		return "iperf3 3.12 or 3.13"
	}
	return "iperf3 3.2 to 3.13"
}

// report is the server's account of a flow over UDP. Of each stream, received is the smaller of two figures: all
// datagrams, which duplicates make too great, and the sequences less the gaps. Up to 3.1 the gaps count what came out of
// order, too.
func report(streams []streamResult, payload int, sent []uint64) (t model.Tally, p model.PeerReport) {
	for i, s := range streams {
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

// sentReport is the server's account of a flow that it sent, in such a time.
func (l *leg) sentReport(took time.Duration) *engine.SendReport {
	r, f := &engine.SendReport{DurationNanos: took.Nanoseconds()}, l.order.Flow
	if f.Protocol == model.TCP {
		r.TCP = &model.TCPFacts{Control: model.Clip(l.test.results.Congestion)}
		for _, s := range l.theirs() {
			r.TCP.SentBytes += uint64(s.Bytes)
			r.TCP.Retransmits += uint64(max(s.Retransmits, 0))
			r.Streams = append(r.Streams, 0) // it does not tell its segments
		}
		return r
	}
	for _, s := range l.theirs() {
		r.Streams = append(r.Streams, uint64(s.Packets))
		r.Attempted += uint64(s.Packets)
	}
	r.Planned, r.Accepted = r.Attempted, r.Attempted
	if schedule, paced := f.Rate.Schedule(f.PayloadBytes); paced {
		r.Planned = max(r.Planned, schedule.Count(min(took, l.order.Timing.Measure()).Nanoseconds()))
		r.Late = r.Planned - r.Attempted
	}
	return r
}
