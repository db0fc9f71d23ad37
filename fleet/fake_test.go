package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
	"pelt/unit"
)

// TestMain lets more tests run at a time than there are cores: most of what
// they do is wait for the 3 s of liveness.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

type here struct{}

func (here) Do(f func() error) error { return f() }

// wire is the data path of a test: ends that share a key meet on it.
type wire struct {
	cut      atomic.Bool      // nothing gets through
	barred   map[string][]int // streams that never met, by flow
	opened   atomic.Int64
	closed   atomic.Int64
	prepared atomic.Int64

	mu      sync.Mutex
	pairs   map[string]*pair
	log     []event
	settled []string // by ends: "up send [true false]"
}

type event struct {
	at   time.Time
	what string // "run send", "stopped send", ...
	host string
}

type pair struct {
	ready     chan struct{} // closed when the dialer has connected
	once      sync.Once
	delivered atomic.Uint64
	pulse     [2]atomic.Uint64 // to the echo, to the prober
	probes    [2]atomic.Uint64 // likewise: packets
}

func newWire() *wire { return &wire{pairs: map[string]*pair{}} }

func (w *wire) note(host, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, event{time.Now(), what, host})
}

// events returns when something happened at a host.
func (w *wire) events(host, what string) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []time.Time
	for _, e := range w.log {
		if e.what == what && (host == "" || e.host == host) {
			out = append(out, e.at)
		}
	}
	return out
}

func (w *wire) pair(key []byte) *pair {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pairs[string(key)]
	if p == nil {
		p = &pair{ready: make(chan struct{})}
		w.pairs[string(key)] = p
	}
	return p
}

// delivered is how many packets have come on all pairs.
func (w *wire) delivered() (n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pairs {
		n += p.delivered.Load()
	}
	return n
}

// fakeEngine is one host's engine on a wire.
type fakeEngine struct {
	name, host string
	wire       *wire
	refuse     error           // of Prepare
	connectErr error           // of Connect
	runErr     error           // of a sender's Run, halfway
	ends       func() bool     // whether senders end once their time is over, or fail; nil: they do
	before     func()          // called first in Prepare
	closing    func()          // called first in Close
	hears      bool            // ends tell what has come
	reading    chan struct{}   // its receivers read once this is closed; nil: at once
	streams    []engine.Stream // of its ends; nil: without addresses
}

func (e *fakeEngine) Name() string { return e.name }

func (e *fakeEngine) Open(_ context.Context, host engine.Host, o engine.Order) (engine.Transport, error) {
	e.wire.prepared.Add(1)
	if e.before != nil {
		e.before()
	}
	if e.refuse != nil {
		return nil, e.refuse
	}
	e.wire.opened.Add(1)
	return &fakeEnd{engine: e, order: o, pair: e.wire.pair(o.Key),
		stop: make(chan struct{})}, host.Do(func() error { return nil })
}

type fakeEnd struct {
	engine    *fakeEngine
	order     engine.Order
	pair      *pair
	stop      chan struct{}
	attempted atomic.Uint64
}

func (f *fakeEnd) Ports() []uint16 {
	ports := make([]uint16, f.order.Flow.Streams)
	for i := range ports {
		ports[i] = 40000 + f.order.Tag%1000 + uint16(i)
	}
	return ports
}

func (f *fakeEnd) Connect(ctx context.Context) (m engine.Meeting, err error) {
	if f.engine.connectErr != nil {
		return m, f.engine.connectErr
	}
	m.Streams = make([]engine.MetStream, f.order.Flow.Streams)
	for i := range m.Streams {
		s := &m.Streams[i]
		if s.Met = !slices.Contains(f.engine.wire.barred[f.order.Flow.Name], i); f.engine.streams != nil {
			s.Stream = f.engine.streams[i]
		}
		if s.Sent = 2; !s.Met {
			s.Sent = 8
		}
	}
	all := !slices.ContainsFunc(m.Streams, func(s engine.MetStream) bool { return !s.Met })
	if !f.order.Listen {
		if all {
			f.pair.once.Do(func() { close(f.pair.ready) })
		}
		return m, nil
	}
	select {
	case <-f.pair.ready:
	case <-f.stop:
		return m, errors.New("stopped")
	case <-ctx.Done():
	}
	return m, nil
}

func (f *fakeEnd) Settle(living []bool) error {
	w := f.engine.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = append(w.settled, fmt.Sprintf("%s %s %v", f.order.Flow.Name, f.order.Role, living))
	return nil
}

func (f *fakeEnd) Run(reading func()) error {
	f.engine.wire.note(f.engine.host, "run "+string(f.order.Role))
	defer f.engine.wire.note(f.engine.host, "ended "+string(f.order.Role))
	if f.order.Survey && f.order.Role == engine.Probe {
		return nil
	}
	if f.order.Role != engine.Send {
		if f.engine.reading != nil {
			select {
			case <-f.engine.reading:
			case <-f.stop:
				return nil
			}
		}
		reading()
		probe := time.NewTicker(probeInterval)
		defer probe.Stop()
		for {
			select {
			case <-probe.C:
				if !f.engine.wire.cut.Load() {
					f.pair.probes[f.across()].Add(1)
				}
			case <-f.stop:
				return nil
			}
		}
	}
	every := time.Millisecond
	if pps, paced := f.order.Flow.Rate.PPS(f.order.Flow.PayloadBytes); paced {
		every = time.Duration(float64(time.Second) / pps)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	began := time.Now()
	for {
		select {
		case <-tick.C:
		case <-f.stop:
			return nil
		}
		on := time.Since(began)
		ends := f.engine.ends == nil || f.engine.ends()
		if ends && f.engine.runErr != nil && on > f.order.Timing.Measure()/2 { // also where it was held up until the end
			return f.engine.runErr
		}
		if ends && on >= f.order.Timing.Warmup()+f.order.Timing.Measure() {
			return nil
		}
		f.attempted.Add(1)
		if !f.engine.wire.cut.Load() {
			f.pair.delivered.Add(1)
		}
	}
}

func (f *fakeEnd) Count() (n engine.Snapshot) {
	n.Packets = f.attempted.Load()
	if f.order.Role == engine.Receive {
		n.Packets = f.pair.delivered.Load()
	}
	n.Bytes = n.Packets * uint64(f.order.Flow.PayloadBytes)
	if !f.engine.hears {
		return n
	}
	switch f.order.Role {
	case engine.Echo:
		n.Heard = f.pair.probes[0].Load()
	case engine.Probe:
		n.Heard = f.pair.probes[1].Load()
	case engine.Receive:
		n.Heard = f.pair.delivered.Load()
	}
	return n
}

func (f *fakeEnd) Stop() { close(f.stop) }

func (f *fakeEnd) Account(r *engine.Report, sent engine.Sent) {
	switch f.order.Role {
	case engine.Send:
		n := f.attempted.Load()
		r.Send = &engine.SendReport{Attempted: n + 3, Accepted: n, Streams: make([]uint64, f.order.Flow.Streams)}
		r.Send.Streams[0] = n + 3 // three never left
	case engine.Receive:
		r.Receive = &engine.ReceiveReport{Tally: model.Tally{Received: f.pair.delivered.Load(), Late: sent.Left()}}
	case engine.Probe:
		r.Probe = &engine.ProbeReport{RoundTrip: &model.Percentiles{}}
		if f.order.Survey {
			r.Probe = &engine.ProbeReport{Out: &model.PathMTU{Bytes: 1400}, Back: &model.PathMTU{Bytes: 1500}}
		}
	}
}

func (f *fakeEnd) Close() error {
	if f.engine.closing != nil {
		f.engine.closing()
	}
	f.engine.wire.closed.Add(1)
	f.engine.wire.note(f.engine.host, "closed "+string(f.order.Role))
	return nil
}

func (f *fakeEnd) Pulse(mine uint64, _ bool) uint64 {
	if f.order.Traffic() {
		return 0
	}
	if !f.engine.wire.cut.Load() {
		f.pair.pulse[f.across()].Store(mine)
	}
	return f.pair.pulse[1-f.across()].Load()
}

// across is whom this end's probes go to: 0 is the echo.
func (f *fakeEnd) across() int {
	if f.order.Role == engine.Echo {
		return 1
	}
	return 0
}

// agentOn describes an agent with fake engines on a wire.
func agentOn(w *wire, id string) AgentConfig {
	return AgentConfig{ID: id, Node: id, Version: "1.0", Host: here{}, Engines: map[string]engine.Engine{
		"udp": &fakeEngine{name: "udp", host: id, wire: w},
	}}
}

// upTrial sends from one agent to the other, who listens.
func upTrial(from, to string, measure time.Duration) Trial {
	rate, err := unit.ParseRate("1kpps")
	if err != nil {
		panic(err)
	}
	return Trial{Number: 7, Timing: model.Timing{MeasureSeconds: measure.Seconds(), DrainSeconds: 0.2},
		Flows: []PlacedFlow{{
			Flow: model.Flow{Name: "up", Protocol: model.UDP, From: "sender", To: "receiver", PayloadBytes: 64,
				Rate: rate, Streams: 1},
			Send: Choice{Engine: "udp"}, Receive: Choice{Engine: "udp"}, From: from, To: to, Dialer: from, Listen: netip.MustParseAddr("127.0.0.1"), CPU: -1,
		}}}
}

// onceMeasured has f called when the measured part begins.
func (t *Trial) onceMeasured(f func()) {
	t.Along = append(t.Along, &begins{timing: t.Timing, f: f})
}

type begins struct {
	engine.Passive
	timing model.Timing
	f      func()
}

func (b *begins) Do(ctx context.Context, s engine.Step, k engine.Known) (l engine.Learned, _ error) {
	if s == engine.Go && engine.Sleep(ctx, k.Gate+b.timing.Lead()+b.timing.Warmup()) {
		b.f()
	}
	return l, nil
}

func bothTrial(near, far string, measure time.Duration) Trial {
	t := upTrial(near, far, measure)
	down := t.Flows[0]
	down.Flow.Name, down.Flow.From, down.Flow.To = "down", "receiver", "sender"
	down.From, down.To = far, near
	t.Flows = append(t.Flows, down)
	t.Probe = true
	return t
}

const testCode = "tiger-42-amber"

// heldUp measures how long this process was kept from running at worst, so
// that a busy machine does not fail tests of time limits.
func heldUp(t *testing.T) func() time.Duration {
	t.Helper()
	var worst atomic.Int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		const step = 20 * time.Millisecond
		tick := time.NewTicker(step)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			now := time.Now()
			worst.Store(max(worst.Load(), int64(now.Sub(last)-step)))
			last = now
		}
	})
	t.Cleanup(func() { close(done); wg.Wait() })
	return func() time.Duration { return time.Duration(worst.Load()) }
}

// served is a Serve with one agent, and what it says.
type served struct {
	addr   netip.AddrPort
	mu     sync.Mutex
	events []string
	stop   func() // ends Serve and waits
}

func (s *served) count(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.events {
		if strings.HasPrefix(e, prefix) {
			n++
		}
	}
	return n
}

func (s *served) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.events, "\n")
}

var addresses atomic.Uint32

// ownAddress is one of loopback that no other server of the tests has. Clients of a server that ends and starts again
// must not find another test's at its port meanwhile.
func ownAddress() netip.AddrPort {
	n := addresses.Add(1)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)}), 0)
}

func serve(t *testing.T, w *wire, change func(*ServeConfig)) *served {
	t.Helper()
	s := &served{}
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan netip.AddrPort, 1)
	cfg := ServeConfig{Agent: agentOn(w, "far"), Ready: func(at netip.AddrPort) { ready <- at }}
	cfg.Listen, cfg.Code = netip.MustParseAddrPort("127.0.0.1:0"), testCode
	cfg.Events = func(said error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, said.Error())
	}
	if change != nil {
		change(&cfg)
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, cfg) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(s.stop)
	select {
	case s.addr = <-ready:
	case err := <-ended:
		t.Fatalf("Serve: %v", err)
	}
	return s
}

// dial commands an agent of this process and the one that is served at an address.
func dial(t *testing.T, addr netip.AddrPort, cfg AgentConfig) *Controller {
	t.Helper()
	c, err := dialWith(t, addr, testCode, cfg)
	if err != nil {
		t.Fatalf("NewController: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func dialWith(t *testing.T, addr netip.AddrPort, code string, cfg AgentConfig) (*Controller, error) {
	t.Helper()
	return NewController(t.Context(), "1.0", HubAddress{Local: hubWith(t, cfg)}, HubAddress{Addr: addr, Code: code})
}

// hubWith is a hub that does not listen, and its agents.
func hubWith(t testing.TB, agents ...AgentConfig) *Hub {
	t.Helper()
	h, err := StartHub(HubConfig{DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	for _, a := range agents {
		if _, err := h.Join(a); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// said is why a trial was cut, in English; "" if it was not.
func said(why model.Reason) string {
	if why.Code == "" {
		return ""
	}
	return finding.Clause(why)
}
