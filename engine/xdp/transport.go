package xdp

import (
	"context"
	"errors"
	"sync"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/model"
)

// frameEnd moves a flow's packets past the sockets.
type frameEnd interface {
	// ready says why the packets must take the sockets after all; without a code they
	// need not. It is asked once, when the other end is armed.
	ready() (why model.Reason, err error)
	// silence ends a stream of a sender: nothing is sent on it from then on.
	silence(stream int)
	// run returns when the order is fulfilled or the end is stopped.
	run(stopped context.Context) error
	count() engine.Snapshot
	// account is asked after run.
	account(r *engine.Report, sent engine.Sent)
	mode() model.Reason // how the packets are moved
	close() error
}

// transport carries one end of one flow: the sockets, and programs unless the sockets
// carry the packets, too.
type transport struct {
	*udp.Sockets
	engine  *Engine
	host    engine.Host
	order   engine.Order
	release func() error // of an interface that was made ready for the peer's frames; nil: none was
	// letsFrames: if this end receives by sockets, the peer may still send frames.
	letsFrames bool

	mu     sync.Mutex    // guards what follows; only Settle and Run write it, one after the other
	why    model.Reasons // the sockets carry the flow
	frames frameEnd      // nil: not yet, or never
}

// Settle puts the programs in place, for streams that carry packets.
func (t *transport) Settle(living []bool) error {
	if err := t.Sockets.Settle(living); err != nil {
		return err
	}
	var streams []engine.Stream
	for _, i := range t.Living() {
		streams = append(streams, t.Stream(i))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.why != nil && t.letsFrames:
		return t.makeReady(streams[0])
	case t.why != nil:
		return nil
	}
	p, why, err := t.open(streams)
	if err == nil && why.Code != "" {
		return t.giveUp(why)
	}
	t.frames = p
	return err
}

// giveUp leaves the flow to the sockets where that is allowed. The transport is locked.
func (t *transport) giveUp(why model.Reason) error {
	t.why, t.frames = model.Reasons{why}, nil
	if !t.order.Fallback {
		return &engine.Refusal{Why: why}
	}
	return nil
}

// Run does the order; see engine.Transport. The program of a receiver takes packets from Settle on.
func (t *transport) Run(reading func()) error {
	p := t.frames
	if p == nil {
		return t.Sockets.Run(reading)
	}
	why, err := p.ready() // the kernel may take its time, and Count must not wait for it
	if err != nil {
		return err
	}
	if why.Code != "" {
		t.mu.Lock()
		err := t.giveUp(why)
		t.mu.Unlock()
		if err = errors.Join(err, p.close()); err != nil {
			return err
		}
		return t.Sockets.Run(reading)
	}
	if err := t.OpenStreams(); err != nil {
		return err
	}
	reading()
	return t.Consented(func() error { return p.run(t.Stopped()) }, p.silence, false)
}

// Count is safe for concurrent use.
func (t *transport) Count() engine.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.frames == nil {
		return t.Sockets.Count()
	}
	n := t.frames.count()
	n.Bytes = n.Packets * uint64(t.order.Flow.PayloadBytes)
	return n
}

func (t *transport) Account(r *engine.Report, sent engine.Sent) {
	if t.frames == nil {
		t.Sockets.Account(r, sent)
		r.Engine, r.Why = t.engine.sockets.Name(), t.why
		return
	}
	r.Engine, r.Why = t.engine.Name(), model.Reasons{t.frames.mode()}
	t.frames.account(r, sent)
}

func (t *transport) Close() error {
	var errs []error
	if t.frames != nil {
		errs = append(errs, t.frames.close())
	}
	if t.release != nil {
		errs = append(errs, t.release())
	}
	return errors.Join(append(errs, t.Sockets.Close())...)
}
