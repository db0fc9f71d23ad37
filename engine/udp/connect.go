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
	// An unanswered message is repeated soon, then after twice the time, up to the round trip
	// that is assumed where none is known (RFC 8085 section 3.1.3).
	repeatSoon = 100 * time.Millisecond
	repeatLate = time.Second
	readWait   = 10 * time.Millisecond // how long a read waits before its caller looks up
)

// Connect waits for both sides' consent on every stream; see engine.Transport.
func (e *Sockets) Connect(ctx context.Context) ([]engine.Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connect, first := e.awaitCaller, 0
	if !e.order.Listen { // one stream finds out that the peer is there, so that a stranger gets few packets
		if err := e.call(ctx, 0); err != nil {
			return nil, fmt.Errorf("stream 0: %w", err)
		}
		connect, first = e.call, 1
	}
	var wg sync.WaitGroup
	var once sync.Once
	var failed error
	for i := first; i < e.order.Flow.Streams; i++ {
		wg.Go(func() {
			if err := connect(ctx, i); err != nil {
				once.Do(func() { failed = fmt.Errorf("stream %d: %w", i, err) })
				cancel() // the other streams need not wait
			}
		})
	}
	wg.Wait()
	if failed != nil {
		return nil, failed
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
	for send, again := time.Now(), repeatSoon; ctx.Err() == nil && !e.stop.isSet(); {
		if now := time.Now(); !now.Before(send) {
			out := c.Message()
			if err := w.write(out[:]); err != nil {
				last = err
			}
			send, again = now.Add(again), min(2*again, repeatLate)
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
			send, again = time.Time{}, repeatSoon
		}
	}
	cause := cmp.Or(context.Cause(ctx), context.Canceled)
	if last != nil {
		cause = fmt.Errorf("%w (%w)", cause, last)
	}
	return fmt.Errorf("ask %v for consent on UDP port %d: no answer: %w", e.order.Peer, e.order.Ports[i], cause)
}

// Consented runs what sends. It calls end for each stream whose receiver no longer consents: nothing may be sent on
// that stream from then on. Other ends just run.
func (e *Sockets) Consented(run func() error, end func(stream int)) error {
	if e.order.Role != engine.Send {
		return run()
	}
	k := &keeper{engine.NewConsentKeeper(e.order, e.now()), e, end}
	defer k.Close()
	e.engine.keepers.add(k)
	defer e.engine.keepers.remove(k)
	return run()
}

// agree answers a datagram if it is a check.
func (e *Sockets) agree(stream int, d datagram) {
	if m, ok := e.order.StreamKey(stream).Agree(d.whole()); ok {
		_ = e.sockets[stream].try(m[:]) // the sender asks again
	}
}
