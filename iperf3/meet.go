package iperf3

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/finding"
	"pelt/internal/bind"
	"pelt/model"
)

const (
	patience  = 10 * time.Second // for the next state, and for results
	replyWait = 2 * time.Second  // for the answer to a stream's request
	lookEvery = 100 * time.Millisecond
	mostTries = 3 // of a whole test whose requests or replies are lost

	// A server opens its listener anew after each test. For so long a client that is refused tries again.
	betweenTests = 2 * time.Second
	firstPause   = 50 * time.Millisecond
	mostPause    = 400 * time.Millisecond

	mostRefused = 8 // requests of one stream that find no port: they were read by nobody, so they are repeated
)

// meet opens the test and its streams, and tells the far ends.
func (t *test) meet(ctx context.Context) error {
	t.meeting.Do(func() {
		defer close(t.met)
		for try := 1; ; try++ {
			t.err = t.open(ctx)
			if t.err == nil || !errors.Is(t.err, errNoReply) || try == mostTries || ctx.Err() != nil {
				break
			}
		}
		if t.err != nil {
			t.err = t.explain(t.err)
		} else if t.last() == nil {
			close(t.running)
		}
	})
	return t.err
}

// open goes from the control connection to the moment when the server counts data. Of a test in which the server sends
// the last stream is left: see start.
func (t *test) open(ctx context.Context) error {
	k, err := t.enter(ctx)
	if err != nil {
		return err
	}
	started, err := t.openStreams(ctx, k)
	if err == nil && t.last() == nil && !started {
		err = k.expect(ctx, patience, testStart)
	}
	if err == nil && t.last() == nil {
		err = k.expect(ctx, patience, testRunning, testStart)
	}
	if err != nil {
		_ = k.send(clientTerminate)
		return errors.Join(err, k.close())
	}
	t.control = k
	return nil
}

// openStreams tells the server what is asked for, and opens the streams. started says that the server has begun.
func (t *test) openStreams(ctx context.Context, k *control) (started bool, err error) {
	if err := k.sendJSON(t.params()); err != nil {
		return false, err
	}
	switch err := k.expect(ctx, patience, createStreams); {
	case errors.Is(err, errClosed): // up to 3.19 it does not say why
		return false, finding.NewFault(model.IperfUnexplained)
	case err != nil:
		return false, err
	}
	for i, l := range t.legs {
		if i > 0 && !started { // a server that knows both waits for more streams
			select {
			case e := <-k.events:
				started = true
				if err := e.problem(testStart); err != nil {
					return false, err
				}
			case <-time.After(2*t.trip + settles):
			}
		}
		if started {
			return false, finding.NewFault(model.IperfOneWay)
		}
		if started, err = l.near.open(ctx, k); err != nil {
			return started, err
		}
	}
	return started, nil
}

// start has the server open the last stream, upon which it begins. It tries again until the server says that it has:
// one that only sends reads nothing from its streams. A server that has begun before is not asked.
func (t *test) start(ctx context.Context) error {
	l := t.last()
	again, late := time.NewTicker(lookEvery), time.NewTimer(replyWait)
	defer again.Stop()
	defer late.Stop()
	failed := l.openLast()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return cmp.Or(failed, errNoReply)
		case <-again.C:
			failed = l.openLast()
		case e, isOpen := <-t.control.events:
			if !isOpen {
				return errClosed
			}
			if err := e.problem(testStart, testRunning); err != nil || e.state == testRunning {
				return err
			}
		}
	}
}

// openLast has the server open the last stream.
func (l *leg) openLast() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		return net.ErrClosed
	}
	return l.held()
}

// enter connects until the server asks for parameters.
func (t *test) enter(ctx context.Context) (*control, error) {
	for until, pause := time.Now().Add(betweenTests), firstPause; ; pause = min(2*pause, mostPause) {
		k, err := t.knock(ctx)
		if err == nil || ctx.Err() != nil || time.Now().Add(pause).After(until) || !between(err) {
			return k, err
		}
		engine.Sleep(ctx, pause)
	}
}

// between reports whether an error may only mean that the server is between two tests.
func between(err error) bool {
	return errors.Is(err, errBusy) || errors.Is(err, errClosed) || errors.Is(err, syscall.ECONNREFUSED)
}

func (t *test) knock(ctx context.Context) (*control, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second, Control: func(_, _ string, raw syscall.RawConn) error {
		return bind.Conn(raw, t.client.device)
	}}
	conn, err := dialer.DialContext(ctx, "tcp", t.client.server.String())
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, finding.NewFault(model.IperfNobody, "text", syscall.ECONNREFUSED).From(syscall.ECONNREFUSED)
	case err != nil:
		return nil, err
	}
	k := newControl(conn.(*net.TCPConn))
	go k.read()
	t.cookie = newCookie()
	asked := time.Now()
	_ = k.write(t.cookie[:]) // an error must not hide that the server is busy, which it says first
	if err := k.expect(ctx, patience, paramExchange); err != nil {
		return nil, errors.Join(err, k.close())
	}
	t.trip = time.Since(asked)
	return k, nil
}

func (t *test) params() params {
	l := t.legs[0]
	f := l.order.Flow
	p := params{UDP: f.Protocol == model.UDP, TCP: f.Protocol == model.TCP,
		Time:     int(math.Ceil(l.order.Timing.MeasureSeconds)),
		Parallel: f.Streams, Len: f.PayloadBytes, Both: len(t.legs) > 1, Reverse: len(t.legs) == 1 && l.down(),
		NoDelay: f.Protocol == model.TCP && !f.Bulk, TOS: f.DSCP << 2, Client: "pelt"}
	if sends := t.last(); sends != nil {
		p.Congestion = sends.order.Flow.Control
	}
	p.Window = f.ReceiveBuffer / 2 // the kernel counts twice what it is asked for
	if p.Reverse {
		p.Window = f.SendBuffer / 2
	}
	if pps, paced := f.Rate.PPS(f.PayloadBytes); paced {
		p.Bandwidth = int64(math.Ceil(pps * float64(8*f.PayloadBytes) / float64(f.Streams)))
	}
	return p
}

var errNoReply error = finding.NewFault(model.IperfNoReply)

// ask opens a stream. The request is never repeated once the server may have read it: it would take the second one for
// data. started says that the server has begun, as it does when only the last reply is lost.
func (t *test) ask(ctx context.Context, k *control, sockets *udp.Sockets, stream int) (started bool, err error) {
	if err := sockets.Tell(stream, request[:]); err != nil {
		return false, finding.NewFault(model.IperfUnsent, "text", err).From(err)
	}
	for until, refused := time.Now().Add(replyWait), 0; ; {
		b, err := sockets.Hear(stream, lookEvery)
		switch {
		case err != nil && refused == mostRefused:
			return false, finding.NewFault(model.IperfUDPRefused, "text", err).From(err)
		case err != nil:
			refused++
			engine.Sleep(ctx, time.Duration(refused)*5*time.Millisecond)
			_ = sockets.Tell(stream, request[:]) // its error is that of the one before
		case isReply(b):
			t.reply = [4]byte(b)
			return false, nil
		}
		select {
		case e := <-k.events:
			return true, e.problem(testStart)
		default:
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if time.Now().After(until) {
			return false, errNoReply
		}
	}
}

// finish ends the test and takes the server's results.
func (t *test) finish() error {
	defer close(t.over)
	k := t.control
	if err := k.send(testEnd); err != nil {
		return err
	}
	if err := k.expect(context.Background(), patience, exchangeResults, testStart, testRunning); err != nil {
		return err
	}
	own := t.own()
	if err := k.sendJSON(own); err != nil {
		return err
	}
	b, err := k.readJSON(mostResults)
	if err != nil {
		return err
	}
	r, err := readResults(b, len(own.Streams))
	if e := k.next(); e.err == nil && e.state == displayResults { // the results are here already
		_ = k.send(iperfDone)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = true
	if err == nil {
		t.results = r
	}
	return err
}
