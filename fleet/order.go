package fleet

import (
	"context"
	"errors"
	"strings"
	"time"

	"pelt/finding"
	"pelt/model"
	"pelt/words"
)

// The verbs of pelt.agent.AGENT.VERB.CLIENT.
const (
	verbHello   = "hello"
	verbMake    = "make"
	verbDo      = "do"
	verbStop    = "stop"
	verbAccount = "account"
	verbRelease = "release"
)

// orders is every verb. An order that is given again, because its connection broke before
// the answer came, is safe, or is refused.
var orders = map[string]func(a *Agent, ctx context.Context, client string, data []byte) (any, error){
	verbHello:   (*Agent).hello,
	verbMake:    (*Agent).make,
	verbDo:      bySession(model.MaxDrain+openTimeout, (*session).do), // which bounds each step
	verbStop:    bySession(stepTimeout, (*session).stop),
	verbAccount: bySession(openTimeout, (*session).account),
	verbRelease: (*Agent).release,
}

// none answers orders that have nothing to tell.
type none struct{}

var errNoSession = finding.NewFault(model.NoSession)

// errReleased is of a session that was released before it was made: nobody waits for it, and no user is told.
var errReleased = finding.NewFault(model.NoSession)

// ofSession is an order about a session.
type ofSession interface {
	check() error
	name() string
}

func read[Q interface{ check() error }](a *Agent, data []byte) (Q, error) {
	a.reading.Lock()
	q, err := decode[Q](data)
	a.reading.Unlock()
	if err == nil {
		err = q.check()
	}
	return q, err
}

// isOf reports whether a session is one of a client.
func isOf(client, session string) bool { return strings.HasPrefix(session, client+".") }

// bySession has a session obey an order within some time.
func bySession[Q ofSession, A any](within time.Duration, obey func(*session, context.Context, Q) (A, error),
) func(*Agent, context.Context, string, []byte) (any, error) {
	return func(a *Agent, ctx context.Context, client string, data []byte) (any, error) {
		q, err := read[Q](a, data)
		if err != nil {
			return nil, err
		}
		s := a.find(q.name())
		if s == nil || !isOf(client, q.name()) {
			return nil, errNoSession
		}
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		return obey(s, ctx, q)
	}
}

// answer obeys one order of a client and returns the encoded reply, whatever the order holds.
func (a *Agent) answer(ctx context.Context, client, verb string, data []byte) []byte {
	obey, known := orders[verb]
	if !known {
		return encodeReply(nil, finding.NewFault(model.OrderUnknown, "name", model.Clip(verb)))
	}
	return encodeReply(obey(a, ctx, client, data))
}

var errOnlyWatches = refuse(model.OnlyObserves)

// hello introduces the agent, to a controller of any version, whose inbox tells who it is.
func (a *Agent) hello(_ context.Context, _ string, inbox []byte) (any, error) {
	return a.info(a.client(strings.TrimPrefix(string(inbox), inboxPrefix))), nil
}

func (a *Agent) make(ctx context.Context, client string, data []byte) (any, error) {
	p, err := read[makeOrder](a, data)
	if err == nil && !isOf(client, p.Session) {
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
		if s, err = a.admit(p); err != nil { // perhaps for what a test that is over still holds
			a.awaitClosing(ctx)
			s, err = a.admit(p)
		}
	}
	switch {
	case errors.Is(err, errReleased):
		return nil, err
	case err != nil:
		a.tellRefusal(p.Session, err)
		return nil, err
	}
	return s.make(ctx, p)
}

// mostReleased is how many names of sessions that were released are remembered.
const mostReleased = 256

// release ends a session. It may overtake the order that makes the session, which nobody would end then.
func (a *Agent) release(ctx context.Context, client string, data []byte) (any, error) {
	if q, err := read[sessionOrder](a, data); err == nil && isOf(client, q.Session) {
		a.mu.Lock()
		a.released = append(a.released[max(0, len(a.released)-mostReleased+1):], q.Session)
		a.mu.Unlock()
	}
	return bySession(stepTimeout, (*session).release)(a, ctx, client, data)
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
		a.cfg.events(session, words.Errorf("refused: %w", &finding.Fault{Reason: clipReason(finding.ReasonOf(err))}))
	}
}

// short cuts a text of another host for a line of whoever serves.
func short(text string) string { return strings.ToValidUTF8(model.Clip(text), "") }
