package udp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"pelt/engine"
)

const (
	repeatEvery = 100 * time.Millisecond // of an unanswered consent message
	readWait    = 10 * time.Millisecond  // how long a read waits before its caller looks up
)

// Connect waits for both sides' consent on every stream; see engine.Transport.
func (e *Sockets) Connect(ctx context.Context) ([]engine.Stream, error) {
	errs := make([]error, len(e.sockets))
	var wg sync.WaitGroup
	for i := range e.sockets {
		wg.Go(func() {
			if e.order.Listen {
				errs[i] = e.awaitCaller(ctx, i)
			} else {
				errs[i] = e.call(ctx, i)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("stream %d: %w", i, err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	streams := make([]engine.Stream, len(e.sockets))
	for i, w := range e.sockets {
		streams[i] = engine.Stream{Local: w.local(), Remote: w.remote()}
	}
	return streams, nil
}

func (e *Sockets) awaitCaller(ctx context.Context, i int) error {
	d := e.consents[i]
	select {
	case <-d.Done():
	case <-e.stop.done:
		return fmt.Errorf("await the peer's consent on UDP port %d: %w", e.ports[i], context.Canceled)
	case <-ctx.Done():
		return fmt.Errorf("await the peer's consent on UDP port %d: none came: %w", e.ports[i], context.Cause(ctx))
	}
	e.tokens[i] = d.Token()
	return nil
}

// call asks the listener for consent until it is ready.
func (e *Sockets) call(ctx context.Context, i int) error {
	w, c := e.sockets[i], engine.NewConsentDialer(e.order.StreamKey(i))
	var last error
	for send := time.Now(); ctx.Err() == nil && !e.stop.isSet(); {
		if now := time.Now(); !now.Before(send) {
			out := c.Message()
			if err := w.write(out[:]); err != nil {
				last = err
			}
			send = now.Add(repeatEvery)
		}
		d, err := w.read(readWait)
		if err != nil {
			last = err // such as an ICMP error for the message before
			continue
		}
		turn, done := c.Hear(d.whole())
		if done {
			w.settle()
			e.tokens[i] = c.Token()
			return nil
		}
		if turn {
			send = time.Time{}
		}
	}
	cause := context.Cause(ctx)
	if cause == nil {
		cause = context.Canceled
	}
	if last != nil {
		return fmt.Errorf("ask %v for consent on UDP port %d: no answer: %w (%w)", e.order.Peer, e.order.Ports[i], cause, last)
	}
	return fmt.Errorf("ask %v for consent on UDP port %d: no answer: %w", e.order.Peer, e.order.Ports[i], cause)
}

// admit takes over the socket of a stream and answers its caller. Once there is consent, the
// stream keeps its socket.
func (e *Sockets) admit(i int, w socket) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.consents[i].Confirmed() {
		w.close()
		return false
	}
	e.sockets[i] = w
	e.answering.Go(func() {
		for {
			e.mu.Lock()
			mine := e.sockets[i] == w
			e.mu.Unlock()
			if !mine {
				w.close()
				return
			}
			select {
			case <-e.quiet:
				return
			default:
			}
			d, err := w.read(readWait)
			if err != nil || d.nanos == 0 || e.answer(i, w, d.whole()) {
				continue
			}
			if e.consents[i].Confirmed() && len(d.head) > 0 { // the flow has begun: what comes now is for Run
				d.head = slices.Clone(d.head)
				e.mu.Lock()
				e.early[i] = d
				e.mu.Unlock()
				return
			}
		}
	})
	return true
}

// answer serves a consent message that reached the listening end, also while
// the flow runs: the last answer may have been lost. A socket that was replaced gives no
// consent: the flow would go to the caller of the new one.
func (e *Sockets) answer(i int, w socket, b []byte) bool {
	e.mu.Lock()
	var reply engine.ConsentMessage
	ok := false
	if e.sockets[i] == w {
		reply, ok = e.consents[i].Answer(b, w.from())
	}
	e.mu.Unlock()
	if !ok {
		return false
	}
	settled := e.consents[i].Confirmed()
	w.answer(reply[:])
	if settled {
		w.settle()
	}
	return true
}

func (e *Sockets) stopAnswering() {
	if e.quiet == nil {
		return
	}
	e.mu.Lock()
	select {
	case <-e.quiet:
	default:
		close(e.quiet)
	}
	e.mu.Unlock()
	e.answering.Wait()
}
