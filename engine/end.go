package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pelt/model"
)

// Stream is one 5-tuple of a flow, as one of its two hosts sees it.
type Stream struct {
	Local  netip.AddrPort
	Remote netip.AddrPort // of a listening end: as it came, through any NAT
}

// Snapshot is how far an end has come.
type Snapshot struct {
	// Of the measured part: what a sender attempted, or what is distinct at a receiver.
	Packets, Bytes uint64 // Bytes of payload
	// Reach is how many packets a receiver knows to have been sent, by the highest
	// sequence of each stream; 0 where nobody can tell.
	Reach uint64
	// Heard counts what came from the peer, warm-up included. Only that it grows has a
	// meaning: the peer lives.
	Heard uint64
	// Silent counts streams that a sender ended, because the receiver no longer consented.
	Silent int
}

// Transport carries the packets of one end: through sockets, or as XDP frames. An End
// calls Connect, Settle, Run and Account once at most, in that order and never two at a time.
// The other methods may be called at any time and from any goroutine before Close.
type Transport interface {
	// Ports lists the local port of each stream, for the dialing peer; 0 where it is
	// not known yet.
	Ports() []uint16
	// Connect seeks the peer over the very 5-tuple of each stream. That no packet gets through is no error: the stream
	// has not met. A dialing end gives such streams up by itself; a listening one goes on until ctx ends. It fails
	// after Stop.
	Connect(ctx context.Context) (Meeting, error)
	// Settle tells the streams that carry packets: both ends have met on them. There is one at least.
	Settle(living []bool) error
	// Run returns when a sender's order is fulfilled, when all that a receiver waits
	// for has come, after Stop, or with the reason why traffic failed. A receiver
	// calls reading once it reads every stream.
	Run(reading func()) error
	// Stop ends Connect and Run soon. It is called once.
	Stop()
	// Count must not block.
	Count() Snapshot
	// Pulse sets the number that probe packets carry to the peer, and returns the
	// newest that came from there; 0: none, or no probe packets. peer tells that packets
	// of the peer's other flows come: a flood may leave no room for its probes.
	Pulse(mine uint64, peer bool) (theirs uint64)
	// Account adds to a report of Run. sent is what a receiver was told of its sender.
	Account(r *Report, sent Sent)
	// Close frees everything. Connect and Run have returned.
	Close() error
}

// Sent is what became of a flow at its sender.
type Sent struct {
	Streams []uint64 `json:"streams,omitempty"` // packets attempted by each stream; nil: not known
	Unsent  uint64   `json:"unsent,omitempty"`  // of all these, never left the sender
}

// Left returns how many packets left the sender.
func (s Sent) Left() (n uint64) {
	for _, k := range s.Streams {
		n += k
	}
	return n - min(s.Unsent, n)
}

// End is one end of one flow of one trial, a Part of it: Open, Connect, Settle, Start (receivers first), Drain on a
// receiver, Report, and Close at any time. Its methods may be called from any goroutine.
type End struct {
	order  Order
	engine Engine
	host   Host // whose interfaces are watched; nil: of none
	made   time.Time

	mu        sync.Mutex // guards what follows
	state     state
	transport Transport // nil before it is open
	met       Meeting
	closed    bool // by Close
	watch     *disturbances
	sent      Sent // as Drain told it
	cut       bool // the drain was over while packets still came
	report    Report
	failure   error

	opening  sync.WaitGroup  // Open, Connect and Settle
	stopping context.Context // ended by Stop
	stop     context.CancelFunc
	reading  chan struct{} // closed once a receiver or an echo reads every stream
	done     chan struct{} // closed in state ended
	called   *peerWait     // for the peer, of an end that listens; nil before
}

// peerWait is a listening end's for its peer.
type peerWait struct {
	end  context.CancelFunc // ends it
	over chan struct{}      // closed when it is over
	met  Meeting
	err  error
}

type state string

const (
	made       state = "not open"
	opening    state = "still being opened"
	prepared   state = "not connected"
	connecting state = "still connecting"
	connected  state = "connected"
	settling   state = "still making itself ready"
	settled    state = "ready"
	running    state = "running"
	ended      state = "over"
)

// New makes the end that carries out an order over an engine. Its caller must Close it.
func New(e Engine, h Host, o Order) *End {
	end := &End{order: o, engine: e, host: h, made: time.Now(), state: made,
		reading: make(chan struct{}), done: make(chan struct{})}
	end.stopping, end.stop = context.WithCancel(context.Background())
	return end
}

// Open opens the sockets. A listening end is ready for its peer when Open returns; ports are the peer's, of one that
// calls. Errors: *Refusal when the order can never run here, else what the system said.
func (e *End) Open(ctx context.Context, ports []uint16) error {
	if err := e.advance("open", made, opening); err != nil {
		return err
	}
	defer e.opening.Done()
	o := e.order
	if !o.Listen {
		if len(ports) != o.Flow.Streams || slices.Contains(ports, 0) {
			return fmt.Errorf("ports: want %d, one a stream, none 0", o.Flow.Streams)
		}
		o.Ports = ports
	}
	t, err := e.engine.Open(ctx, e.host, o)
	if err != nil {
		return err // and there is no second try
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state, e.transport = prepared, t
	if e.stopping.Err() != nil {
		t.Stop()
	}
	return nil
}

// advance changes the state, if it is the one before.
func (e *End) advance(what string, from, to state) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fmt.Errorf("%s: the end is closed", what)
	}
	if e.state != from {
		return fmt.Errorf("%s: the end is %s", what, e.state)
	}
	if e.state = to; to == opening || to == connecting || to == settling {
		e.opening.Add(1)
	}
	return nil
}

// Ports lists the local port of each stream, for the dialing peer; 0 where it is not known yet.
func (e *End) Ports() []uint16 { return e.transport.Ports() }

// Connect seeks the peer over the very 5-tuples of the flow, and tells what became of each. The time that ctx leaves is
// for streams on which something was heard.
func (e *End) Connect(ctx context.Context) (Meeting, error) {
	if err := e.advance("connect", prepared, connecting); err != nil {
		return Meeting{}, err
	}
	defer e.opening.Done()
	met, err := e.transport.Connect(ctx)
	if err != nil {
		return Meeting{}, err // and there is no second try
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state, e.met = connected, met
	return met, nil
}

// Settle makes the end ready to carry packets over the streams that both ends have met on, and over no others.
func (e *End) Settle(living []bool) error {
	if err := e.advance("settle", connected, settling); err != nil {
		return err
	}
	defer e.opening.Done()
	var streams []Stream
	for i, lives := range living {
		if lives {
			streams = append(streams, e.met.Streams[i].Stream)
		}
	}
	if err := e.transport.Settle(living); err != nil {
		return err
	}
	watch := watchHost(e.host, streams)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state, e.watch = settled, watch
	return nil
}

// Start begins to send or to receive. On a receiver and an echo it returns once every stream is read, or
// traffic has ended: what is sent before is lost. An error says that
// nothing began; why traffic failed is told by Report.
func (e *End) Start(ctx context.Context) error {
	if err := e.advance("start", settled, running); err != nil {
		return err
	}
	go e.run()
	if e.readsFirst() {
		select {
		case <-e.reading:
		case <-e.done:
		case <-ctx.Done():
		}
	}
	return nil
}

func (e *End) run() {
	e.watch.slept = asleep()
	err := e.transport.Run(func() { close(e.reading) })
	r := Report{Disturbed: e.watch.all()}
	e.mu.Lock()
	e.state = ended
	if e.cut {
		r.Warnings = append(r.Warnings, model.NewReason(model.DrainShort, "drain_s", e.order.Timing.Drain().Seconds()))
	}
	sent, cut := e.sent, e.cut
	e.mu.Unlock()
	e.transport.Account(&r, sent)
	if r.Receive != nil {
		r.Receive.StillCame = cut
	}
	e.mu.Lock()
	e.report, e.failure = r, err
	e.mu.Unlock()
	close(e.done)
}

// Done is closed once traffic has ended, or the end is closed.
func (e *End) Done() <-chan struct{} { return e.done }

// Snapshot tells how far the end has come.
func (e *End) Snapshot() Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.state != running && e.state != ended {
		return Snapshot{}
	}
	return e.transport.Count()
}

// Pulse exchanges counters with the peer in probe packets: mine is sent from now on, theirs is the newest that came.
// A flood may starve the control connection, and these counters still show that the peer lives.
func (e *End) Pulse(mine uint64, peer bool) (theirs uint64) {
	e.mu.Lock()
	t := e.transport
	e.mu.Unlock()
	if t == nil {
		return 0
	}
	return t.Pulse(mine, peer)
}

// Drain tells a receiver what its sender did. It ends the receiver when all that left has come,
// when nothing came for a while, or when the drain time or ctx is over, and returns then.
func (e *End) Drain(ctx context.Context, sent Sent) error {
	e.mu.Lock()
	if e.order.Role != Receive || e.closed || e.state != running && e.state != ended {
		e.mu.Unlock()
		return errors.New("drain: the end is no running receiver")
	}
	e.sent = sent
	e.mu.Unlock()
	cut := e.wait(ctx, sent.Left())
	e.mu.Lock()
	e.cut = cut
	e.mu.Unlock()
	e.Stop()
	<-e.done
	return ctx.Err()
}

// longestQuiet is the longest silence that ends a drain of packets.
const longestQuiet = time.Second

// wait returns when want packets have come, when nothing has come for a while, or when the drain time is
// over; cut says that packets still came then. TCP waits for the end of its streams, and its
// silences may be retransmission time-outs.
func (e *End) wait(ctx context.Context, want uint64) (cut bool) {
	drain := e.order.Timing.Drain()
	over := time.NewTimer(drain)
	defer over.Stop()
	tick := time.NewTicker(min(max(drain/100, 200*time.Microsecond), 2*time.Millisecond))
	defer tick.Stop()
	packets := e.order.Flow.Protocol != model.TCP
	now := e.Snapshot()
	quiet := e.order.Timing.Quiet()
	switch {
	case !packets:
		want, quiet = math.MaxUint64, drain/4
	case quiet == 0:
		quiet = min(drain/4, longestQuiet)
	}
	if n := now.Heard; packets && n > 0 { // large packets over a slow link come further apart
		quiet = max(quiet, min(3*time.Since(e.made)/time.Duration(min(n, math.MaxInt32)), drain))
	}
	first, last, since := now.Heard, now.Heard, time.Now()
	for ; now.Packets < want; now = e.Snapshot() {
		if at := time.Now(); now.Heard != last {
			last, since = now.Heard, at
		} else if at.Sub(since) >= quiet {
			return false
		}
		select {
		case <-tick.C:
		case <-over.C:
			return packets && last != first
		case <-ctx.Done():
			return false
		case <-e.done:
			return false
		}
	}
	return false
}

// Stop ends traffic early; what was measured stays in the report. An end that is started later stops at once.
func (e *End) Stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping.Err() != nil || e.closed {
		return
	}
	e.stop()
	if e.transport != nil {
		e.transport.Stop()
	}
	if e.called != nil {
		e.called.end()
	}
}

// Report returns the account of traffic that has ended, and the error that ended it. It is
// always the same, and empty of an end that was never started.
func (e *End) Report() (Report, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.report, e.failure
}

// Close stops traffic and frees everything. It may be called at any time and more than once.
func (e *End) Close() error {
	e.Stop()
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	started := e.state == running || e.state == ended
	e.mu.Unlock()
	e.opening.Wait()
	if started {
		<-e.done
	} else {
		close(e.done)
	}
	if e.transport == nil {
		return nil
	}
	return e.transport.Close()
}
