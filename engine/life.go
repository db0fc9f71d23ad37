package engine

import (
	"context"
	"errors"
	"time"
)

// Do carries out a step of the trial: see Part.
func (e *End) Do(ctx context.Context, s Step, k Known) (l Learned, err error) {
	switch s {
	case Open:
		if err = e.Open(ctx, k.Ports); err == nil {
			l.Ports = e.Ports()
		}
	case Meet:
		if !e.order.Listen {
			l.Met, err = e.Connect(ctx)
			return l, err
		}
		e.awaitCalls()
	case Met:
		l.Met, err = e.endOfCalls(ctx, k.Over)
	case Ready:
		if err = e.Settle(k.Living); err == nil && e.readsFirst() {
			err = e.Start(ctx)
		}
	case Go:
		err = e.carry(ctx, k.Gate)
	case Halt:
		if e.order.Role == Send {
			l.Sent, err = e.halt(ctx)
		}
	case Drain:
		err = e.Drain(ctx, k.Sent)
		l.Received = e.Snapshot().Packets
	}
	return l, err
}

// readsFirst reports whether the end takes packets, so that it must read before anybody sends.
func (e *End) readsFirst() bool { return e.order.Role == Receive || e.order.Role == Echo }

// awaitCalls begins to wait for the peer, on an end that listens.
func (e *End) awaitCalls() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.called != nil || e.closed || e.stopping.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &peerWait{end: cancel, over: make(chan struct{})}
	e.called = w
	go func() {
		defer close(w.over)
		w.met, w.err = e.Connect(ctx)
	}()
}

// endOfCalls ends the wait for the peer at once if over is set, and else waits until every stream has met.
func (e *End) endOfCalls(ctx context.Context, over bool) (Meeting, error) {
	e.mu.Lock()
	w := e.called
	e.mu.Unlock()
	if w == nil {
		return Meeting{}, nil // it never began to wait
	}
	defer w.end()
	if over {
		w.end()
	}
	select {
	case <-w.over:
		return w.met, w.err
	case <-ctx.Done():
		return Meeting{}, ctx.Err()
	}
}

// Bounds of what an end does, whatever anybody says.
const (
	overtime  = 3 * time.Second  // of a sender
	mostExtra = 30 * time.Second // of other ends: so long past their timing
)

// carry runs the traffic: a probe starts at the gate, a sender a lead later, and what receives reads already. It
// returns why traffic failed, nil of an end that never began.
func (e *End) carry(ctx context.Context, gate time.Duration) error {
	t := e.order.Timing
	length := t.Warmup() + t.Measure()
	limit := length + overtime
	if e.order.Role == Send {
		gate += t.Lead()
	} else {
		limit = gate + t.Lead() + length + t.Drain() + t.Patience() + mostExtra
	}
	if !e.readsFirst() {
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(e.stopping, cancel)()
		if !Sleep(waiting, gate) {
			return nil
		}
		if err := e.Start(ctx); err != nil {
			return err
		}
	}
	defer time.AfterFunc(limit, e.Stop).Stop()
	select {
	case <-e.done:
		_, err := e.Report()
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// halt ends a sender and tells what it attempted; nothing of one that never began.
func (e *End) halt(ctx context.Context) (Sent, error) {
	e.Stop()
	if e.Await(ctx) != nil {
		return Sent{}, errors.New("the sender did not end in time")
	}
	r, _ := e.Report()
	if r.Send == nil {
		return Sent{}, nil
	}
	return Sent{Streams: r.Send.Streams, Unsent: r.Send.Attempted - min(r.Send.Accepted, r.Send.Attempted)}, nil
}

// Await returns when traffic that began is over, or with the error of ctx.
func (e *End) Await(ctx context.Context) error {
	e.mu.Lock()
	begun := e.state == running || e.state == ended
	e.mu.Unlock()
	if !begun {
		return nil
	}
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Live is how far the end has come.
func (e *End) Live() Live { return Live{Snapshot: e.Snapshot()} }

// Account is what the end measured, once its traffic has ended.
func (e *End) Account() Account {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.done:
	default:
		return Account{}
	}
	if e.state != ended {
		return Account{}
	}
	r := e.report
	return Account{End: &r}
}

var _ Part = (*End)(nil)
