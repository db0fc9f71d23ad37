package udp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"pelt/engine"
	"pelt/model"
)

// Config is what an engine needs from others.
type Config struct {
	// Listen is where listening ends are reached: no address is all of the host's, and port 0 any
	// free one. On Linux they share the port; elsewhere it is not used and every stream has its own.
	Listen netip.AddrPort
	// Workers send and receive for the streams, which share them; nil gives
	// each stream a thread of its own.
	Workers *Workers
	// Device is the interface, or the VRF, over which ends call their peers; "": routes choose. Of Linux only.
	Device string
	// ConsentClock replaces the host's monotonic clock where the age of consent is measured; nil in all but tests.
	ConsentClock func() int64
	// ConsentHeard is told when the newest answered check of a sender's stream was sent, by that clock; likewise.
	ConsentHeard func(stream int, since int64)
}

// Engine makes UDP ends on one host. It lives as long as the host's agent.
type Engine struct {
	config      Config
	clock       engine.Clock
	socketMaker socketMaker
	keepers     keepers
}

// New makes the engine. All its ends must be prepared with the same host.
func New(c Config) *Engine {
	e := &Engine{config: c, clock: engine.NewClock()}
	e.socketMaker = newSocketMaker(c.Listen)
	return e
}

func (e *Engine) Name() string { return "udp" }

func (e *Engine) Open(_ context.Context, host engine.Host, o engine.Order) (engine.Transport, error) {
	return e.SocketsFor(host, o, nil)
}

// Codec writes and reads the header of datagrams for a peer that speaks another protocol than pelt's.
type Codec interface {
	Put(b []byte, h engine.Header)
	Parse(b []byte) (h engine.Header, ok bool)
}

// SocketsFor opens the sockets of one end. With a codec the peer is no pelt, and no consent is asked for: in place of
// Connect the caller meets it by Tell and Hear, or by Take at an end that listens.
func (e *Engine) SocketsFor(host engine.Host, o engine.Order, codec Codec) (*Sockets, error) {
	if o.Flow.Protocol != model.UDP {
		return nil, engine.Refuse(model.EngineCarriesNot, "name", "udp", "protocol", o.Flow.Protocol)
	}
	s := &Sockets{
		engine: e, host: host, order: o, codec: codec, settings: settingsOf(o, e.clock, e.config.Device),
		tokens: make([]engine.ConsentToken, o.Flow.Streams),
		silent: make([]atomic.Bool, o.Flow.Streams), now: e.config.ConsentClock,
	}
	if s.now == nil {
		s.now = e.clock.Now
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	var err error
	switch {
	case !o.Listen:
		err = s.dial(host)
	case codec == nil:
		err = s.listen(host)
	default:
		s.sockets = make([]socket, o.Flow.Streams)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Sockets are those of one end of one flow, and carry its packets: an engine.Transport.
type Sockets struct {
	engine   *Engine
	host     engine.Host
	order    engine.Order
	settings settings
	stopped  context.Context // ended by stop, which ends Connect and Run
	stop     context.CancelFunc
	role     role  // from Settle on
	living   []int // streams that carry packets; from Settle on
	codec    Codec // of a peer that is no pelt; else nil
	pulse    pulse // of a probe flow

	consents  []*engine.ConsentListener // listening end
	listening listening                 // likewise
	follower  *follower                 // likewise
	last      []lastAnswer              // of each stream: of a receiver that calls
	ports     []uint16
	sockets   []socket              // of a listening end from Run on; nil of streams that carry nothing
	tokens    []engine.ConsentToken // of each stream's consent
	silent    []atomic.Bool         // of each stream: the receiver no longer consents
	now       func() int64          // the clock of the consent
}

// role is what an end does once there is consent.
type role interface {
	// run returns when the order is fulfilled or the end is stopped; see engine.Transport.
	run(reading func()) error
	count() engine.Snapshot
	account(r *engine.Report, sent engine.Sent)
}

func newRole(e *Sockets) role {
	switch {
	case e.order.Role == engine.Send:
		return newSender(e)
	case e.order.Role == engine.Receive:
		return newReceiver(e)
	case e.order.Survey && e.order.Role == engine.Probe:
		return &surveyor{end: e}
	case e.order.Role == engine.Probe:
		return newProber(e)
	default:
		return &echo{end: e}
	}
}

func (e *Sockets) dial(host engine.Host) (err error) {
	e.ports, e.sockets = make([]uint16, len(e.order.Ports)), make([]socket, len(e.order.Ports))
	for i := range e.sockets {
		peer := netip.AddrPortFrom(e.order.Peer.Unmap(), e.order.Ports[i])
		if e.sockets[i], err = e.dialApart(host, i, peer); err != nil {
			return openError(peer, err)
		}
		e.ports[i] = e.sockets[i].local().Port()
	}
	return nil
}

// openError says what to do where a route of this host refuses an address.
func openError(peer netip.AddrPort, err error) error {
	if call, ok := errors.AsType[*os.SyscallError](err); ok && call.Syscall == "connect" {
		for _, refused := range []error{syscall.EINVAL, syscall.EACCES, syscall.EHOSTUNREACH, syscall.ENETUNREACH} {
			if errors.Is(err, refused) {
				return &engine.Fault{Why: model.NewReason(model.RouteRefusesUDP, "peer", peer, "text", call.Err,
					"address", peer.Addr()), Cause: call.Err}
			}
		}
	}
	if errors.As(err, new(*engine.Refusal)) || errors.As(err, new(*engine.Fault)) {
		return err
	}
	return &engine.Fault{Why: model.NewReason(model.OpenFailed, "peer", peer, "text", err), Cause: err}
}

// dialApart opens a stream's socket, whose port is no other stream's: streams from several addresses may get one port,
// and what watches drops tells streams by ports. One that has such a port is held, so that it does not come again.
func (e *Sockets) dialApart(host engine.Host, i int, peer netip.AddrPort) (socket, error) {
	held, err := e.engine.socketMaker.dial(host, e.settings, i, peer)
	if err != nil || !slices.Contains(e.ports[:i], held.local().Port()) {
		return held, err
	}
	w, err := e.dialApart(host, i, peer)
	return w, errors.Join(err, held.close())
}

func (e *Sockets) listen(host engine.Host) (err error) {
	for i := range e.order.Flow.Streams {
		e.consents = append(e.consents, engine.NewConsentListener(e.order.StreamKey(i)))
	}
	e.follower = newFollower(e.order, e.settings.clock)
	if e.listening, err = e.engine.socketMaker.listen(host, e.settings, e.consents, e.follower); err == nil {
		e.ports = e.listening.ports()
	}
	return err
}

// OpenStreams opens the sockets of a listening end, whose peer has consented. Run does it, and
// whoever moves the packets past the sockets, before they come.
func (e *Sockets) OpenStreams() (err error) {
	if e.listening != nil {
		e.sockets, err = e.listening.open(e.living)
	}
	if e.follower != nil && err == nil {
		e.follower.follow(e.sockets)
	}
	return err
}

func (e *Sockets) Ports() []uint16 { return e.ports }

// OnMove has tell called each time a stream of a listening end is about to follow its peer to another address. It is
// called before Run.
func (e *Sockets) OnMove(tell func(stream int, to netip.AddrPort)) {
	if e.follower != nil {
		e.follower.tell = tell
	}
}

// Moves returns the streams that came from another address from some time on, and how many packets came from another
// address than their stream had at the time.
func (e *Sockets) Moves() ([]engine.Move, uint64) {
	if e.follower == nil {
		return nil, 0
	}
	return e.follower.report()
}

// Strays takes what came to the sockets of an end whose packets pass them by, some packets
// of each stream at most: it answers checks, and counts packets of the trial.
func (e *Sockets) Strays() (n uint64) {
	const some = 1 << 15 // what the buffer holds of small packets
	for _, i := range e.living {
		for range some {
			d, err := e.sockets[i].read(0)
			if err == nil && d.nanos == 0 {
				break
			}
			if h, ok := e.parse(d.head); ok && h.Trial == e.order.Trial {
				n++
			}
			e.answerCheck(i, d)
		}
	}
	return n
}

// parse reads the header of a datagram.
func (e *Sockets) parse(b []byte) (engine.Header, bool) {
	if e.codec != nil {
		return e.codec.Parse(b)
	}
	return engine.ParseHeader(b)
}

// Overflow counts what the sockets of the flow had no room for.
func (e *Sockets) Overflow() (n uint64) {
	for _, i := range e.living {
		m, _ := e.sockets[i].memory()
		n += uint64(m.dropped)
	}
	return n
}

// Count is safe for concurrent use.
func (e *Sockets) Count() engine.Snapshot { return e.role.count() }

func (e *Sockets) Run(reading func()) error {
	if err := e.OpenStreams(); err != nil {
		return fmt.Errorf("open the flow's sockets: %w", err)
	}
	return e.Consented(func() error { return e.role.run(reading) }, func(stream int) { e.silent[stream].Store(true) },
		true)
}

// eachOnThread runs f for each living stream on a thread of its own, and stops the end when one fails. It hands
// over the stream's index among them, and warnings.
func (e *Sockets) eachOnThread(f func(i int, warnings model.Reasons) error) error {
	errs := make([]error, len(e.living))
	var threads sync.WaitGroup
	for i := range errs {
		threads.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its timer slack and pinning
			var warnings model.Reasons
			if err := engine.OwnThread(e.order.Core(e.living[i])); err != nil {
				warnings = model.Reasons{{Code: model.ThreadPlain, Text: err.Error(),
					Numbers: map[string]float64{"stream": float64(i + 1)}}}
			}
			if errs[i] = f(i, warnings); errs[i] != nil {
				e.stop()
			}
		})
	}
	threads.Wait()
	return errors.Join(errs...)
}

func (e *Sockets) Stop() { e.stop() }

func (e *Sockets) Stopped() context.Context { return e.stopped }

// Living are the streams that carry packets, from Settle on.
func (e *Sockets) Living() []int { return e.living }

func (e *Sockets) Account(r *engine.Report, sent engine.Sent) {
	if len(e.sockets) > 0 && e.sockets[e.living[0]] != nil { // else it could not be opened
		r.PathMTU = e.sockets[e.living[0]].pathMTU()
	}
	e.role.account(r, sent)
}

// Close frees everything, the port last: who listens there next may share it with no socket of this end.
func (e *Sockets) Close() error {
	var errs []error
	if e.follower != nil {
		e.follower.close()
	}
	for _, w := range e.sockets {
		if w != nil {
			errs = append(errs, w.close())
		}
	}
	if e.listening != nil {
		errs = append(errs, e.listening.close())
	}
	return errors.Join(errs...)
}
