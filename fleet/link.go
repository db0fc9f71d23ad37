package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// link is one connection to a hub. A trial that lost its control connection is
// over, unless it was ordered with patience: for so long it is made anew.
//
// Beats go through an outbox of their own, because a starved TCP connection
// makes NATS's Publish block, and the goroutine that beats is the one that
// must notice silence.
type link struct {
	client  string // CLIENT of the subjects
	far     string // who is lost with it, for people
	nc      *nats.Conn
	lost    chan struct{} // closed when the connection is gone
	outbox  chan *nats.Msg
	dropped atomic.Uint64 // beats the outbox had no room for
	closing atomic.Bool
	stop    func()
	posting sync.WaitGroup
	heard   atomic.Int64 // when something came over it last, in nanoseconds since heardEpoch

	mu       sync.Mutex
	raw      net.Conn      // nil in process
	patience time.Duration // 0: it ends with its connection
	again    chan struct{} // closed when it is connected again
	overdue  *time.Timer   // ends it, while it is not connected
}

func newLink(client string, raw net.Conn) *link {
	l := &link{client: client, far: "the far host", raw: raw, lost: make(chan struct{}), outbox: make(chan *nats.Msg, 64), again: make(chan struct{})}
	l.stop = sync.OnceFunc(func() { close(l.lost) })
	return l
}

func (l *link) options(name string) []nats.Option {
	return []nats.Option{
		nats.Name(name), nats.CustomInboxPrefix("pelt.inbox." + l.client),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut), nats.FlusherTimeout(writeDeadline),
		nats.ClosedHandler(func(*nats.Conn) { l.stop() }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default prints
		nats.IgnoreDiscoveredServers(), nats.SkipHostLookup(),
	}
}

// use takes a connection made with options, and starts the outbox.
func (l *link) use(nc *nats.Conn) {
	l.nc = nc
	l.posting.Go(func() {
		for {
			select {
			case <-l.lost:
				return
			case m := <-l.outbox:
				_ = nc.PublishMsg(m) // fails only with the connection, and then lost is closed
			}
		}
	})
}

// post sends a beat some time soon, or drops it: the next one says the same.
func (l *link) post(subject string, data []byte) {
	select {
	case l.outbox <- &nats.Msg{Subject: subject, Data: data}:
	default:
		l.dropped.Add(1)
	}
}

// ask is one request and its reply. It returns when ctx ends even if the
// connection is stuck.
func (l *link) ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	for {
		answer, err := l.askOnce(ctx, subject, data)
		if !errors.Is(err, errAgain) {
			return answer, err
		}
	}
}

// errAgain: the connection was made anew while an answer was awaited, so that it
// may never come.
var errAgain = errors.New("the connection was interrupted")

func (l *link) askOnce(ctx context.Context, subject string, data []byte) ([]byte, error) {
	type result struct {
		msg *nats.Msg
		err error
	}
	again, held := l.renewed()
	ask, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan result, 1)
	go func() {
		m, err := l.nc.RequestMsgWithContext(ask, &nats.Msg{Subject: subject, Data: data})
		answered <- result{m, err}
	}()
	select {
	case r := <-answered:
		switch {
		case r.err == nil:
			l.hears(time.Now())
			return r.msg.Data, nil
		case errors.Is(r.err, nats.ErrNoResponders):
			return nil, errors.New("nobody of that name is on the hub any more")
		case held && (errors.Is(r.err, nats.ErrConnectionClosed) || errors.Is(r.err, nats.ErrDisconnected)):
			select { // the client gives up what it waits for when a connection breaks
			case <-again:
				return nil, errAgain
			case <-l.lost:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return nil, ErrLost
		case errors.Is(r.err, nats.ErrConnectionClosed):
			return nil, ErrLost
		}
		if errors.Is(r.err, context.Canceled) || errors.Is(r.err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("asking over the control connection: %w", r.err)
		}
		return nil, errors.New("asking over the control connection: " + plainText(r.err.Error()))
	case <-again:
		return nil, errAgain
	case <-l.lost:
		return nil, ErrLost
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// subscribe calls f on a goroutine of the subscription, message after message.
func (l *link) subscribe(subject string, f func(m *nats.Msg)) (*nats.Subscription, error) {
	s, err := l.nc.Subscribe(subject, f)
	if err == nil {
		err = s.SetPendingLimits(4096, 8<<20)
	}
	if errors.Is(err, nats.ErrConnectionClosed) {
		return nil, ErrLost
	}
	if err != nil {
		return nil, fmt.Errorf("subscribing to %s: %w", subject, err)
	}
	return s, nil
}

// close hands over what is in the outbox and the client's buffers if that
// takes less than half a second, then closes the connection.
func (l *link) close() {
	if l.closing.Swap(true) {
		return
	}
	const patience = 500 * time.Millisecond
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		for {
			select {
			case m := <-l.outbox:
				_ = l.nc.PublishMsg(m)
				continue
			default:
			}
			break
		}
		_ = l.nc.FlushTimeout(patience)
	}()
	select {
	case <-flushed:
	case <-deadline.C:
	case <-l.lost:
	}
	if raw := l.socket(nil); raw != nil { // frees a writer that is stuck with the client's lock held
		_ = raw.SetWriteDeadline(time.Now())
	}
	<-flushed
	l.nc.Close()
	<-l.lost
	l.posting.Wait()
}
