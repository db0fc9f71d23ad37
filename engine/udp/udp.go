package udp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"

	"pelt/engine"
	"pelt/model"
)

// Config is what an engine needs from others.
type Config struct {
	NewMeter     engine.NewMeter
	NewHistogram engine.NewHistogram
	// Port is the local port of listening ends, 0 for any. On Linux all of them
	// share it; elsewhere it is not used and every stream has its own.
	Port uint16
	// Crew's threads send and receive for the streams, which share them; nil gives
	// each stream a thread of its own.
	Crew *Crew
}

// Engine makes UDP ends on one host. It lives as long as the host's agent.
type Engine struct {
	config  Config
	clock   clock
	carrier carrier
}

// New makes the engine. All its ends must be prepared with the same host.
func New(c Config) *Engine {
	e := &Engine{config: c, clock: newClock()}
	e.carrier = newCarrier(c.Port)
	return e
}

// Name is udp.
func (e *Engine) Name() string { return "udp" }

// Close frees what the engine shares between its ends, which must be closed before.
func (e *Engine) Close() error { return e.carrier.close() }

// Prepare opens the sockets of one end; see engine.Engine.
func (e *Engine) Prepare(_ context.Context, host engine.Host, o engine.Order) (engine.End, error) {
	if why := checkOrder(o); why != "" {
		return nil, &engine.Refusal{Why: why}
	}
	bell, err := newBell()
	if err != nil {
		return nil, fmt.Errorf("prepare udp: %w", err)
	}
	n := streamsOf(o)
	end := &end{
		engine: e, order: o, settings: settingsOf(o, e.clock), bell: bell,
		wires: make([]wire, n), tokens: make([][macBytes]byte, n), early: make([]datagram, n), ran: make(chan struct{}),
	}
	end.role = newRole(end)
	if o.Listen {
		err = end.listen(host)
	} else {
		err = end.dial(host)
	}
	if err != nil {
		return nil, errors.Join(err, end.Close())
	}
	switch r := end.role.(type) {
	case *prober:
		return pulsing{end, &r.pulse}, nil
	case *echo:
		return pulsing{end, &r.pulse}, nil
	}
	return end, nil
}

// end is one end of one flow.
type end struct {
	engine   *Engine
	order    engine.Order
	settings settings
	bell     *bell // rung to end Run
	role     role

	desks      []*desk   // listening end
	lobby      io.Closer // listening end: stops the admission of callers
	ports      []uint16
	attend     sync.WaitGroup
	connecting sync.WaitGroup
	attended   chan struct{} // closed to end the attendants

	mu        sync.Mutex // guards what follows
	wires     []wire
	tokens    [][macBytes]byte // of each stream's consent
	early     []datagram       // listening end: what came first, before Run
	connected bool
	started   bool
	closed    bool
	stopped   bool
	ran       chan struct{} // closed when Run has ended
}

// role is what an end does once there is consent.
type role interface {
	// run returns when the order is fulfilled or the end's bell rings.
	run() error
	sample() (packets, bytes uint64)
	// heard counts what came from the peer; a sender does not listen.
	heard() uint64
	// fulfilled says whether a stop now cuts the order short.
	fulfilled() bool
	report(*engine.Report)
}

func newRole(e *end) role {
	switch {
	case e.order.Role == engine.Send:
		return newSender(e)
	case e.order.Role == engine.Receive:
		return newReceiver(e)
	case e.order.Survey && e.order.Role == engine.Probe:
		return &surveyor{end: e}
	case e.order.Survey:
		return &mirror{end: e}
	case e.order.Role == engine.Probe:
		return newProber(e)
	default:
		return &echo{end: e}
	}
}

func (e *end) dial(host engine.Host) error {
	e.ports = make([]uint16, len(e.wires))
	for i := range e.wires {
		peer := netip.AddrPortFrom(e.order.Peer.Unmap(), e.order.Ports[i])
		w, err := e.engine.carrier.dial(host, e.settings, i, peer)
		if err != nil {
			return fmt.Errorf("open udp to %v: %w", peer, err)
		}
		e.wires[i] = w
		if e.ports[i] = w.local().Port(); !slices.Contains(e.ports[:i], e.ports[i]) {
			continue
		}
		// Streams from several addresses may get one port; what watches drops tells streams by ports.
		if e.wires[i], err = e.redial(host, i, peer, w); err != nil {
			return fmt.Errorf("open udp to %v: %w", peer, err)
		}
		e.ports[i] = e.wires[i].local().Port()
	}
	return nil
}

// redial opens a stream's socket again until its port is no other stream's. The
// one before is held meanwhile, so that its port does not come again.
func (e *end) redial(host engine.Host, i int, peer netip.AddrPort, held wire) (wire, error) {
	w, err := e.engine.carrier.dial(host, e.settings, i, peer)
	if err == nil && slices.Contains(e.ports[:i], w.local().Port()) {
		w, err = e.redial(host, i, peer, w)
	}
	return w, errors.Join(err, held.close())
}

func (e *end) listen(host engine.Host) (err error) {
	e.attended = make(chan struct{})
	for i := range e.wires {
		e.desks = append(e.desks, newDesk(e.label(i)))
	}
	e.lobby, e.ports, err = e.engine.carrier.listen(host, e.settings, e.desks, e.admit)
	return err
}

func (e *end) label(stream int) label {
	return label{trial: e.order.Trial, tag: e.order.Tag, stream: uint8(stream), key: e.order.Key}
}

// Ports lists the local port of each stream.
func (e *end) Ports() []uint16 { return e.ports }

// Tuples lists the ports of each stream as this host sees them; see engine.Tupler.
func (e *end) Tuples() []model.Tuple {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.connected {
		return nil
	}
	tuples := make([]model.Tuple, len(e.wires))
	for i, w := range e.wires {
		near, far := w.local().Port(), w.remote().Port()
		if e.order.Role == engine.Send || e.order.Role == engine.Probe {
			tuples[i] = model.Tuple{From: near, To: far}
		} else {
			tuples[i] = model.Tuple{From: far, To: near}
		}
	}
	return tuples
}

// Addresses lists each stream's addresses; see engine.Socketed.
func (e *end) Addresses() []engine.Addresses {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.connected {
		return nil
	}
	list := make([]engine.Addresses, len(e.wires))
	for i, w := range e.wires {
		list[i] = engine.Addresses{Local: w.local(), Remote: w.remote()}
	}
	return list
}

// Strays counts the trial's packets in the sockets of an end that does not run;
// see engine.Socketed.
func (e *end) Strays() (n uint64) {
	e.endAttendance()
	for i, w := range e.wires {
		ours := func(d datagram) {
			if h, ok := engine.ParseHeader(d.head); ok && h.Trial == e.order.Trial {
				n++
			}
		}
		ours(e.early[i])
		in := w.inbox(e.bell)
		empty(in, func(got []datagram) {
			for _, d := range got {
				ours(d)
			}
		})
		if m, ok := in.memory(); ok {
			n += uint64(m.dropped)
		}
	}
	return n
}

// Sample returns packets and payload bytes of the measured part so far:
// attempted by a sender, distinct at a receiver.
func (e *end) Sample() (packets, bytes uint64) { return e.role.sample() }

// Reach is what a receiver knows to have been sent, 0 at others; see engine.Reacher.
func (e *end) Reach() uint64 {
	if r, ok := e.role.(*receiver); ok {
		return r.meter.Reach()
	}
	return 0
}

// Heard returns the datagrams of the flow so far; see engine.Hearer.
func (e *end) Heard() uint64 { return e.role.heard() }

// Run does the order; see engine.End.
func (e *end) Run(ctx context.Context) error {
	if err := e.start(); err != nil {
		return err
	}
	defer close(e.ran)
	cancel := context.AfterFunc(ctx, e.Stop)
	defer cancel()
	return e.role.run()
}

func (e *end) start() error {
	e.endAttendance()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return errors.New("run udp: the end is closed")
	case !e.connected:
		return errors.New("run udp: the peer has not consented")
	case e.started:
		return errors.New("run udp: the end ran already")
	}
	e.started = true
	return nil
}

// Reading is closed once a receiver reads every stream; nil at others. See engine.Reader.
func (e *end) Reading() <-chan struct{} {
	if r, ok := e.role.(*receiver); ok {
		return r.reading
	}
	return nil
}

// Finish ends a receiver once what is on its way has come; see engine.End.
func (e *end) Finish(ctx context.Context, attempted []uint64, unsent uint64) error {
	r, ok := e.role.(*receiver)
	if !ok {
		e.Stop()
		return nil
	}
	r.drain(ctx, attempted, unsent)
	e.bell.ring()
	e.mu.Lock()
	started := e.started
	e.mu.Unlock()
	if started {
		<-e.ran
	}
	return ctx.Err()
}

// Stop ends Run early.
func (e *end) Stop() {
	e.mu.Lock()
	if !e.bell.rang() && !e.role.fulfilled() {
		e.stopped = true
	}
	e.mu.Unlock()
	e.bell.ring()
}

// Report returns the account after Run has ended.
func (e *end) Report() engine.Report {
	r := engine.Report{Role: e.order.Role}
	e.mu.Lock()
	r.Stopped = e.stopped
	if w := e.wires[0]; w != nil && !e.closed {
		r.Local, r.PathMTU = w.local().String(), w.pathMTU()
	}
	e.mu.Unlock()
	e.role.report(&r)
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
	var errs []error
	if e.lobby != nil {
		errs = append(errs, e.lobby.Close()) // admits no one from here on
	}
	e.endAttendance()
	e.connecting.Wait()
	if started {
		<-e.ran
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.wires {
		if w != nil {
			errs = append(errs, w.close())
		}
	}
	e.bell.close()
	return errors.Join(errs...)
}
