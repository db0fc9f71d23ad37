package xdp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/model"
)

// plane moves a flow's packets past the sockets.
type plane interface {
	// ready says why the packets must take the sockets after all, "" if they
	// need not. It is asked once, when the other end is armed.
	ready() (why string, err error)
	// run returns when the order is fulfilled or quit is closed.
	run(quit <-chan struct{}) error
	sample() (packets uint64)
	heard() uint64
	// report is asked after run.
	report(*engine.Report)
	// mode is how the packets are moved, in words.
	mode() string
	close() error
}

// end is one end of one flow: the sockets' end, and a plane unless the sockets
// carry the flow, too.
type end struct {
	engine  *Engine
	host    engine.Host
	order   engine.Order
	sockets engine.End
	made    time.Time

	mu       sync.Mutex   // guards what follows
	why      string       // the sockets carry the flow
	plane    plane        // nil: not yet, or never
	release  func() error // of an interface that was made ready for the peer's frames; nil: none was
	started  bool
	finished bool
	stopped  bool
	closed   bool
	account  *engine.Report // once it is closed
	told     []uint64       // what each stream of the sender attempted
	cut      bool           // the drain was over while packets still came

	once sync.Once
	quit chan struct{}
	ran  chan struct{} // closed when Run has ended
}

// Ports lists the local port of each stream.
func (e *end) Ports() []uint16 { return e.sockets.Ports() }

// Tuples lists the ports of each stream as this host sees them; see engine.Tupler.
func (e *end) Tuples() []model.Tuple {
	if t, ok := e.sockets.(engine.Tupler); ok {
		return t.Tuples()
	}
	return nil
}

// Connect gets consent over the sockets and puts the programs in place.
func (e *end) Connect(ctx context.Context) error {
	if err := e.sockets.Connect(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errors.New("connect xdp: the end is closed")
	}
	switch {
	case e.order.Role == engine.Receive && slices.Contains([]string{socketsAsked, bufferAsked, joinedAsked, recordAsked}, e.why):
		return e.makeReady() // the peer may well send frames
	case e.why != "":
		return nil
	}
	p, why, err := e.open()
	if why != "" {
		return e.giveUp(why)
	}
	e.plane = p
	return err
}

// giveUp leaves the flow to the sockets where that is allowed.
func (e *end) giveUp(why string) error {
	e.why, e.plane = why, nil
	if !e.order.Fallback {
		return &engine.Refusal{Why: "xdp: " + why}
	}
	return nil
}

// Run does the order; see engine.End.
func (e *end) Run(ctx context.Context) error {
	e.mu.Lock()
	p := e.plane
	switch {
	case e.closed:
		e.mu.Unlock()
		return errors.New("run xdp: the end is closed")
	case e.started:
		e.mu.Unlock()
		return errors.New("run xdp: the end ran already")
	case p == nil && e.why == "":
		e.mu.Unlock()
		return errors.New("run xdp: the peer has not consented")
	}
	if p != nil {
		why, err := p.ready()
		if err == nil && why != "" {
			err = errors.Join(e.giveUp(why), p.close())
			p = nil
		}
		if err != nil {
			e.mu.Unlock()
			return err
		}
	}
	e.started = true
	e.mu.Unlock()
	defer close(e.ran)
	if p == nil {
		select {
		case <-e.quit: // by a Stop that knew of a plane
			e.sockets.Stop()
		default:
		}
		return e.sockets.Run(ctx)
	}
	release := context.AfterFunc(ctx, e.Stop)
	defer release()
	err := p.run(e.quit)
	e.mu.Lock()
	e.finished = true
	e.mu.Unlock()
	return err
}

// Sample returns packets and payload bytes of the measured part so far.
func (e *end) Sample() (packets, bytes uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return 0, 0
	case e.plane == nil:
		return e.sockets.Sample()
	}
	n := e.plane.sample()
	return n, n * uint64(e.order.Flow.PayloadBytes)
}

// Reach is what a receiver knows to have been sent, 0 at others; see engine.Reacher.
func (e *end) Reach() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.plane != nil {
		if r, ok := e.plane.(engine.Reacher); ok && !e.closed {
			return r.Reach()
		}
		return 0
	}
	if r, ok := e.sockets.(engine.Reacher); ok && !e.closed {
		return r.Reach()
	}
	return 0
}

// Reading is closed once a receiver takes every stream's packets; see engine.Reader.
// A plane's program takes them from Connect on: nil.
func (e *end) Reading() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r, ok := e.sockets.(engine.Reader); ok && e.plane == nil {
		return r.Reading()
	}
	return nil
}

// Heard counts what came from the peer; see engine.Hearer.
func (e *end) Heard() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.plane != nil && !e.closed {
		return e.plane.heard()
	}
	if h, ok := e.sockets.(engine.Hearer); ok {
		return h.Heard()
	}
	return 0
}

// Finish ends a receiver once what is on its way has come; see engine.End.
func (e *end) Finish(ctx context.Context, attempted []uint64, unsent uint64) error {
	e.mu.Lock()
	bySockets, started := e.plane == nil, e.started
	e.told = append([]uint64{}, attempted...)
	e.mu.Unlock()
	switch {
	case bySockets:
		return e.sockets.Finish(ctx, attempted, unsent)
	case e.order.Role != engine.Receive:
		e.Stop()
		return nil
	}
	received := func() uint64 { n, _ := e.Sample(); return n }
	cut := engine.Drain{Time: e.order.Timing.Drain(), Quiet: e.order.Timing.Quiet(), Want: engine.Left(attempted, unsent), Age: time.Since(e.made), Heard: e.Heard, Received: received, Quit: e.quit}.Wait(ctx)
	e.mu.Lock()
	e.cut = cut
	e.mu.Unlock()
	e.ring()
	if started {
		<-e.ran
	}
	return ctx.Err()
}

func (e *end) ring() { e.once.Do(func() { close(e.quit) }) }

// Stop ends Run early.
func (e *end) Stop() {
	e.mu.Lock()
	select {
	case <-e.quit:
	default:
		e.stopped = e.stopped || !e.finished
	}
	p := e.plane
	e.mu.Unlock()
	e.ring()
	if p == nil {
		e.sockets.Stop()
	}
}

// Report returns the account after Run has ended.
func (e *end) Report() engine.Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := engine.Report{Role: e.order.Role, Stopped: e.stopped}
	if e.plane == nil {
		r = e.sockets.Report()
		r.Engine, r.Why = e.engine.config.Sockets.Name(), e.why
		return r
	}
	if e.account != nil {
		return *e.account
	}
	r.Engine, r.Why = e.engine.Name(), e.plane.mode()
	if s, ok := e.sockets.(engine.Socketed); ok && len(s.Addresses()) > 0 {
		r.Local = s.Addresses()[0].Local.String()
	}
	e.plane.report(&r)
	if e.finished { // it closes accounts, which it may do once
		e.account = &r
	}
	return r
}

// Close frees everything.
func (e *end) Close() error {
	e.Stop()
	e.mu.Lock()
	started, closed := e.started, e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	if started {
		<-e.ran
	}
	var errs []error
	e.mu.Lock()
	if e.plane != nil {
		errs = append(errs, e.plane.close())
	}
	if e.release != nil {
		errs = append(errs, e.release())
	}
	e.mu.Unlock()
	return errors.Join(append(errs, e.sockets.Close())...)
}
