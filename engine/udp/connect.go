package udp

import (
	"cmp"
	"context"
	"fmt"
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
	errs := make([]error, e.order.Flow.Streams)
	var wg sync.WaitGroup
	for i := range errs {
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
	if e.order.Listen {
		return e.listening.streams(), nil
	}
	streams := make([]engine.Stream, len(e.sockets))
	for i, w := range e.sockets {
		streams[i] = engine.Stream{Local: w.local(), Remote: w.remote()}
	}
	return streams, nil
}

func (e *Sockets) awaitCaller(ctx context.Context, i int) error {
	select {
	case <-e.consents[i].Done():
		e.tokens[i] = e.consents[i].Token()
		return nil
	case <-e.stop.done:
		return fmt.Errorf("await the peer's consent on UDP port %d: %w", e.ports[i], context.Canceled)
	case <-ctx.Done():
		return fmt.Errorf("await the peer's consent on UDP port %d: none came: %w", e.ports[i], context.Cause(ctx))
	}
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
			e.tokens[i] = c.Token()
			return nil
		}
		if turn {
			send = time.Time{}
		}
	}
	cause := cmp.Or(context.Cause(ctx), context.Canceled)
	if last != nil {
		cause = fmt.Errorf("%w (%w)", cause, last)
	}
	return fmt.Errorf("ask %v for consent on UDP port %d: no answer: %w", e.order.Peer, e.order.Ports[i], cause)
}
