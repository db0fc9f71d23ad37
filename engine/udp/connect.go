package udp

import (
	"cmp"
	"context"
	"errors"
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

// Consented runs what sends for as long as the receiver consents on every stream; else it calls
// stop, and says so. It tells extend until when there is consent: what sends must end by itself then, with
// engine.ErrLapsed, as nobody may get a core to stop it. Other ends just run.
func (e *Sockets) Consented(run func() error, stop func(), extend func(until int64)) error {
	if e.order.Role != engine.Send {
		return run()
	}
	k := engine.NewConsentKeeper(e.order, e.settings.clock.Now())
	extend(k.Until())
	over, kept := make(chan struct{}), make(chan error)
	go func() {
		err := e.keepConsent(k, extend, over)
		if err != nil {
			stop()
		}
		kept <- err
	}()
	err := run()
	close(over)
	lost := <-kept
	if errors.Is(err, engine.ErrLapsed) {
		return cmp.Or(k.Lost(e.settings.clock.Now()), err)
	}
	return errors.Join(lost, err)
}

// mostHeard bounds what is read of a stream at once: a peer may send anything.
const mostHeard = 64

// keepConsent returns when sending is over, or why it must be. It reads the sockets, as
// nobody else does who sends.
func (e *Sockets) keepConsent(k *engine.ConsentKeeper, extend func(until int64), over <-chan struct{}) error {
	clock := e.settings.clock
	tick := time.NewTimer(k.Wait(clock.Now()))
	defer tick.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-tick.C:
		}
		for i, w := range e.sockets {
			for range mostHeard {
				if !k.Awaits(i) {
					break
				}
				d, err := w.read(0)
				if err == nil && d.nanos == 0 {
					break
				}
				k.Hear(i, d.whole()) // with an error, which is an ICMP message, there is nothing in it
			}
		}
		if err := k.Lost(clock.Now()); err != nil {
			return err
		}
		extend(k.Until())
		for i := range e.sockets {
			e.ask(k, i)
		}
		tick.Reset(k.Wait(clock.Now()))
	}
}

// ask sends the checks of a stream that are due. Lost ones are not sent again: others follow. Of those that become due
// meanwhile it sends none, for on a slow host there are always some.
func (e *Sockets) ask(k *engine.ConsentKeeper, stream int) {
	now := e.settings.clock.Now()
	for {
		m, due := k.Ask(stream, now)
		if !due {
			return
		}
		_ = e.sockets[stream].try(m[:])
	}
}

// agree answers a datagram if it is a check.
func (e *Sockets) agree(stream int, d datagram) {
	if m, ok := e.order.StreamKey(stream).Agree(d.whole()); ok {
		_ = e.sockets[stream].try(m[:]) // the sender asks again
	}
}
