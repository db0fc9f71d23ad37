package tcp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"pelt/engine"
	"pelt/engine/tcpinfo"
	"pelt/model"
)

// Config sets up an Engine.
type Config struct {
	// Listen is where listening ends are reached: no address is all of the host's, and port 0 any free one.
	Listen netip.AddrPort
	// Loaded refuses congestion controls that the kernel has not loaded: asked for by root, it loads
	// their modules, and whoever orders may be a stranger.
	Loaded bool
	// Device is the interface, or the VRF, over which ends call their peers; "": routes choose. Of Linux only.
	Device string
}

// Engine makes TCP ends on one host. It is safe for concurrent use.
type Engine struct {
	config Config

	held atomic.Int64 // connections that ends keep, or open to keep, all together

	mu       sync.Mutex
	listener *listener // nil while no end listens
}

// New returns an Engine. All its listening ends must be on the same host; they
// share one port, which is open while there is at least one of them.
func New(c Config) *Engine { return &Engine{config: c} }

func (*Engine) Name() string { return string(model.TCP) }

func (g *Engine) Open(ctx context.Context, host engine.Host, order engine.Order) (engine.Transport, error) {
	return g.OpenFor(ctx, host, order, nil)
}

// OpenFor opens an end that calls. greet is said on each connection to a peer that is no pelt, in place of the consent,
// and the peer ends the test itself; nil to a pelt.
func (g *Engine) OpenFor(ctx context.Context, host engine.Host, order engine.Order,
	greet func(stream int, conn net.Conn) error) (engine.Transport, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := g.try(host, order); err != nil {
		return nil, err
	}
	e := g.newEnd(host, order)
	e.greet, e.foreign = greet, greet != nil
	if order.Flow.Connections != "" && order.Role == engine.Send {
		e.opener = newOpener(e)
	}
	if !order.Listen {
		return e, nil
	}
	l, err := g.acquire(host)
	if err != nil {
		return nil, err
	}
	e.listener, e.release = l, func() error { return g.release(l) }
	e.refusedBefore, e.starvedBefore = l.refused.Load(), l.starved.Load()
	l.enter(e)
	return e, nil
}

// Sockets is the end of a flow whose peer is no pelt, and ends the test itself: its caller accepts the connections.
type Sockets struct{ *end }

// SocketsFor makes such an end of a host. Each stream is taken before Connect.
func (g *Engine) SocketsFor(host engine.Host, order engine.Order) (Sockets, error) {
	if err := g.try(host, order); err != nil {
		return Sockets{}, err
	}
	e := g.newEnd(host, order)
	e.foreign = true
	return Sockets{e}, nil
}

// try finds out whether the engine carries an order, and whether its options can be set on a host.
func (g *Engine) try(host engine.Host, order engine.Order) error {
	if err := check(order); err != nil {
		return err
	}
	return host.Do(func() error {
		if g.config.Loaded && order.Role == engine.Send {
			if err := loaded(order.Flow.Controls()); err != nil {
				return err
			}
		}
		return tryOptions(order)
	})
}

// Take makes an open connection a stream, which closes it. If it cannot, the caller does.
func (s Sockets) Take(stream int, conn *net.TCPConn) error {
	if s.take(stream, conn) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.failed, net.ErrClosed)
}

// Segments counts the data segments that came over a stream, of the measured part so far.
func (s Sockets) Segments(stream int) uint64 { return s.streams[stream].current()[tcpinfo.SegmentsIn] }

func (g *Engine) newEnd(host engine.Host, order engine.Order) *end {
	keeps := order.Flow.Connections == model.ConnectionKeep && order.Role == engine.Receive
	if keeps {
		order.Timing.WarmupSeconds = 0 // the sender lets it pass before the first one
	}
	e := &end{
		host: host, order: order, device: g.config.Device, clock: engine.NewClock(), held: &g.held,
		streams: make([]*stream, order.Flow.Streams),
		ready:   make(chan struct{}), first: make(chan struct{}),
		idle: make(chan struct{}), over: make(chan struct{}),
	}
	e.stopped, e.stop = context.WithCancel(context.Background())
	if keeps {
		e.most, e.why = mostOpen(g.held.Load())
	}
	steps := int((order.Timing.Measure() + engine.StepNanos - 1) / engine.StepNanos)
	e.stepSegments, e.stepBytes, e.stepTaken = make([]count, steps), make([]count, steps), make([]count, steps)
	if order.Role == engine.Send {
		e.message = make([]byte, order.Flow.PayloadBytes)
		engine.Fill(e.message)
	}
	return e
}

func (g *Engine) acquire(host engine.Host) (*listener, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == nil {
		l, err := listen(host, g.config.Listen)
		if err != nil {
			return nil, err
		}
		g.listener = l
	}
	g.listener.users++
	return g.listener, nil
}

func (g *Engine) release(l *listener) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.users--; l.users > 0 {
		return nil
	}
	g.listener = nil
	return l.close()
}

// check refuses what this engine, or this host, could never run.
func check(o engine.Order) error {
	switch f := o.Flow; {
	case f.Protocol != model.TCP:
		return engine.Refuse(model.EngineCarriesNot, "name", "tcp", "protocol", f.Protocol)
	case !o.Traffic():
		return engine.Refuse(model.EngineRole, "name", "tcp", "role", o.Role)
	case f.Connections != "" && (o.Role == engine.Send) == o.Listen:
		return engine.Refuse(model.CallerOpens)
	case f.Connections != "" && !opensConnections:
		return engine.Refuse(model.LinuxConnections)
	}
	return nil
}

var errStopped = errors.New("stopped")
