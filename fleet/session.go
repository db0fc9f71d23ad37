package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
	"pelt/model"
)

const (
	connectPatience = 8 * time.Second  // for the consent handshake
	stepPatience    = 30 * time.Second // a session may idle so long between two orders
	overtime        = 3 * time.Second  // a sender may run so long past its order
	stopPatience    = 2 * time.Second  // for an end to return from Run once it was stopped
	closePatience   = 5 * time.Second
	sampleBeats     = int(time.Second / beatEvery)
)

// session is one trial at one agent.
type session struct {
	id      string
	agent   *Agent
	from    netip.Prefix // whose it is; guarded by the agent's lock
	hearing *hearing
	probed  time.Time // when packets of the probe last came; of the goroutine that beats alone
	first   prepareOrder
	ctx     context.Context // ends when the session is closed
	cancel  context.CancelFunc
	kick    chan struct{} // beat now
	work    sync.WaitGroup
	subs    []*nats.Subscription // guarded by mu

	mu        sync.Mutex
	ends      map[int]*place
	reserved  int // streams
	connected bool
	gated     bool
	closed    bool
	cut       string
	until     time.Time // the session ends itself then
	told      uint64    // bytes of its record, once its receivers have ended
	most      uint64    // of them that keep it beyond its time
	watched   *Watched
	watching  chan struct{} // closed when the watch is over; nil before the gate
	measured  chan struct{} // closed when somebody asks what was measured: then no sender is on any more
	observed  observed
	recording engine.Recording // nil if nothing is recorded
	parts     [][]byte         // of the final report
	answers   map[string]*answer
}

// answer is that to an order which a controller gives again when its connection broke
// before it had the answer.
type answer struct {
	done chan struct{}
	body any
	err  error
}

// maxAnswers bounds the orders of a session that are obeyed once.
const maxAnswers = 64

// once obeys an order unless the very same was obeyed before: it has the same answer.
func (s *session) once(verb string, data []byte, obey func() (any, error)) (any, error) {
	key := verb + string(data)
	s.mu.Lock()
	a := s.answers[key]
	if a != nil {
		s.mu.Unlock()
		<-a.done
		return a.body, a.err
	}
	if len(s.answers) >= maxAnswers {
		s.mu.Unlock()
		return nil, errors.New("too many orders of that kind")
	}
	a = &answer{done: make(chan struct{})}
	s.answers[key] = a
	s.mu.Unlock()
	defer close(a.done)
	a.body, a.err = obey()
	return a.body, a.err
}

// openSession starts the beats; the caller holds the agent's lock.
func openSession(a *Agent, p prepareOrder) (*session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{id: p.Session, agent: a, first: p, ctx: ctx, cancel: cancel,
		hearing: newHearing(time.Now(), p.Ends[0].Order.Timing.Patience()), kick: make(chan struct{}, 1), measured: make(chan struct{}), ends: map[int]*place{}, answers: map[string]*answer{}}
	t := p.Ends[0].Order.Timing
	s.until = time.Now().Add(3*stepPatience + t.Warmup() + t.Measure() + 2*t.Drain() + t.Patience())
	if err := s.reserve(p.Ends); err != nil {
		cancel()
		return nil, err
	}
	if err := s.listen(controllerName); err != nil {
		cancel()
		return nil, err
	}
	s.observed.open(a.cfg, p)
	s.work.Go(s.live)
	return s, nil
}

func flowText(ends []endOrder) string {
	text := ""
	for _, f := range flowsOf(ends) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %s %d B at %v", f.Name, f.Protocol, f.PayloadBytes, f.Rate)
		if f.Streams > 1 {
			text += fmt.Sprintf(" in %d streams", f.Streams)
		}
	}
	if text == "" {
		text = "probe only"
		if ends[0].Order.Survey {
			text = "path MTU"
		}
	}
	return text
}

func (s *session) size() (streams, ends int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserved, len(s.ends)
}

func (s *session) orders() (all []endOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.ends {
		all = append(all, p.order)
	}
	return all
}

// reserve makes room for further ends, before any is opened.
func (s *session) reserve(ends []endOrder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]endOrder, 0, len(s.ends)+len(ends))
	for _, p := range s.ends {
		all = append(all, p.order)
	}
	all = append(all, ends...)
	switch {
	case s.closed || s.connected || s.cut != "":
		return errors.New("the session takes no more ends")
	case len(all) > maxEnds:
		return fmt.Errorf("ends: want at most %d, not %d", maxEnds, len(all))
	case ends[0].Order.Timing != s.first.Ends[0].Order.Timing || ends[0].Order.Trial != s.first.Ends[0].Order.Trial:
		return errors.New("all ends of a trial have one number and one timing")
	}
	if err := s.agent.cfg.Limits.check(all); err != nil {
		return err
	}
	for _, e := range ends {
		if s.ends[e.End] != nil {
			return fmt.Errorf("end %d is prepared already", e.End)
		}
	}
	for _, e := range ends {
		s.ends[e.End] = &place{order: e, ended: make(chan struct{})}
		s.reserved += e.Order.Flow.Streams
	}
	return nil
}

// prepare opens what reserve made room for. If one end fails, the whole
// session is given up: a trial with half its ends is none.
func (s *session) prepare(ctx context.Context, ends []endOrder) (map[int][]uint16, error) {
	ctx, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	ports := map[int][]uint16{}
	for _, e := range ends {
		end, err := s.agent.cfg.Engines[e.Engine].Prepare(ctx, s.agent.cfg.Host, s.tapped(e.Order))
		if err == nil {
			err = s.install(e, end)
		}
		if err != nil {
			err = fmt.Errorf("flow %s: %s: %w", e.Order.Flow.Name, e.Order.Role, err)
			_ = s.close(err.Error()) // the reason is what the controller needs
			return nil, err
		}
		ports[e.End] = end.Ports()
	}
	return ports, nil
}

func (s *session) install(e endOrder, end engine.End) error {
	if err := s.listen(e.Peer); err != nil {
		_ = end.Close()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = end.Close()
		return errors.New("the session was closed meanwhile")
	}
	s.ends[e.End].end = end
	return nil
}

// listen hears the beats of one party.
func (s *session) listen(who string) error {
	s.hearing.expect(time.Now(), who)
	l := s.agent.link
	s.mu.Lock()
	defer s.mu.Unlock()
	subject := sessionSubject(s.id, who)
	for _, have := range s.subs {
		if have.Subject == subject {
			return nil
		}
	}
	if s.closed {
		return errors.New("the session was closed meanwhile")
	}
	sub, err := l.subscribe(subject, func(m *nats.Msg) {
		var b struct { // the rest of it, which is long where flows are many, is for the controller
			Number uint64 `json:"number"`
		}
		if json.Unmarshal(m.Data, &b) == nil {
			s.hearing.hear(who, b.Number, time.Now())
		}
	})
	if err != nil {
		return err
	}
	s.subs = append(s.subs, sub)
	return nil
}

func sessionSubject(session, who string) string { return "pelt.session." + session + "." + who }

// places returns the opened ends of the given roles, or all.
func (s *session) places(roles ...engine.Role) []*place {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*place
	for _, p := range s.ends {
		if p.end == nil {
			continue
		}
		for _, r := range roles {
			if p.order.Order.Role == r {
				out = append(out, p)
			}
		}
		if len(roles) == 0 {
			out = append(out, p)
		}
	}
	return out
}

// connect lets all ends exchange consent with their peers.
func (s *session) connect(ctx context.Context) (any, error) {
	s.mu.Lock()
	for _, p := range s.ends {
		if p.end == nil {
			s.mu.Unlock()
			return nil, errors.New("connect: the ends are not prepared yet")
		}
	}
	if s.closed || s.connected || s.cut != "" {
		s.mu.Unlock()
		return nil, errors.New("connect: not now")
	}
	s.connected = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := each(s.places(), func(p *place) error {
		if err := p.end.Connect(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name(), err)
		}
		s.observed.track(p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer := connectAnswer{map[int][]model.Tuple{}}
	for _, p := range s.places(engine.Send, engine.Receive) {
		if ports, ok := p.end.(engine.Tupler); ok && s.first.Drops != "" {
			answer.Tuples[p.order.End] = ports.Tuples()
		}
	}
	return answer, nil
}

// close frees everything and forgets the session; it may be called more than
// once. why is for the event, "" for a release.
func (s *session) close(why string) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	subs := s.subs
	s.mu.Unlock()
	s.agent.forget(s)
	s.cancel()
	for _, sub := range subs {
		_ = sub.Unsubscribe() // fails only if the connection is gone
	}
	err := each(s.places(), func(p *place) error {
		p.end.Stop()
		return p.end.Close()
	})
	err = errors.Join(err, s.observed.close())
	if r := s.recordingOf(); r != nil { // its receivers are closed
		r.Close()
	}
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(closePatience):
		err = errors.Join(err, errors.New("an end did not stop"))
	}
	if err != nil {
		s.agent.cfg.Log("closing session: %v", err)
	}
	text := "trial ended"
	if why == "" {
		why = s.why()
	}
	if why != "" {
		text += ": " + why
	}
	s.mu.Lock()
	var ends []endOrder
	for _, p := range s.ends {
		ends = append(ends, p.order)
	}
	s.mu.Unlock()
	s.agent.cfg.events(Event{Kind: EventEnded, Session: s.id, Flows: flowsOf(ends), Text: text})
	return err
}
