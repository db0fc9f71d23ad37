package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"pelt/model"
)

// The verbs of pelt.agent.AGENT.VERB.CLIENT.
const (
	verbHello   = "hello"
	verbPrepare = "prepare"
	verbConnect = "connect"
	verbObserve = "observe"
	verbArm     = "arm"
	verbStart   = "start"
	verbDrain   = "drain"
	verbStop    = "stop"
	verbRecord  = "record"
	verbReport  = "report"
	verbFacts   = "facts"
	verbRelease = "release"
)

// order is one verb that agents obey.
type order struct {
	ends bool // about ends: an agent that only watches refuses it
	obey func(a *Agent, ctx context.Context, data []byte) (any, error)
}

// orders is every verb. An order that is given again, because its connection broke before
// the answer came, is safe, or is refused.
var orders = map[string]order{
	verbHello:   {false, (*Agent).hello},
	verbPrepare: {false, (*Agent).prepare},
	verbConnect: {true, bySession(connectTimeout+stepTimeout, (*session).connect)},
	verbObserve: {false, bySession(observeTimeout+maxIdle, (*session).observe)},
	verbArm:     {true, bySession(stepTimeout, (*session).arm)},
	verbStart:   {true, bySession(stepTimeout, (*session).start)},
	verbDrain:   {true, bySession(model.MaxDrain+stopTimeout, (*session).drain)},
	verbStop:    {true, bySession(stepTimeout, (*session).stop)},
	verbRecord:  {true, bySession(recordWait, (*session).fetchRecord)},
	verbReport:  {false, bySession(2*stopTimeout, (*session).report)},
	verbFacts:   {false, bySession(stepTimeout, (*session).facts)},
	verbRelease: {false, bySession(stepTimeout, (*session).release)},
}

// none answers orders that have nothing to tell.
type none struct{}

var errNoSession = errors.New("no such session here (any more)")

// ofSession is an order about a session.
type ofSession interface {
	check() error
	name() string
}

// read decodes an order and checks it.
func read[Q interface{ check() error }](a *Agent, data []byte) (Q, error) {
	a.reading.Lock()
	q, err := decode[Q](data)
	a.reading.Unlock()
	if err == nil {
		err = q.check()
	}
	return q, err
}

// asker is the key of a context: the client that an order came from.
type asker struct{}

// asksAbout reports whether a session is one of the client that an order came from.
func asksAbout(ctx context.Context, session string) bool {
	of, _, _ := strings.Cut(session, ".")
	client, known := ctx.Value(asker{}).(string)
	return !known || client == of
}

// bySession has a session obey an order within some time.
func bySession[Q ofSession, A any](within time.Duration, obey func(*session, context.Context, Q) (A, error),
) func(*Agent, context.Context, []byte) (any, error) {
	return func(a *Agent, ctx context.Context, data []byte) (any, error) {
		q, err := read[Q](a, data)
		if err != nil {
			return nil, err
		}
		s := a.find(q.name())
		if s == nil || !asksAbout(ctx, q.name()) {
			return nil, errNoSession
		}
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		return obey(s, ctx, q)
	}
}

// obey works on one order.
func (a *Agent) obey(ctx context.Context, verb string, data []byte) (any, error) {
	switch o, known := orders[verb]; {
	case !known:
		return nil, fmt.Errorf("unknown verb %q", model.Clip(verb))
	case o.ends && a.cfg.Router != nil:
		return nil, errOnlyWatches
	default:
		return o.obey(a, ctx, data)
	}
}

var errOnlyWatches = refuse("this pelt serve only observes (--observe-only): it sends and receives nothing")

// hello introduces the agent, to a controller of any version, whose inbox tells who it is.
func (a *Agent) hello(_ context.Context, inbox []byte) (any, error) {
	return a.info(a.client(strings.TrimPrefix(string(inbox), inboxPrefix))), nil
}

// prepare opens the ends of a session and, for the first of them, the session.
func (a *Agent) prepare(ctx context.Context, data []byte) (any, error) {
	p, err := read[prepareOrder](a, data)
	if err == nil && !asksAbout(ctx, p.Session) {
		err = errNoSession
	}
	if err == nil {
		err = a.allows(p)
	}
	for i := range p.Ends {
		p.Ends[i].Order.MostListed = min(model.MaxMarksBytes, listsBytes/len(p.Ends))
	}
	var s *session
	if err == nil {
		s, err = a.admit(p)
	}
	if err != nil {
		a.tellRefusal(p.Session, err)
		return nil, err
	}
	return s.prepare(ctx, p.Ends)
}

// tellRefusal tells the user of pelt serve that an order was refused, at most once a second.
func (a *Agent) tellRefusal(session string, err error) {
	a.mu.Lock()
	now := time.Now()
	again := now.Sub(a.refusals) < time.Second
	if !again {
		a.refusals = now
	}
	a.mu.Unlock()
	if !again {
		a.cfg.events(session, "refused: "+short(err.Error()))
	}
}

// short cuts a text of another host for a line of whoever serves.
func short(text string) string { return strings.ToValidUTF8(model.Clip(text), "") }
