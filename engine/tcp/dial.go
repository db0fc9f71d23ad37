package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/engine/tcpinfo"
	"pelt/internal/bind"
	"pelt/internal/icmp"
	"pelt/model"
)

// unanswered is how long the first stream calls where nothing answers: the third of its SYNs, or the fourth, leaves at
// 3 s. What is there is asked for longer.
const unanswered = 3600 * time.Millisecond

// dialAll opens the connections of all streams.
func (e *end) dialAll(ctx context.Context, met *engine.Meeting) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.stopped, func() { cancel(errStopped) })()
	var group sync.WaitGroup
	var counting sync.Mutex
	dial := func(ctx context.Context, i int) {
		err := e.dial(ctx, i)
		var unmet errUnmet
		if errors.As(err, &unmet) {
			counting.Lock()
			defer counting.Unlock()
			unmet.count(met, i)
		} else if err != nil {
			cancel(e.failedAt(i, err))
		}
	}
	alone, end := context.WithTimeout(ctx, unanswered)
	dial(alone, 0) // one stream finds out that the peer is there, so that a stranger gets few packets
	end()
	e.mu.Lock()
	there := e.joined > 0
	e.mu.Unlock()
	for i := 1; i < e.order.Flow.Streams && there && ctx.Err() == nil; i++ {
		group.Go(func() { dial(ctx, i) })
	}
	group.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return nil
}

func (e *end) peer(i int) netip.AddrPort {
	return netip.AddrPortFrom(e.order.Peer.Unmap(), e.order.Ports[i])
}

// dial opens the connection of one stream.
func (e *end) dial(ctx context.Context, i int) error {
	d := net.Dialer{KeepAlive: -1, Control: func(_, _ string, raw syscall.RawConn) error {
		return errors.Join(setOptions(raw, e.order, i), bind.Conn(raw, e.device))
	}}
	d.SetMultipathTCP(false)
	if from := e.order.Flow.Source(i); from.IsValid() || e.order.Flow.SourcePort != 0 {
		local := &net.TCPAddr{IP: from.AsSlice(), Zone: from.Zone()}
		if e.order.Flow.SourcePort != 0 {
			local.Port = e.order.Flow.SourcePort + i
		}
		d.LocalAddr = local
	}
	var open net.Conn
	var tried icmp.Attempt
	err := e.host.Do(func() (err error) { // Go makes the socket for a numeric address on the calling thread
		open, tried, err = icmp.Dial(ctx, d, e.peer(i))
		return err
	})
	if err != nil {
		return e.explain(ctx, err, tried, i)
	}
	conn := open.(*net.TCPConn)
	if err := e.prove(ctx, conn, i); err != nil {
		conn.Close()
		return err
	}
	if !e.take(i, conn) {
		conn.Close()
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.failed != nil {
			return e.failed
		}
		return net.ErrClosed
	}
	return nil
}

// prove does the dialing end's part of the consent.
func (e *end) prove(ctx context.Context, conn *net.TCPConn, i int) error {
	if e.greet != nil {
		return e.greet(i, conn)
	}
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(longAgo) })()
	err := ask(conn, engine.NewConsentDialer(e.order.StreamKey(i)))
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return errUnmet{tried: icmp.Attempt{Sent: sentOver(conn)}} // what followed its first packets was lost
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return &engine.Fault{Why: model.Reason{Code: model.ClosedBefore}, Cause: err}
	}
	return err
}

// ask returns once the listener is ready.
func ask(conn net.Conn, consent *engine.ConsentDialer) error {
	for done := false; !done; {
		message := consent.Message()
		if _, err := conn.Write(message[:]); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, message[:]); err != nil {
			return err
		}
		var turn bool
		if turn, done = consent.Hear(message[:]); !turn && !done {
			return &engine.Fault{Why: model.Reason{Code: model.StrangerAnswers}}
		}
	}
	return nil
}

// explain says why a connection could not be opened, and what to do.
func (e *end) explain(ctx context.Context, err error, tried icmp.Attempt, i int) error {
	var late net.Error
	var errno syscall.Errno
	errors.As(err, &errno)
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return context.Cause(ctx)
	case errors.As(err, &late) && late.Timeout():
		return errUnmet{0, tried}
	case errors.Is(err, syscall.EADDRNOTAVAIL) && e.order.Flow.Source(i).IsValid() && e.order.Flow.SourcePort == 0:
		return engine.Refuse(model.NotOwnAddress, "address", e.order.Flow.Source(i))
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, syscall.EADDRNOTAVAIL) && e.order.Flow.SourcePort != 0:
		return &engine.Fault{Why: model.NewReason(model.LocalPortTaken, "port", e.order.Flow.SourcePort+i), Cause: err}
	case tried.What != "", slices.Contains(refusing, errno):
		return errUnmet{errno, tried}
	}
	return err
}

// refusing are errors by which a peer, a rule or a route refuses a connection.
var refusing = []syscall.Errno{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EACCES,
	syscall.EPERM, syscall.EINVAL}

// errUnmet is of a stream whose first segments nobody answered, or somebody refused.
type errUnmet struct {
	syscall.Errno // 0 if nobody answered
	tried         icmp.Attempt
}

// count adds the attempt to the account of a meeting.
func (u errUnmet) count(met *engine.Meeting, stream int) {
	s := &met.Streams[stream]
	s.Sent = u.tried.Sent
	if u.Errno != 0 {
		s.Sent = max(s.Sent, 1)
	}
	switch {
	case u.Errno == 0:
	case u.tried.What != "":
		one := model.ICMPErrors{What: u.tried.What}
		if u.tried.From.IsValid() {
			one.From = u.tried.From.String()
		}
		i := slices.IndexFunc(met.ICMP, func(e model.ICMPErrors) bool {
			return e.From == one.From && e.What == one.What
		})
		if i < 0 {
			i, met.ICMP = len(met.ICMP), append(met.ICMP, one)
		}
		met.ICMP[i].Packets++
	case u.Errno == syscall.ECONNREFUSED:
		met.Resets++
	default: // this host's own kernel
		s.Errors = map[string]uint64{engine.ErrnoName(u.Errno): 1}
	}
}

// sentOver is how many segments went out over a connection of which none was answered.
func sentOver(conn *net.TCPConn) uint64 {
	sent := uint64(1)
	if raw, err := conn.SyscallConn(); err == nil {
		info, _ := readInfo(raw, false)
		sent += uint64(info.Figure[tcpinfo.Retransmits])
	}
	return sent
}

// failedAt says which address a connection failed at.
func (e *end) failedAt(i int, err error) error {
	why := model.NewReason(model.ConnectFailed, "address", e.peer(i).Addr(), "port", e.peer(i).Port())
	var refusal *engine.Refusal
	var fault *engine.Fault
	switch {
	case errors.As(err, &refusal):
		return err
	case errors.As(err, &fault):
		why.Of = model.Reasons{fault.Why}
	default:
		why.Text = err.Error()
	}
	return &engine.Fault{Why: why, Cause: err}
}
