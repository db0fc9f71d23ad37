package iperf3

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/model"
)

// refused says why an order cannot be carried out with an iperf3 server; nil if it can.
func refused(o engine.Order) error {
	f := o.Flow
	pps, paced := f.Rate.PPS(f.PayloadBytes)
	switch {
	case f.Protocol != model.UDP:
		return refuse("pelt speaks to iperf3 servers over UDP only")
	case !o.Traffic():
		return refuse("an iperf3 server answers no probes")
	case f.Streams > mostStreams:
		return refuse("an iperf3 server takes at most %d streams", mostStreams)
	case o.Timing.WarmupSeconds > 0:
		return refuse("an iperf3 server counts all packets: leave the warm-up out")
	case paced && pps/float64(f.Streams)*o.Timing.MeasureSeconds >= 1<<32:
		return refuse("a stream to an iperf3 server has at most 2^32 packets: try a shorter --time, or more --streams")
	}
	return nil
}

func refuse(format string, args ...any) error {
	return &engine.Refusal{Why: fmt.Sprintf(format, args...)}
}

// nearEngine makes the ends at this host.
type nearEngine struct{ client *Client }

// Name is udp: its sockets are.
func (nearEngine) Name() string { return "udp" }

// Open opens the sockets of a sender; see engine.Engine.
func (e nearEngine) Open(_ context.Context, host engine.Host, o engine.Order) (engine.Transport, error) {
	if err := refused(o); err != nil {
		return nil, err
	}
	if o.Role != engine.Send || o.Listen {
		return nil, refuse("pelt only sends to iperf3 servers")
	}
	t, err := e.client.of(o)
	if err != nil {
		return nil, err
	}
	s, err := e.client.udp.SocketsFor(host, o, codec{})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.ends++
	t.mu.Unlock()
	n := &nearEnd{Sockets: s, test: t}
	n.stopped, n.stop = context.WithCancel(context.Background())
	return n, nil
}

// nearEnd sends to the server.
type nearEnd struct {
	*udp.Sockets
	test    *test
	stopped context.Context
	stop    context.CancelFunc
}

// Connect opens the test; see engine.Transport.
func (n *nearEnd) Connect(ctx context.Context) (engine.Meeting, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.stopped, cancel)()
	return n.test.meet(ctx, n.Sockets)
}

// Stop ends Connect and Run.
func (n *nearEnd) Stop() {
	n.stop()
	n.Sockets.Stop()
}

// Account reports what was sent, and keeps it for the server, which is told at the end of the test.
func (n *nearEnd) Account(r *engine.Report, sent engine.Sent) {
	n.Sockets.Account(r, sent)
	n.test.mu.Lock()
	defer n.test.mu.Unlock()
	n.test.sent = slices.Clone(r.Send.Streams)
}

// Close frees everything.
func (n *nearEnd) Close() error {
	n.stop()
	return errors.Join(n.Sockets.Close(), n.test.close())
}

// farEngine makes the ends that stand for the server.
type farEngine struct{ client *Client }

// Name is udp, as that of the near end.
func (farEngine) Name() string { return "udp" }

// Open makes the far end of a test; see engine.Engine.
func (e farEngine) Open(_ context.Context, _ engine.Host, o engine.Order) (engine.Transport, error) {
	if err := refused(o); err != nil {
		return nil, err
	}
	if o.Role != engine.Receive || !o.Listen {
		return nil, refuse("pelt only sends to iperf3 servers")
	}
	return &farEnd{test: e.client.begin(o), stopped: make(chan struct{})}, nil
}

// farEnd stands for the server.
type farEnd struct {
	test    *test
	stopped chan struct{}
	results *results // once the server has sent them
}

// Ports are the server's, the same for each stream.
func (f *farEnd) Ports() []uint16 {
	return slices.Repeat([]uint16{f.test.client.server.Port()}, f.test.order.Flow.Streams)
}

// Connect waits until the near end has met the server.
func (f *farEnd) Connect(ctx context.Context) (m engine.Meeting, err error) {
	select {
	case <-f.test.met:
	case <-ctx.Done():
	case <-f.stopped:
		return m, context.Canceled
	}
	select {
	case <-f.test.met:
	default: // nothing is known of the streams
		m.Streams = make([]engine.MetStream, f.test.order.Flow.Streams)
		return m, nil
	}
	if f.test.err != nil {
		return m, f.test.err
	}
	for _, s := range f.test.meeting.Streams {
		s.Local, s.Remote = s.Remote, s.Local
		m.Streams = append(m.Streams, s)
	}
	return m, nil
}

// Settle does nothing: the server reads already.
func (f *farEnd) Settle([]bool) error { return nil }

// Run returns once the test is over. The end is stopped when all that was sent had time to arrive, and only then is the
// server told: it reads no more from then on.
func (f *farEnd) Run(reading func()) error {
	reading()
	for running := true; running; {
		select {
		case <-f.stopped:
			running = false
		case e, open := <-f.test.control.events:
			if !open {
				e.err = errClosed
			}
			if err := e.problem(testStart, testRunning); err != nil {
				return f.test.explain(err)
			}
		}
	}
	r, err := f.test.finish()
	if err != nil {
		return f.test.explain(err)
	}
	f.results = &r
	return nil
}

// Stop ends Connect and Run.
func (f *farEnd) Stop() { close(f.stopped) }

// Count tells nothing: an iperf3 server reports when the test is over.
func (f *farEnd) Count() (s engine.Snapshot) { return s }

// Pulse exchanges nothing: an iperf3 server answers no probes.
func (f *farEnd) Pulse(uint64, bool) (theirs uint64) { return 0 }

// Account reports what the server did; nothing if it did not say.
func (f *farEnd) Account(r *engine.Report, sent engine.Sent) {
	if f.results == nil {
		return
	}
	r.Receive = &engine.ReceiveReport{}
	tally, peer := f.results.report(f.test.order.Flow.PayloadBytes, sent.Streams, f.test.old)
	r.Receive.Tally, r.Receive.Peer = tally, &peer
}

// Close ends the test.
func (f *farEnd) Close() error { return f.test.close() }
