package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
	"pelt/words"
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
	// Watch makes what watches this host during a trial: its kernel, its processors. May be nil.
	Watch func(engine.WatchOrder) []engine.Part
	// Recording begins the record of one session; nil where nothing is recorded.
	Recording func() engine.Recording
	// Router makes the agent a watcher, which is no end of any flow: it begins to watch the
	// router that this process runs on; its ctx bounds the opening only. Host and Engines
	// are nil then.
	Router func(ctx context.Context) (Router, error)

	// Calls are the addresses that clients of other hosts may make this host call: it can be the sender's side of a
	// path whose far end is one of them. None: a host of a fleet calls all but its own addresses and those of its
	// links, and a host that serves calls nobody.
	Calls []netip.Prefix
	// Address is where the hosts of a fleet call this one, if its owner says so; else what the hub sees decides.
	Address netip.Addr

	// Events, if set, is told what a joined agent does, from any goroutine.
	Events func(said error)

	events func(session string, said error)
	// clientOf tells where a session's client connected from; nil for an agent
	// that serves its own process only. Strangers' orders are held tighter.
	clientOf func(session string) netip.Addr
}

// Orders that an agent works on at a time; more are answered with an error.
const (
	maxBusy         = 128
	maxBusyOfHost   = 64 // of the clients of one host
	maxBusyOfClient = 32
)

// Agent obeys controllers: it keeps their sessions, runs the ends they order
// and gives up a session whose controller or peer has gone silent.
type Agent struct {
	cfg     AgentConfig
	link    *link
	alone   bool           // one client at a time has sessions here
	busy    chan struct{}  // holds one for each order at work
	closing sync.WaitGroup // of sessions, by themselves
	reading sync.Mutex     // held while an order is decoded, so that one at a time takes memory for it
	telling sync.Mutex     // held while a report is made, likewise

	mu       sync.Mutex
	busyOf   map[string]int // orders at work, by their client and by its host
	calls    allowance      // of peers that have not consented
	refusals time.Time      // when one was told last
	sessions map[string]*session
	released []string     // names of sessions, the newest last
	served   bool         // it had a session
	closed   model.Reason // why no more sessions are taken; without a code they are
	joined   time.Time    // a hub of many hosts, or came back to it
}

// newAgent checks the configuration; it starts nothing.
func newAgent(cfg AgentConfig) (*Agent, error) {
	cfg.ID = cmp.Or(cfg.ID, randomHex())
	if !model.IsHostName(cfg.ID) || cfg.ID == controllerName {
		return nil, fmt.Errorf("agent name %q: want up to 64 letters, digits, - and _", cfg.ID)
	}
	cfg.Node = cmp.Or(cfg.Node, cfg.ID)
	if cfg.Events == nil {
		cfg.Events = func(error) {}
	}
	if cfg.events == nil {
		cfg.events = func(string, error) {}
	}
	return &Agent{cfg: cfg, busy: make(chan struct{}, maxBusy), busyOf: map[string]int{},
		sessions: map[string]*session{}}, nil
}

func (a *Agent) engineNames() []string { return slices.Sorted(maps.Keys(a.cfg.Engines)) }

// info introduces the agent to a client, which is invalid if it is not known.
func (a *Agent) info(client netip.Addr) AgentInfo {
	i := AgentInfo{ID: a.cfg.ID, Node: a.cfg.Node, Version: a.cfg.Version, Protocol: protocolVersion,
		Engines: a.engineNames(), Limits: a.cfg.Limits.Toward(client), Observer: a.cfg.Router != nil,
		Address: a.cfg.Address}
	if a.alone && !i.Address.IsValid() {
		i.Address, i.Seen = a.link.addresses()
	}
	i.Joined = a.joinedAt()
	if a.cfg.Facts != nil {
		i.Host = a.cfg.Facts()
	}
	return i
}

func (a *Agent) joinedAt() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.joined
}

// join counts the agent as one of its hub's from now on.
func (a *Agent) join() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.joined = time.Now().Round(0) // as it is after a way through JSON
}

// serve answers whoever the hub lets through.
func (a *Agent) serve(l *link) error {
	a.link = l
	// Its subject is the same for all versions and names no client; a hello of whomever counts as the same client's.
	byAll := func(m *nats.Msg) { a.respond(m, "", verbHello, []byte(m.Reply)) }
	if _, err := l.subscribe(helloSubject, byAll); err != nil {
		return err
	}
	byVerb := func(m *nats.Msg) {
		token := strings.Split(m.Subject, ".") // as orderSubject
		verb, client := token[3], token[4]
		if strings.HasPrefix(m.Reply, inboxPrefix+client+".") {
			a.respond(m, client, verb, m.Data)
		}
	}
	if _, err := l.subscribe(orderSubject(a.cfg.ID, "*", "*"), byVerb); err != nil {
		return err
	}
	if err := l.nc.FlushTimeout(5 * time.Second); err != nil {
		return natsError(err)
	}
	a.closing.Go(func() {
		<-l.lost
		a.endSessions(model.Reason{Code: model.HubLost})
	})
	return nil
}

// respond works on a goroutine of its own, because orders may take long and
// stop must overtake them.
func (a *Agent) respond(m *nats.Msg, client, verb string, data []byte) {
	host := SourceOf(a.client(client)).String()
	if !a.begin(client, host) {
		if verb == verbHello && a.isClosed() { // its name is free
			return
		}
		_ = m.Respond(encodeReply(nil, finding.NewFault(model.AgentBusy)))
		return
	}
	go func() {
		defer a.done(client, host)
		_ = m.Respond(a.answer(context.Background(), client, verb, data)) // else the controller is gone
	}()
}

func (a *Agent) isClosed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed.Code != ""
}

// begin takes one of the places for orders at work; false if a client, its host or this agent has as many as it may.
func (a *Agent) begin(client, host string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busyOf[client] >= maxBusyOfClient || a.busyOf[host] >= maxBusyOfHost {
		return false
	}
	select {
	case a.busy <- struct{}{}:
		a.busyOf[client]++
		a.busyOf[host]++
		return true
	default:
		return false
	}
}

func (a *Agent) done(client, host string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, who := range []string{client, host} {
		if a.busyOf[who]--; a.busyOf[who] == 0 {
			delete(a.busyOf, who)
		}
	}
	<-a.busy
}

// find returns the session that an order is for; nil if there is none, or if it is being closed.
func (a *Agent) find(id string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil && !s.isClosed() {
		return s
	}
	return nil
}

// admit makes the session, if there is room for its ends. One that only watches is there already when a trial begins.
func (a *Agent) admit(p makeOrder) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, client := a.sessions[p.Session], a.client(p.Session)
	switch {
	case a.closed.Code != "":
		return nil, &finding.Fault{Reason: a.closed}
	case s != nil && p.watches():
		return s, nil
	case s != nil:
		return nil, finding.NewFault(model.SessionOpen)
	case p.watches():
		return nil, errNoSession
	case slices.Contains(a.released, p.Session):
		return nil, errReleased
	case a.cfg.clientOf != nil && !client.IsValid(): // it would count as another host's
		return nil, finding.NewFault(model.SessionStranger)
	case a.alone && a.taken(p.Session):
		return nil, errTaken
	}
	from := SourceOf(client)
	if err := a.hasRoom(p, from); err != nil {
		return nil, err
	}
	s, err := openSession(a, p)
	if err != nil {
		return nil, err
	}
	s.from = from
	a.sessions[p.Session], a.served = s, true
	a.link.sessions.Store(int32(len(a.sessions)))
	if len(p.Ends) > 0 {
		a.cfg.events(s.id, words.Errorf("trial started: %w", flowsSaid(p.Ends)))
	}
	return s, nil
}

// awaitClosing waits for sessions that are over until what they had is free: on a busy host that may take longer than
// their controller stays.
func (a *Agent) awaitClosing(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*closeTimeout)
	defer cancel()
	for _, s := range a.list() {
		if !s.isClosed() {
			continue
		}
		select {
		case <-s.gone:
		case <-ctx.Done():
			return
		}
	}
}

// taken reports whether a client other than the session's has sessions here.
func (a *Agent) taken(session string) bool {
	client, _, _ := strings.Cut(session, ".")
	for id := range a.sessions {
		if !isOf(client, id) {
			return true
		}
	}
	return false
}

// client is the address that the client of a session connected from; invalid if it is not known.
func (a *Agent) client(session string) netip.Addr {
	if a.cfg.clientOf == nil {
		return netip.Addr{}
	}
	return a.cfg.clientOf(session)
}

// mostFlowsSaid is how many flows of a session are told to whoever serves.
const mostFlowsSaid = 3

// flowsSaid names the flows of a session for whoever serves.
func flowsSaid(ends []endOrder) (said error) {
	flows := 0
	for _, e := range ends {
		f := e.Order.Flow
		if !e.Order.Traffic() {
			continue
		}
		if flows++; flows > mostFlowsSaid {
			continue
		}
		one := words.Errorf("%w %s %d B at %v", errors.New(short(f.Name)), f.Protocol, f.PayloadBytes,
			f.Rate.Short())
		if f.Streams > 1 {
			one = words.Errorf("%w in %d streams", one, f.Streams)
		}
		if said != nil {
			one = words.Errorf("%w, %w", said, one)
		}
		said = one
	}
	switch {
	case flows > mostFlowsSaid:
		return words.Errorf("%w, and %d more", said, flows-mostFlowsSaid)
	case said != nil:
		return said
	case ends[0].Order.Survey:
		return words.Errorf("path MTU")
	}
	return words.Errorf("round trips only")
}

func (a *Agent) forget(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[s.id] == s {
		delete(a.sessions, s.id)
		a.link.sessions.Store(int32(len(a.sessions)))
	}
}

func (a *Agent) list() []*session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.sessions))
}

func (a *Agent) endSessions(why model.Reason) {
	_ = each(a.list(), func(s *session) error {
		s.stopTraffic(why)
		return s.close(why) // no controller waits for the error
	})
}

// reportGrace is how long controllers may take to fetch the reports of sessions
// that end because the agent does.
const reportGrace = time.Second

// shutdown takes no more sessions, stops those there are, gives their
// controllers a moment to fetch the reports, and leaves the hub.
func (a *Agent) shutdown(why model.Reason) {
	a.mu.Lock()
	again := a.closed.Code != ""
	if !again {
		a.closed = why
	}
	a.mu.Unlock()
	if again {
		return
	}
	for _, s := range a.list() {
		s.stopTraffic(why)
	}
	for end := time.Now().Add(reportGrace); len(a.list()) > 0 && a.link.nc.IsConnected() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	a.endSessions(why)
	for range maxBusy { // orders at work end, and none begins
		a.busy <- struct{}{}
	}
	a.link.close()
	a.closing.Wait()
}
