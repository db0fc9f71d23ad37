// Package enginetest is the suite that every transport of package engine passes: see Run. A Trial also plays flows
// for the tests of what only one transport does. Only tests import this package.
package enginetest

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// Here is the machine that the test runs on.
type Here struct{}

// Do runs f on a thread of its own.
func (Here) Do(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f()
}

// Side is a host and its engine.
type Side struct {
	Host   engine.Host
	Engine engine.Engine
}

// Trial is one flow between two hosts.
type Trial struct {
	// Order is that of both ends: Role is what the dialing end does, Peer where the listening end is reached.
	engine.Order
	Near, Far   Side        // the dialing end is near
	BetweenThem func(*Pair) // called once both ends have consented
	During      func(*Pair) // called once both ends run
	// puts something between the ends: where the listener's streams are reached then
	Through func(ports []uint16) []uint16
	Taken   func() uint64 // packets that this took so far
	// packets that interfaces on the way dropped so far, which found no room in the next one's ring; may be nil
	Overflowed func() uint64
	// packets that these, and this machine's backlogs, dropped meanwhile: all programs and namespaces share the latter
	Backlog uint64
}

// New is a paced flow of a quarter of a second from near to far over loopback.
func New(protocol model.Protocol) Trial {
	return Trial{Order: engine.Order{
		Flow: model.Flow{Name: "up", Protocol: protocol, From: model.Sender, To: model.Receiver, PayloadBytes: 64,
			Rate: unit.PacketRate(2000), Streams: 1},
		Timing: model.Timing{WarmupSeconds: 0.05, MeasureSeconds: 0.25, DrainSeconds: 20},
		Role:   engine.Send, Peer: netip.MustParseAddr("127.0.0.1"),
		Trial: 5, Tag: 1, Key: bytes.Repeat([]byte{7}, engine.KeyBytes), CPU: -1, OneClock: true,
	}}
}

// Until has the trial last until something has happened: of a fixed time a machine that stands still may use nothing.
// It is for trials that are not prepared yet.
func (r *Trial) Until(done func(*Pair) bool) {
	r.Timing.MeasureSeconds = 600
	before := r.During
	r.During = func(p *Pair) {
		if before != nil {
			before(p)
		}
		testenv.Await(p.t, "the flow", func() bool {
			select {
			case <-p.Sender.Done(): // it failed
				return true
			default:
				return done(p)
			}
		})
		p.Sender.Stop()
	}
}

// End is one end of a flow and what carries its packets.
type End struct {
	*engine.End
	Transport engine.Transport
	Order     engine.Order
	Met       engine.Meeting // once it is connected
}

// opened is an engine that opens one end on a host whose interfaces are not watched.
type opened struct {
	engine.Engine
	host      engine.Host
	transport engine.Transport
}

func (o *opened) Open(ctx context.Context, _ engine.Host, order engine.Order) (t engine.Transport, err error) {
	o.transport, err = o.Engine.Open(ctx, o.host, order)
	return o.transport, err
}

// Open opens one end, which is closed with the test.
func Open(t testing.TB, s Side, o engine.Order) (*End, error) {
	carrier := &opened{Engine: s.Engine, host: s.Host}
	e := &End{End: engine.New(carrier, nil, o), Order: o}
	if err := e.End.Open(t.Context(), o.Ports); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.Transport = carrier.transport
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close the end that is to %s: %v", o.Role, err)
		}
	})
	return e, nil
}

// ErrUnmet is of an end some of whose streams have not met.
var ErrUnmet = errors.New("the peer was not found")

// Connect seeks the peer on all streams, and makes the end ready to carry packets over them.
func (e *End) Connect(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, testenv.Patience)
	defer cancel()
	if e.Met, err = e.End.Connect(ctx); err != nil {
		return err
	}
	living := make([]bool, len(e.Met.Streams))
	for i, s := range e.Met.Streams {
		if living[i] = s.Met; !s.Met {
			return ErrUnmet
		}
	}
	return e.Settle(living)
}

// Account is what the end reports once its traffic has ended.
func (e *End) Account() engine.Report {
	r, _ := e.Report()
	return r
}

// Wait returns how traffic ended.
func (e *End) Wait(t testing.TB) error {
	t.Helper()
	testenv.Receive(t, "the end of traffic", e.Done())
	_, err := e.Report()
	return err
}

// Pair is both ends of a flow.
type Pair struct {
	t                                  testing.TB
	trial                              *Trial
	Dialer, Listener, Sender, Receiver *End
}

// Prepare opens both ends.
func (r *Trial) Prepare(t testing.TB) *Pair {
	t.Helper()
	p, err := r.open(t)
	testenv.Must(t, err)
	return p
}

var otherRole = map[engine.Role]engine.Role{
	engine.Send: engine.Receive, engine.Receive: engine.Send, engine.Probe: engine.Echo,
}

func (r *Trial) open(t testing.TB) (p *Pair, err error) {
	p = &Pair{t: t, trial: r}
	o := r.Order
	o.Role, o.Listen, o.Peer = otherRole[r.Role], true, netip.Addr{}
	if o.CPU >= 0 {
		o.CPU++
	}
	if p.Listener, err = Open(t, r.Far, o); err != nil {
		return nil, err
	}
	o = r.Order
	if o.Ports = p.Listener.Ports(); r.Through != nil {
		o.Ports = r.Through(o.Ports)
	}
	if p.Dialer, err = Open(t, r.Near, o); err != nil {
		return nil, errors.Join(err, p.Listener.Close())
	}
	p.Sender, p.Receiver = p.Dialer, p.Listener
	if r.Role == engine.Receive {
		p.Sender, p.Receiver = p.Listener, p.Dialer
	}
	return p, nil
}

// Meet has both ends find each other on as many streams as can, and makes them ready to carry packets over these.
func (p *Pair) Meet() {
	p.t.Helper()
	calling, over := context.WithCancel(p.t.Context())
	var err error
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		p.Listener.Met, err = p.Listener.End.Connect(calling)
	}()
	var failed error
	p.Dialer.Met, failed = p.Dialer.End.Connect(p.t.Context())
	over()
	<-heard
	if err = errors.Join(err, failed); err != nil {
		p.t.Fatal(err)
	}
	living := make([]bool, len(p.Dialer.Met.Streams))
	for i, s := range p.Dialer.Met.Streams {
		living[i] = s.Met && p.Listener.Met.Streams[i].Met
	}
	testenv.Must(p.t, errors.Join(p.Listener.Settle(living), p.Dialer.Settle(living)))
}

// Connect connects ends at once.
func Connect(t testing.TB, ends ...*End) {
	t.Helper()
	testenv.Must(t, connect(t, ends...))
}

func connect(t testing.TB, ends ...*End) error {
	errs := make([]error, len(ends))
	var all sync.WaitGroup
	for i, e := range ends {
		all.Go(func() {
			if errs[i] = e.Connect(t.Context()); errs[i] != nil {
				for _, other := range ends { // which need not wait
					other.Stop()
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (p *Pair) Connect() *Pair {
	p.t.Helper()
	Connect(p.t, p.Listener, p.Dialer)
	return p
}

// Start starts both ends, receivers first.
func (p *Pair) Start() *Pair {
	p.t.Helper()
	for _, e := range []*End{p.Receiver, p.Sender} {
		testenv.Must(p.t, e.Start(p.t.Context()))
	}
	return p
}

func (p *Pair) Stop() {
	p.t.Helper()
	for _, e := range []*End{p.Sender, p.Receiver} {
		e.Stop()
		if err := e.Wait(p.t); err != nil {
			p.t.Errorf("%s: %v", e.Order.Role, err)
		}
	}
}

// Play plays the trial of ends that are connected, and returns both reports.
func (p *Pair) Play() (send, receive engine.Report) {
	p.t.Helper()
	send, receive, err := p.play()
	testenv.Must(p.t, err)
	return send, receive
}

func (p *Pair) play() (send, receive engine.Report, err error) {
	overflowed := func() uint64 {
		if p.trial.Overflowed == nil {
			return 0
		}
		return p.trial.Overflowed()
	}
	backlogs, rings := backlogDrops(), overflowed()
	p.Start()
	if p.trial.During != nil {
		p.trial.During(p)
	}
	<-p.Sender.Done()
	send, err = p.Sender.Report()
	if err != nil {
		return send, receive, err
	}
	sent := engine.Sent{Streams: send.Send.Streams}
	if p.trial.Flow.Protocol != model.TCP {
		sent.Unsent = send.Send.Attempted - send.Send.Accepted
	}
	if p.trial.Taken != nil {
		sent.Unsent += p.trial.Taken()
	}
	err = p.Receiver.Drain(p.t.Context(), sent)
	receive, failure := p.Receiver.Report()
	p.trial.Backlog = uint64(backlogDrops()-backlogs) + overflowed() - rings
	return send, receive, errors.Join(err, failure)
}

func (p *Pair) Close() {
	p.t.Helper()
	if err := errors.Join(p.Dialer.Close(), p.Listener.Close()); err != nil {
		p.t.Error(err)
	}
}

// Try plays the whole trial and returns the reports of sender and receiver.
func (r *Trial) Try(t testing.TB) (send, receive engine.Report, err error) {
	p, err := r.open(t)
	if err != nil {
		return send, receive, err
	}
	defer p.Close()
	if err := connect(t, p.Listener, p.Dialer); err != nil {
		return send, receive, err
	}
	if r.BetweenThem != nil {
		r.BetweenThem(p)
	}
	return p.play()
}

// Play is Try of a trial that must succeed.
func (r *Trial) Play(t testing.TB) (send, receive engine.Report) {
	t.Helper()
	send, receive, err := r.Try(t)
	testenv.Must(t, err)
	return send, receive
}
