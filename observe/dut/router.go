package dut

import (
	"context"
	"sync"
	"time"

	"pelt/finding"
	"pelt/model"
)

// usualPeriod is how far apart samples are.
const usualPeriod = time.Second

// Router is a router under watch. Its methods may be called concurrently.
type Router struct {
	node, source string
	start        Start
	period       time.Duration
	machine      learned
	stop         context.CancelFunc
	kept         chan struct{} // closed when reconnect has returned

	mu      sync.Mutex
	session *session // nil while there is no connection; see current
	boot    string   // of the last sample
	up      float64
	boots   int // how often the router was seen to have restarted
	outages []outage
	cost    cost // over all trials: its unit is too coarse for one
	closed  bool
}

// What asking may take. A router may need seconds for a key exchange, or to list
// its interrupts while it forwards at its limit.
const (
	factsWithin  = 30 * time.Second
	sampleWithin = 10 * time.Second
	retryEvery   = 5 * time.Second
)

// Open connects to a router, learns what it is and takes the texts of before the
// first trial. node is its name on the path, source says in the report how it is
// watched. ctx bounds the opening only. The error says in one line what is wrong and
// what would be right. The caller must call Close.
func Open(ctx context.Context, node, source string, start Start) (*Router, error) {
	r := &Router{node: node, source: source, start: start, period: usualPeriod}
	if err := r.open(ctx); err != nil {
		return nil, finding.Because(err, model.RouterUnwatched, "name", source)
	}
	return r, nil
}

func (r *Router) open(ctx context.Context) error {
	s, err := connect(ctx, r.start)
	if err != nil {
		return err
	}
	first, err := firstSample(ctx, s)
	if err != nil {
		_ = s.shell.Close() // what came first tells more
		return err
	}
	told, err := s.facts(ctx)
	if ctx.Err() != nil {
		_ = s.shell.Close() // as above
		return ctx.Err()
	}
	r.machine = learn(told, first)
	f := &r.machine.facts
	f.Node, f.Source = r.node, r.source
	if err != nil { // one question hung, say; the trials need none of them
		f.Told = append(f.Told, untold(err))
		_ = s.shell.Close() // it is of no use any more
		if s, err = connect(ctx, r.start); err != nil {
			return err
		}
	}
	r.session, r.boot, r.up = s, first.boot, first.up
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop, r.kept = stop, make(chan struct{})
	go r.reconnect(life, s)
	return nil
}

// facts asks all questions. With an error comes what was answered. /sys of a lab's node shows another host's devices.
func (s *session) facts(ctx context.Context) (map[string]string, error) {
	asked, err := s.exchange(ctx, askFacts, factsWithin)
	told := s.mark.sections(asked.body)
	if s.shell.HostDevices {
		delete(told, "devices")
		delete(told, "steering")
	}
	return told, err
}

// firstSample shows that the router tells what a watch needs.
func firstSample(ctx context.Context, s *session) (sample, error) {
	a, err := s.exchange(ctx, askSample, sampleWithin)
	if err != nil {
		return sample{}, err
	}
	return parseSample(a.body)
}

// Facts returns what the router is, and its texts of before the first trial.
func (r *Router) Facts() model.RouterFacts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.facts
}

// Finish takes the texts of after the last trial and returns all facts.
func (r *Router) Finish(ctx context.Context) model.RouterFacts {
	r.mu.Lock()
	s := r.current()
	r.mu.Unlock()
	err := errClosed
	var told map[string]string
	if s != nil {
		told, err = s.facts(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &r.machine.facts
	later := facts(told)
	if err != nil {
		later = append(later, untold(err))
	}
	f.After, f.Told = texts(told), also(f.Told, later)
	return *f
}

// Close ends the connection. It never takes long, and may be called more than once.
func (r *Router) Close() error {
	r.mu.Lock()
	s, closed := r.session, r.closed
	r.session, r.closed = nil, true
	r.mu.Unlock()
	r.stop()
	var err error
	if s != nil && !closed {
		err = s.shell.Close()
	}
	<-r.kept
	return err
}

// reconnect connects again, for as long as the Router is open, when a connection ends.
func (r *Router) reconnect(life context.Context, s *session) {
	defer close(r.kept)
	for {
		if s != nil {
			select {
			case <-s.shell.Ended:
			case <-life.Done():
				return
			}
			r.mu.Lock()
			_ = r.current()
			r.mu.Unlock()
			_ = s.shell.Close() // it has ended
		}
		again := time.NewTimer(retryEvery)
		select {
		case <-again.C:
		case <-life.Done():
			again.Stop()
			return
		}
		s = r.retry(life)
	}
}

// current returns the connection, nil while there is none. mu is held. Whoever looks
// first notes the loss.
func (r *Router) current() *session {
	if s := r.session; s != nil && s.shell.ends(0) {
		r.session = nil
		r.note(model.GapClosed, s.lastWords())
	}
	return r.session
}

func (r *Router) retry(life context.Context) *session {
	s, err := connect(life, r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.note(model.GapClosed, finding.ReasonOf(err))
		return nil
	case r.closed:
		_ = s.shell.Close()
		return nil
	}
	r.session = s
	return s
}
