package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// link is one connection to a hub. One to another host is made anew whenever it breaks, until it is closed. Trials end
// by themselves when their link is away for too long.
//
// Beats go through an outbox of their own, because a starved TCP connection
// makes NATS's Publish block, and the goroutine that beats is the one that
// must notice silence.
type link struct {
	client   string // CLIENT of the subjects
	agent    string // whose connection it is, at a hub of other hosts; "" for a controller's
	nc       *nats.Conn
	lost     chan struct{} // closed when the connection is gone
	quit     chan struct{} // closed when it is no longer needed
	outbox   chan *nats.Msg
	dropped  atomic.Uint64      // beats the outbox had no room for
	beats    *nats.Subscription // of a controller: to the heartbeats of agents
	missed   atomic.Uint64      // of these, as told last
	sessions atomic.Int32       // that beat over it
	closing  atomic.Bool
	refused  atomic.Bool // that of a fleet came back with a code that the hub does not know any more
	stop     func()
	posting  sync.WaitGroup
	fleet    bool                 // the hub is one of many hosts
	seen     netip.Addr           // where the hub sees it come from; invalid if it does not tell
	from     netip.Addr           // see HubAddress
	device   string               // likewise
	addr     netip.AddrPort       // that admitted it; invalid in process
	told     func(connected bool) // is told when the connection broke, and when it is back

	mu    sync.Mutex
	raw   net.Conn      // nil in process
	again chan struct{} // closed when it is connected again
	broke time.Time     // since when it is not connected; zero while it is
	heard time.Time     // when something came over it last
	tried time.Time     // when it was made anew last, or is to be
}

// How many beats may wait: of each session, and of all. Sessions that begin together beat together.
const (
	outboxSize = 64
	outboxMost = 2048
)

func newLink() *link {
	l := &link{client: randomHex(),
		lost: make(chan struct{}), quit: make(chan struct{}), outbox: make(chan *nats.Msg, outboxMost),
		again: make(chan struct{}), told: func(bool) {}}
	l.stop = sync.OnceFunc(func() { close(l.lost) })
	return l
}

// agentPrefix and an agent's ID are what its connection is called, which tells the admission whose it is.
const agentPrefix = "pelt agent "

// stayPing is how often a connection of a fleet is tried; after [pingsOut] without an answer it is made anew.
const stayPing = 5 * time.Second

// inboxPrefix and CLIENT are where a client takes replies.
const inboxPrefix = "pelt.inbox."

func (l *link) options() []nats.Option {
	opts := []nats.Option{
		nats.Name(agentPrefix + l.agent), nats.CustomInboxPrefix(inboxPrefix + l.client),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut), nats.FlusherTimeout(writeDeadline),
		nats.ClosedHandler(func(*nats.Conn) { l.stop() }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default prints
	}
	if l.fleet { // nothing else finds out that it broke
		opts = append(opts, nats.PingInterval(stayPing), nats.NoEcho())
	}
	return opts
}

// flushTime is how long what still has to go out may take when the link is closed.
const flushTime = 500 * time.Millisecond

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
			case <-l.quit:
				for len(l.outbox) > 0 {
					_ = nc.PublishMsg(<-l.outbox)
				}
				_ = nc.FlushTimeout(flushTime)
				return
			}
		}
	})
}

// post sends a beat some time soon, or drops it: the next one says the same.
func (l *link) post(subject string, b beat) {
	data, _ := json.Marshal(b) // what a beat holds always marshals
	// older ones would delay those that tell something new
	if len(l.outbox) >= outboxSize*int(max(1, l.sessions.Load())) {
		l.dropped.Add(1)
		return
	}
	select {
	case l.outbox <- &nats.Msg{Subject: subject, Data: data}:
	default:
		l.dropped.Add(1)
	}
}

// request gets what a reply holds, or the error that is in it.
func (l *link) request(ctx context.Context, subject string, data []byte) (json.RawMessage, error) {
	answer, err := l.ask(ctx, subject, data)
	switch {
	case err == nil:
		return open(answer)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errLate
	}
	return nil, err
}

// ask is one request and its reply. It returns when ctx ends even if the connection is
// stuck, and asks again over a connection that was made anew: the answer may never come.
func (l *link) ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	type result struct {
		msg *nats.Msg
		err error
	}
	for {
		again := l.reconnection()
		try, cancel := context.WithCancel(ctx)
		answered := make(chan result, 1)
		go func() {
			m, err := l.nc.RequestMsgWithContext(try, &nats.Msg{Subject: subject, Data: data})
			if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrDisconnected) {
				return // the client gives up what it waits for when a connection breaks
			}
			answered <- result{m, err}
		}()
		var r result
		select {
		case r = <-answered:
		case <-l.lost:
			r.err = errLost
		case <-ctx.Done():
			r.err = ctx.Err()
		case <-again:
			cancel()
			continue
		}
		cancel()
		switch {
		case r.err == nil:
			l.noteHeard(time.Now())
			return r.msg.Data, nil
		case errors.Is(r.err, nats.ErrNoResponders):
			return nil, errNobody
		case errors.Is(r.err, errLost), errors.Is(r.err, context.Canceled), errors.Is(r.err, context.DeadlineExceeded):
			return nil, r.err
		}
		return nil, natsError(r.err)
	}
}

// subscribe calls f on a goroutine of the subscription, message after message.
func (l *link) subscribe(subject string, f func(m *nats.Msg)) (*nats.Subscription, error) {
	s, err := l.nc.Subscribe(subject, f)
	if err == nil {
		err = s.SetPendingLimits(1<<15, 8<<20) // what 1000 agents tell in 8 s
	}
	if errors.Is(err, nats.ErrConnectionClosed) {
		return nil, errLost
	}
	if err != nil {
		return nil, natsError(err)
	}
	return s, nil
}

// close sends what is in the outbox and the client's buffers if that takes no longer than
// flushTime, then closes the connection.
func (l *link) close() {
	if l.closing.Swap(true) {
		return
	}
	unstick := time.AfterFunc(flushTime, func() {
		if raw := l.socket(); raw != nil { // frees a writer that is stuck with the client's lock held
			_ = raw.SetWriteDeadline(time.Now())
		}
	})
	defer unstick.Stop()
	close(l.quit)
	l.posting.Wait()
	if l.nc.IsConnected() {
		_ = l.nc.FlushTimeout(flushTime) // a hub that ends right after this has read it all, and hands it on
	}
	l.nc.Close()
	<-l.lost
}
