package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A transfer by HTTP uses the stream's own connection, which both ends have agreed to:
// the sender says one byte when it begins, the receiver asks, and the answer's body is
// the share of the stream.

// goByte tells the receiver that the measured part has begun.
const goByte = 'g'

// serveHTTP answers the one request of a stream.
func (e *end) serveHTTP(s *stream, share uint64) error {
	if _, err := s.conn.Write([]byte{goByte}); err != nil {
		return err
	}
	var failed error
	answered := make(chan struct{})
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(answered)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.FormatUint(share, 10))
		w.Header().Set("Connection", "close")
		for left := share; left > 0; {
			n, err := w.Write(e.message[:min(left, uint64(len(e.message)))])
			s.bytes.Add(uint64(n))
			left -= uint64(n)
			if err != nil {
				failed = err
				return
			}
			s.writes.Add(1)
		}
	})}
	one := &oneConn{e: e, conn: s.conn, closed: make(chan struct{})}
	// It ends with the one connection that it gets.
	if err := server.Serve(one); !errors.Is(err, net.ErrClosed) {
		return err
	}
	select {
	case <-answered:
		return failed
	case <-e.over:
	case <-e.quit:
	default:
		return errors.New("the receiver asked for nothing")
	}
	return nil
}

// oneConn is a listener that brings one connection, and lends it: the server's close
// ends no more than the serving.
type oneConn struct {
	e      *end
	conn   net.Conn
	taken  bool
	closed chan struct{}
	once   sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.taken {
		l.taken = true
		return lent{l.conn, l.e, func() { l.once.Do(func() { close(l.closed) }) }}, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// lent is a stream's connection in the hands of net/http, whose close is told to its
// lender and whose deadlines never outlast the trial.
type lent struct {
	net.Conn
	e     *end
	close func()
}

func (l lent) Close() error {
	l.close()
	return nil
}

func (l lent) SetDeadline(t time.Time) error      { return l.bound(l.Conn.SetDeadline(t)) }
func (l lent) SetReadDeadline(t time.Time) error  { return l.bound(l.Conn.SetReadDeadline(t)) }
func (l lent) SetWriteDeadline(t time.Time) error { return l.bound(l.Conn.SetWriteDeadline(t)) }

func (l lent) bound(err error) error {
	select {
	case <-l.e.over:
	case <-l.e.quit:
	default:
		return err
	}
	return errors.Join(err, l.Conn.SetDeadline(longAgo))
}

// askHTTP is the receiver's part of a stream: it books the body's bytes.
func (e *end) askHTTP(s *stream, buffer []byte) error {
	var first [1]byte
	if _, err := io.ReadFull(s.conn, first[:]); err != nil {
		return err
	}
	if first[0] != goByte {
		return errors.New("the sender begins with something else than an answer")
	}
	request, err := http.NewRequest(http.MethodGet, "http://pelt/transfer", nil)
	if err != nil {
		return err
	}
	s.asked = time.Since(e.clock.Began)
	// No client, which would follow where the answer leads.
	transport := &http.Transport{
		DisableCompression: true, DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return lent{s.conn, e, func() {}}, nil },
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the sender answers with status %d", answer.StatusCode)
	}
	if share := e.order.Flow.StreamBytes(s.number); answer.ContentLength != int64(share) { // -1 is not told
		return fmt.Errorf("the sender's answer is of %d B; want %d", answer.ContentLength, share)
	}
	for {
		n, err := answer.Body.Read(buffer)
		if n > 0 {
			e.account(s, n, time.Since(e.clock.Began))
		}
		switch {
		case errors.Is(err, io.EOF):
			s.answered = time.Since(e.clock.Began)
			return nil
		case err != nil:
			return err
		}
	}
}
