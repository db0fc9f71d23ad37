package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
	"pelt/model"
)

// AgentConfig is a host that obeys orders.
type AgentConfig struct {
	ID      string // unique on the hub: letters, digits, - and _; "" for a random one
	Node    string // name on the path
	Version string // of pelt
	Host    engine.Host
	Engines map[string]engine.Engine
	Limits  Limits
	// Facts describes the host; called for each introduction. May be nil.
	Facts func() model.Host
	// Watch begins a watch of the host for the measured part. May be nil.
	Watch engine.StartWatch
	// Observe begins the observation of a trial on this host. May be nil.
	Observe engine.Observe
	// Recording begins the record of one session; nil where nothing is recorded.
	Recording func() engine.Recording
	// Device makes the agent an observer: it watches the router that it runs on, for
	// one that commands it, and is no end of any flow. Host and Engines are nil then.
	Device OpenDevice
	// Log takes a line for the curious, formatted as by fmt. May be nil.
	Log func(format string, args ...any)

	events func(Event)
	// clientOf tells where a session's client connected from; nil for an agent
	// that serves its own process only. Strangers' orders are held tighter.
	clientOf func(session string) netip.AddrPort
	calls    []netip.Prefix // where strangers may make it call
}

// maxBusy bounds the orders an agent works on at a time; more are answered with an error.
const maxBusy = 128

// Agent obeys controllers: it keeps their sessions, runs the ends they order
// and gives up a session whose controller or peer has gone silent.
type Agent struct {
	cfg    AgentConfig
	link   *link // nil until it is on a hub
	busy   atomic.Int64
	orders sync.WaitGroup
	router *observer // nil unless it only observes

	mu       sync.Mutex
	sessions map[string]*session
	closed   string        // why no more sessions are taken
	left     bool          // no orders are taken either
	empty    chan struct{} // closed with the last session, once closed is set
	// direct hears this agent's beats if its controller is in this process.
	direct func(session string, b beat)
}

// NewAgent checks the configuration; it starts nothing.
func NewAgent(cfg AgentConfig) (*Agent, error) {
	if cfg.ID == "" {
		cfg.ID = randomHex()
	}
	if !agentName.MatchString(cfg.ID) || cfg.ID == controllerName {
		return nil, fmt.Errorf("agent name %q: want up to %d letters, digits, - and _", cfg.ID, maxAgentIDText)
	}
	if cfg.Device != nil {
		if cfg.Host != nil || len(cfg.Engines) > 0 {
			return nil, fmt.Errorf("agent %s: an observer has no engines", cfg.ID)
		}
	} else if cfg.Host == nil || len(cfg.Engines) == 0 {
		return nil, fmt.Errorf("agent %s: want a host and at least one engine", cfg.ID)
	}
	if cfg.Node == "" {
		cfg.Node = cfg.ID
	}
	if cfg.Log == nil {
		cfg.Log = func(string, ...any) {}
	}
	if cfg.events == nil {
		cfg.events = func(Event) {}
	}
	a := &Agent{cfg: cfg, sessions: map[string]*session{}}
	if cfg.Device != nil {
		a.router = newObserver(cfg)
	}
	return a, nil
}

// ID is the agent's name on its hub.
func (a *Agent) ID() string { return a.cfg.ID }

func (a *Agent) engineNames() []string { return slices.Sorted(maps.Keys(a.cfg.Engines)) }

func (a *Agent) info() AgentInfo {
	i := AgentInfo{ID: a.cfg.ID, Node: a.cfg.Node, Version: a.cfg.Version, Protocol: ProtocolVersion,
		Engines: a.engineNames(), Limits: a.cfg.Limits, Observer: a.router != nil}
	if a.cfg.Facts != nil {
		i.Host = a.cfg.Facts()
	}
	return i
}

// serve answers whoever the hub lets through.
func (a *Agent) serve(l *link) error {
	a.link = l
	prefix := "pelt.agent." + a.cfg.ID + "."
	if _, err := l.subscribe(helloSubject, func(m *nats.Msg) { a.respond(m, "hello") }); err != nil {
		return err
	}
	if _, err := l.subscribe(prefix+"*", func(m *nats.Msg) { a.respond(m, strings.TrimPrefix(m.Subject, prefix)) }); err != nil {
		return err
	}
	if err := l.nc.FlushTimeout(5 * time.Second); err != nil {
		return fmt.Errorf("joining the hub: %w", err)
	}
	a.orders.Go(func() {
		<-l.lost
		a.endSessions("the connection to the hub was lost")
		a.endWatches()
	})
	return nil
}

// respond works on a goroutine of its own, because orders may take long and
// stop must overtake them.
func (a *Agent) respond(m *nats.Msg, verb string) {
	if m.Reply == "" {
		return
	}
	if a.busy.Add(1) > maxBusy {
		a.busy.Add(-1)
		_ = m.Respond(encodeReply(nil, errors.New("the agent is busy with too many orders")))
		return
	}
	a.mu.Lock() // so that no order begins once shutdown waits for them
	if a.left {
		a.mu.Unlock()
		a.busy.Add(-1)
		return
	}
	a.orders.Add(1)
	a.mu.Unlock()
	go func() {
		defer a.orders.Done()
		defer a.busy.Add(-1)
		if err := m.Respond(a.answer(context.Background(), verb, m.Data)); err != nil {
			a.cfg.Log("answering %s: %v", verb, err)
		}
	}()
}

// answer obeys one order and returns the encoded reply, whatever the order
// holds. Controllers of this process call it directly.
func (a *Agent) answer(ctx context.Context, verb string, data []byte) []byte {
	body, err := a.obey(ctx, verb, data)
	if err != nil {
		a.cfg.Log("%s: %v", verb, err)
	}
	return encodeReply(body, err)
}

func (a *Agent) obey(ctx context.Context, verb string, data []byte) (any, error) {
	if most := longestOrder(verb); len(data) > most {
		return nil, fmt.Errorf("%s: an order of %d B; at most %d", verb[:min(len(verb), maxTextBytes)], len(data), most)
	}
	switch verb {
	case "hello":
		// Another version may say more in its hello, and must still learn ours.
		if checkProtocol(data, a.cfg.Version, "the controller") == nil {
			if _, err := decode[hello](data); err != nil {
				return nil, err
			}
		}
		return a.info(), nil
	case verbOpen:
		if err := checkProtocol(data, a.cfg.Version, "the controller"); err != nil {
			return nil, err
		}
	}
	if a.router != nil {
		if answer, known, err := a.router.obey(ctx, verb, data); known {
			return answer, err
		}
		return nil, refuse("this pelt serve only observes (--observe-only): it sends and receives nothing")
	}
	switch verb {
	case verbPrepare:
		if err := checkProtocol(data, a.cfg.Version, "the controller"); err != nil {
			return nil, err
		}
		return with(data, func(p prepareOrder) (any, error) { return a.prepare(ctx, p) })
	case verbConnect:
		return with(data, func(o sessionOrder) (any, error) {
			return a.in(o.Session, func(s *session) (any, error) { return s.connect(ctx) })
		})
	case verbRun:
		return with(data, func(o runOrder) (any, error) {
			return a.in(o.Session, func(s *session) (any, error) { return s.run(o) })
		})
	case verbSnapshot:
		return with(data, func(o snapshotOrder) (any, error) {
			return a.in(o.Session, func(s *session) (any, error) {
				return s.once(verb, data, func() (any, error) { return struct{}{}, s.snapshot(ctx, o) })
			})
		})
	case verbFinish:
		return with(data, func(o finishOrder) (any, error) {
			return a.in(o.Session, func(s *session) (any, error) {
				return s.once(verb, data, func() (any, error) { return s.finish(ctx, o.Attempted, o.Unsent) })
			})
		})
	case verbStop:
		return with(plain(data), func(o stopOrder) (any, error) {
			return a.in(o.Session, func(s *session) (any, error) {
				s.halt(o.Why[:min(len(o.Why), maxTextBytes)])
				return struct{}{}, nil
			})
		})
	case verbReport:
		return with(data, func(o reportOrder) (any, error) {
			return a.in(o.Session, func(s *session) (any, error) { return s.report(ctx, o) })
		})
	case verbRecord:
		return with(data, func(o recordOrder) (any, error) {
			return a.in(o.Session, func(s *session) (any, error) { return s.record(ctx, o) })
		})
	case verbRelease:
		return with(data, func(o sessionOrder) (any, error) {
			return a.in(o.Session, func(s *session) (any, error) { return struct{}{}, s.close("") })
		})
	}
	return nil, fmt.Errorf("unknown verb %q", verb[:min(len(verb), maxTextBytes)])
}

// with decodes the one kind of order that a verb takes.
func with[Q any](data []byte, f func(Q) (any, error)) (any, error) {
	q, err := decode[Q](data)
	if err != nil {
		return nil, err
	}
	return f(q)
}

func (a *Agent) find(id string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[id]
}

func (a *Agent) in(id string, f func(*session) (any, error)) (any, error) {
	s := a.find(id)
	if s == nil {
		return nil, errors.New("no such session here (any more)")
	}
	return f(s)
}

// prepare checks everything, then opens the ends; on error none stays open.
func (a *Agent) prepare(ctx context.Context, p prepareOrder) (any, error) {
	if err := a.checkPrepare(p); err != nil {
		a.refused(p, err)
		return nil, err
	}
	s, fresh, err := a.admit(p)
	if err != nil {
		a.refused(p, err)
		return nil, err
	}
	if fresh {
		a.cfg.events(Event{Kind: EventStarted, Session: s.id, Flows: flowsOf(p.Ends), Text: "trial started: " + flowText(p.Ends)})
	}
	ports, err := s.prepare(ctx, p.Ends)
	if err != nil {
		return nil, err
	}
	return prepareAnswer{Ports: ports}, nil
}

// admit finds or makes the session, with room for the new ends reserved in it.
func (a *Agent) admit(p prepareOrder) (s *session, fresh bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed != "" {
		return nil, false, errors.New(a.closed)
	}
	s = a.sessions[p.Session]
	from, err := a.sourceOf(p.Session, s)
	if err != nil {
		return nil, false, err
	}
	if s == nil {
		if n := a.cfg.Limits.MaxSessions; n > 0 && len(a.sessions) >= n {
			return nil, false, refuse("%d sessions run on this host, and it allows no more (--max-sessions there): try again later", n)
		}
		if len(a.sessions) >= maxSessions {
			return nil, false, refuse("%d sessions run on this host, the most it can: try again later", maxSessions)
		}
	}
	streams, seconds, reading, recording := 0, 0.0, readers(p.Ends), 0
	for _, other := range a.sessions {
		if other != s && other.records() {
			recording++
		}
		n, ends := other.size()
		reading += readers(other.orders())
		streams, seconds = streams+n, seconds+float64(ends)*other.first.Ends[0].Order.Timing.MeasureSeconds
	}
	for _, e := range p.Ends {
		streams, seconds = streams+e.Order.Flow.Streams, seconds+e.Order.Timing.MeasureSeconds
	}
	if seconds > maxAllSeconds {
		return nil, false, refuse("so many long trials at a time are too much for this host's memory: try again later, or ask for less time")
	}
	if reading > maxAllReaders {
		return nil, false, refuse("%d flows whose TCP is read over time are too many for this host's memory: at most %d over all sessions", reading, maxAllReaders)
	}
	if recording >= maxRecordings && recorded(p.Ends) {
		return nil, false, refuse("%d sessions are recorded on this host, and its memory allows no more: try again later", recording)
	}
	if streams > maxAllStreams {
		return nil, false, refuse("%d streams at a time are too many for this host: at most %d over all sessions", streams, maxAllStreams)
	}
	if err := a.checkTogether(p, from); err != nil {
		return nil, false, err
	}
	if s == nil {
		if s, err = openSession(a, p); err != nil {
			return nil, false, err
		}
		s.from = from
		a.sessions[p.Session] = s
		return s, true, nil
	}
	return s, false, s.reserve(p.Ends)
}

// sourceOf tells whose a session is, by the host that its client connected from. A new
// one of nobody who is connected is refused: it would count as another host's.
func (a *Agent) sourceOf(name string, s *session) (netip.Prefix, error) {
	if s != nil {
		return s.from, nil
	}
	if a.cfg.clientOf == nil {
		return netip.Prefix{}, nil
	}
	client := a.cfg.clientOf(name)
	if !client.IsValid() {
		return netip.Prefix{}, errors.New("session: is of no client that is connected here")
	}
	return sourceOf(client.Addr()), nil
}

// checkTogether holds the limits against all that one client's host has open,
// so that many sessions get no more than one. The caller holds the lock.
func (a *Agent) checkTogether(p prepareOrder, from netip.Prefix) error {
	if a.cfg.clientOf == nil {
		return nil
	}
	ends := slices.Clone(p.Ends)
	for _, s := range a.sessions {
		if s.from == from {
			ends = append(ends, s.orders()...)
		}
	}
	return a.cfg.Limits.check(ends)
}

func (a *Agent) refused(p prepareOrder, err error) {
	a.cfg.events(Event{Kind: EventRefused, Session: p.Session, Flows: flowsOf(p.Ends), Text: "refused: " + err.Error()})
}

func flowsOf(ends []endOrder) []model.Flow {
	var flows []model.Flow
	for _, e := range ends {
		if e.Order.Role == engine.Send || e.Order.Role == engine.Receive {
			flows = append(flows, e.Order.Flow)
		}
	}
	return flows
}

func (a *Agent) forget(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[s.id] == s {
		delete(a.sessions, s.id)
		if a.closed != "" && len(a.sessions) == 0 {
			close(a.empty)
		}
	}
}

// haltSessions stops all traffic and tells controllers why.
func (a *Agent) haltSessions(why string) []*session {
	a.mu.Lock()
	open := slices.Collect(maps.Values(a.sessions))
	a.mu.Unlock()
	for _, s := range open {
		s.halt(why)
	}
	return open
}

// endSessions stops and closes all sessions, at once.
func (a *Agent) endSessions(why string) {
	var wg sync.WaitGroup
	for _, s := range a.haltSessions(why) {
		wg.Go(func() { _ = s.close(why) }) // an end that does not close is in the log
	}
	wg.Wait()
}

// farewell is how long controllers may take to fetch the reports of sessions
// that end because the agent does.
const farewell = time.Second

// shutdown takes no more sessions, stops those there are, gives their
// controllers a moment to fetch the reports, and leaves the hub.
func (a *Agent) shutdown(why string) {
	a.mu.Lock()
	if a.closed != "" {
		a.mu.Unlock()
		return
	}
	a.closed, a.empty = why, make(chan struct{})
	waiting := len(a.sessions) > 0
	a.mu.Unlock()
	a.haltSessions(why)
	if waiting && a.link != nil {
		t := time.NewTimer(farewell)
		defer t.Stop()
		select {
		case <-a.empty:
		case <-t.C:
		case <-a.link.lost:
		}
	}
	a.mu.Lock()
	a.left = true
	a.mu.Unlock()
	a.endSessions(why)
	a.endWatches()
	if a.link != nil {
		a.link.close()
	}
	a.orders.Wait()
}
