package tcp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/model"
)

// Config sets up an Engine.
type Config struct {
	Port uint16 // of the listening ends; 0 lets the system choose
	// NewHistogram makes the distribution of a flow of connections' set-up times;
	// without it there is none.
	NewHistogram engine.NewHistogram
}

// Engine makes TCP ends on one host. It is safe for concurrent use.
type Engine struct {
	config Config

	mu       sync.Mutex
	listener *listener // nil while no end listens
}

// New returns an Engine. All its listening ends must be on the same host; they
// share one port, which is open while there is at least one of them.
func New(c Config) *Engine { return &Engine{config: c} }

// Name is tcp.
func (*Engine) Name() string { return string(model.TCP) }

// Prepare opens one end. See engine.Engine.
func (g *Engine) Prepare(ctx context.Context, host engine.Host, order engine.Order) (engine.End, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("prepare tcp: %w", err)
	}
	if err := check(order); err != nil {
		return nil, err
	}
	if err := host.Do(func() error { return tryOptions(order) }); err != nil {
		return nil, fmt.Errorf("prepare tcp: %w", err)
	}
	e := newEnd(host, order)
	if order.Flow.Connections != "" && order.Role == engine.Send {
		e.opening = newOpening(e, g.config.NewHistogram)
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

func newEnd(host engine.Host, order engine.Order) *end {
	if order.Flow.Connections == model.ConnectionKeep && order.Role == engine.Receive {
		order.Timing.WarmupSeconds = 0 // the sender lets it pass before the first one
	}
	e := &end{
		host: host, order: order, clock: newClock(),
		streams: make([]*stream, order.Flow.Streams),
		ready:   make(chan struct{}), quit: make(chan struct{}), first: make(chan struct{}),
		idle: make(chan struct{}), over: make(chan struct{}),
	}
	if order.Flow.Connections == model.ConnectionKeep && order.Role == engine.Receive {
		e.most, e.why = mostOpen()
	}
	steps := int((order.Timing.Measure() + engine.StepNanos - 1) / engine.StepNanos)
	e.stepSegments, e.stepBytes, e.stepTickets = make([]count, steps), make([]count, steps), make([]count, steps)
	if order.Role == engine.Send {
		// Random bytes, so that no link on the way can compress them.
		e.message = make([]byte, order.Flow.PayloadBytes)
		fill := rand.NewChaCha8([32]byte(order.Key))
		fill.Read(e.message)
	}
	return e
}

func (g *Engine) acquire(host engine.Host) (*listener, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == nil {
		l, err := listen(host, g.config.Port)
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

// check refuses what no host could run; orders come from other machines.
func check(o engine.Order) error {
	refuse := func(format string, args ...any) error {
		return &engine.Refusal{Why: "the tcp engine " + fmt.Sprintf(format, args...)}
	}
	f, t := o.Flow, o.Timing
	within := func(s float64, most time.Duration) bool { return s >= 0 && s <= most.Seconds() }
	switch {
	case f.Protocol != model.TCP:
		return refuse("carries no %s", f.Protocol)
	case o.Role != engine.Send && o.Role != engine.Receive:
		return refuse("has no role %q", o.Role)
	case f.Streams < 1 || f.Streams > model.MaxStreams:
		return refuse("carries 1 to %d streams, not %d", model.MaxStreams, f.Streams)
	case f.PayloadBytes < 1 || f.PayloadBytes > model.MaxTCPWrite:
		return refuse("writes 1 to %d B at a time, not %d", model.MaxTCPWrite, f.PayloadBytes)
	case len(o.Key) != keyBytes:
		return refuse("wants a key of %d B, not %d", keyBytes, len(o.Key))
	case !within(t.WarmupSeconds, model.MaxWarmup), !within(t.MeasureSeconds, model.MaxMeasure), !within(t.DrainSeconds, model.MaxDrain), t.Measure() <= 0:
		return refuse("cannot keep the timing %+v", t)
	case f.DSCP < 0 || f.DSCP > 63:
		return refuse("sets DSCP 0 to 63, not %d", f.DSCP)
	case f.SourcePort < 0 || f.SourcePort+f.Streams-1 > model.MaxSourcePort:
		return refuse("cannot use %d ports from %d", f.Streams, f.SourcePort)
	case f.Burst < 0 || f.Burst > model.MaxBurst:
		return refuse("cannot send bursts of %d", f.Burst)
	case f.Connections != "" && f.Connections != model.ConnectionRate && f.Connections != model.ConnectionKeep:
		return refuse("knows no connections %q", f.Connections)
	case f.Connections != "" && (o.Role == engine.Send) == o.Listen:
		return refuse("opens connections from the end that calls only; want a flow from there")
	case f.Connections != "" && !opensConnections:
		return refuse("opens many connections on Linux only")
	case !o.Listen && !o.Peer.IsValid():
		return refuse("cannot dial without the peer's address")
	case !o.Listen && slices.ContainsFunc(f.SourceAddresses, func(a netip.Addr) bool { return a.Is4() != o.Peer.Unmap().Is4() }):
		return refuse("cannot call a peer of one IP version from an address of the other")
	case !o.Listen && len(o.Ports) != f.Streams:
		return refuse("wants the peer's port of each of %d streams, not %d ports", f.Streams, len(o.Ports))
	}
	return nil
}

var _ engine.Engine = (*Engine)(nil)

var errStopped = errors.New("stopped")
