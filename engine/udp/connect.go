package udp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/internal/icmp"
	"pelt/model"
)

const (
	// An unanswered message is repeated soon, then after twice the time, up to repeatLate.
	repeatSoon = 100 * time.Millisecond
	repeatLate = 400 * time.Millisecond
	// repeatUnheard is for streams but the first while nothing was heard on any.
	repeatUnheard = 600 * time.Millisecond
	readWait      = 10 * time.Millisecond // how long a read waits before its caller looks up

	// A thread that looks up later than onTime was held up. Such times, up to mostLate, do not count as a peer's
	// silence.
	onTime   = 3 * readWait
	mostLate = 4 * time.Second

	// usuallyUnheard is how long a stream calls on which nothing is heard.
	usuallyUnheard = 5 * time.Second / 2
)

// patience is that of a stream on which nothing is heard.
type patience struct {
	unheard time.Duration
	refused time.Duration // since the second time that something on the way said that no packet gets through
	alone   time.Duration // the first stream calls before the others do: a stranger gets few packets
}

func patienceOf(o engine.Order) patience {
	switch asked := min(time.Duration(o.UnheardNanos), usuallyUnheard); {
	case o.Survey:
		return patience{unheard: 800 * time.Millisecond, refused: time.Second / 2}
	case asked > 0:
		return patience{unheard: asked, refused: time.Second / 2, alone: min(asked/2, 700*time.Millisecond)}
	}
	return patience{unheard: usuallyUnheard, refused: time.Second, alone: 700 * time.Millisecond}
}

func (e *Sockets) Connect(ctx context.Context) (m engine.Meeting, err error) {
	if e.order.Listen {
		m = e.awaitCallers(ctx)
	} else {
		m = e.callAll(ctx)
	}
	if err := e.stopped.Err(); err != nil {
		return m, fmt.Errorf("connect udp: %w", err)
	}
	return m, nil
}

// awaitCallers returns when all streams have met, or at the end of ctx.
func (e *Sockets) awaitCallers(ctx context.Context) (m engine.Meeting) {
	met := make([]bool, len(e.consents))
	for i, c := range e.consents {
		select {
		case <-c.Done():
		case <-e.stopped.Done():
		case <-ctx.Done():
		}
		if met[i] = c.Confirmed(); met[i] { // also if the wait is over at the same time
			e.tokens[i] = c.Token()
		}
	}
	m = e.listening.meeting()
	for i, c := range e.consents {
		one := &m.Streams[i]
		one.Met = met[i]
		one.Heard, one.Sent = c.Counts()
	}
	return m
}

// Tell sends a message over a stream that is open, before Settle.
func (e *Sockets) Tell(stream int, message []byte) error { return e.sockets[stream].write(message) }

// Hear waits for a datagram on a stream of an end that calls, before Settle. It returns nil where none came, or a
// longer one than any header. An error is that of an earlier Tell: the peer, or somebody on the way, refused it.
func (e *Sockets) Hear(stream int, wait time.Duration) ([]byte, error) {
	d, err := e.sockets[stream].read(wait)
	return d.whole(), err
}

// errOnlyLinux refuses what needs one port for all streams.
var errOnlyLinux = engine.Refuse(model.LinuxOnePort)

// Stray is what reached a stream's socket before it was connected: a datagram for the port, of somebody else.
type Stray struct {
	From netip.AddrPort
	Head []byte // its first bytes
}

// Take opens the socket of a stream of an end that listens for a peer that is no pelt. at is one of this host's
// addresses with the port of ListenShared. The caller handles the strays as if they had come to that port. Each stream
// is taken before Settle.
func (e *Sockets) Take(stream int, at, peer netip.AddrPort) (strays []Stray, err error) {
	k, strays, err := e.engine.socketMaker.take(e.host, e.settings, at, peer)
	if err == nil {
		e.sockets[stream] = k
	}
	return strays, err
}

// Stream is the 5-tuple of a stream that is open, or whose peer has met a listening end.
func (e *Sockets) Stream(i int) engine.Stream {
	if e.listening != nil {
		return e.listening.meeting().Streams[i].Stream
	}
	return engine.Stream{Local: e.sockets[i].local(), Remote: e.sockets[i].remote()}
}

func (e *Sockets) callAll(ctx context.Context) (m engine.Meeting) {
	all := &calls{begin: time.Now(), others: make(chan struct{})}
	list := make([]*call, len(e.sockets))
	var wg sync.WaitGroup
	for i := range list {
		c := &call{calls: all, end: e, stream: i, patience: patienceOf(e.order),
			dialer: engine.NewConsentDialer(e.order.StreamKey(i))}
		list[i] = c
		wg.Go(func() {
			if i > 0 {
				<-all.others
			}
			c.run(ctx)
			all.release()
		})
	}
	wg.Wait()
	for i, c := range list {
		w := e.sockets[i]
		c.account.Stream = engine.Stream{Local: w.local(), Remote: w.remote()}
		c.account.Heard = c.dialer.Heard
		m.Streams = append(m.Streams, c.account)
	}
	m.ICMP = all.icmp.list()
	return m
}

// calls are those of all streams of an end.
type calls struct {
	icmp   icmpCounts
	begin  time.Time
	others chan struct{} // closed when not only the first stream calls
	once   sync.Once
	heard  atomic.Pointer[time.Time] // when the listener was heard first, on any stream
}

func (a *calls) release() { a.once.Do(func() { close(a.others) }) }

// call seeks the listener of one stream.
type call struct {
	*calls
	end    *Sockets
	stream int
	patience
	dialer  *engine.ConsentDialer
	account engine.MetStream

	asked     time.Time     // first; its thread may begin late
	late      time.Duration // that this thread was held up: the peer may have been, too
	refusals  int           // how often it was said that no packet gets through
	refusedAt time.Time     // when it was said the second time
}

// run returns when the listener is ready, or when the stream is given up.
func (c *call) run(ctx context.Context) {
	e, w := c.end, c.end.sockets[c.stream]
	w.watchICMP(true)
	defer w.watchICMP(false)
	sent, again := time.Time{}, time.Duration(0)
	for before := time.Now(); ctx.Err() == nil && e.stopped.Err() == nil; {
		now := time.Now()
		c.late += max(now.Sub(before)-onTime, 0)
		before = now
		if c.stream == 0 && (c.heard.Load() != nil || c.refusals > 1 || now.Sub(c.begin) >= c.alone) {
			c.release()
		}
		if c.isOver(now) {
			return
		}
		wait := again
		if again > 0 && c.stream > 0 && c.heard.Load() == nil { // who is there may be a stranger
			wait = repeatUnheard
		}
		if now.Sub(sent) >= wait {
			if c.asked.IsZero() {
				c.asked = now
			}
			c.ask(w)
			sent, again = now, min(max(2*again, repeatSoon), repeatLate)
		}
		d, err := w.read(readWait)
		c.hearICMP(w)
		if err != nil {
			continue // such as an ICMP error for the message before
		}
		turn, done := c.dialer.Hear(d.whole())
		if c.dialer.Heard > 0 && c.heard.Load() == nil {
			now := time.Now()
			c.heard.CompareAndSwap(nil, &now)
		}
		if done {
			e.tokens[c.stream], c.account.Met = c.dialer.Token(), true
			return
		}
		if turn {
			again = 0
		}
	}
}

// isOver reports whether the call is to be given up: nothing was heard for too long, or packets are refused. A stream
// that began late is given as much time as one that began when the first stream no longer called alone.
func (c *call) isOver(now time.Time) bool {
	if c.asked.IsZero() {
		return false
	}
	since := c.begin
	if at := c.heard.Load(); at != nil {
		since = *at
	}
	if own := c.asked.Add(-c.alone); own.After(since) {
		since = own
	}
	silent := now.Sub(since) - min(c.late, mostLate)
	return c.dialer.Heard == 0 && (silent >= c.unheard || c.refusals > 1 && now.Sub(c.refusedAt) >= c.refused)
}

// ask sends what the listener is to answer.
func (c *call) ask(w socket) {
	out := c.dialer.Message()
	c.account.Sent++
	err := w.write(out[:])
	if err != nil && c.hearICMP(w) { // it was that of a packet before
		err = w.write(out[:])
	}
	if err == nil {
		return
	}
	if c.account.Errors == nil {
		c.account.Errors = map[string]uint64{}
	}
	c.account.Errors[causeName(err)]++
	if !isQueueFull(err) && !temporary(err) {
		c.countRefusal()
	}
}

// hearICMP counts what came back.
func (c *call) hearICMP(w socket) (any bool) {
	w.icmpErrors(func(e icmp.Error, _ []byte) {
		any = true
		if c.icmp.note(e); e.Errno != syscall.EMSGSIZE {
			c.countRefusal()
		}
	})
	return any
}

// countRefusal counts a sign that packets are refused: an ICMP error, or an error of the send call. The second one
// sets refusedAt.
func (c *call) countRefusal() {
	if c.refusals++; c.refusals == 2 {
		c.refusedAt = time.Now()
	}
}

// Settle keeps the streams that carry packets; see engine.Transport.
func (e *Sockets) Settle(living []bool) error {
	var errs []error
	for i, lives := range living {
		switch {
		case lives:
			e.living = append(e.living, i)
		case i < len(e.sockets):
			errs = append(errs, e.sockets[i].close())
			e.sockets[i] = nil
		}
	}
	e.role = newRole(e)
	return errors.Join(errs...)
}

// Consented runs a sender. It calls end for each stream whose receiver no longer consents: that stream must send no
// more. An end that does not send just runs. moves says that packets go where the sockets are connected to.
func (e *Sockets) Consented(run func() error, end func(stream int), moves bool) error {
	if e.order.Role == engine.Receive && !e.order.Listen && e.codec == nil {
		e.last = make([]lastAnswer, e.order.Flow.Streams)
		over := make(chan struct{})
		var repeating sync.WaitGroup
		repeating.Go(func() { e.repeatAnswers(over) })
		defer repeating.Wait() // it uses the sockets
		defer close(over)
	}
	if e.order.Role != engine.Send || e.codec != nil {
		return run()
	}
	k := &keeper{engine.NewConsentKeeper(e.order, e.now()), e, end}
	defer k.Close()
	for i := range e.order.Flow.Streams {
		if !slices.Contains(e.living, i) {
			k.End(i)
		}
	}
	e.engine.keepers.add(k)
	defer e.engine.keepers.remove(k)
	if moves && e.follower != nil {
		e.follower.keep(k)
		defer e.follower.keep(nil)
	}
	return run()
}

// lastAnswer is the newest answer to a check.
type lastAnswer struct {
	mu      sync.Mutex
	message engine.ConsentMessage
	at      int64 // when it was given; 0 for none
}

// While no check comes, for so long at least, a receiver that calls repeats its last answer: a NAT that has forgotten
// the flow lets nothing in before.
const (
	uncheckedNanos = 600_000_000
	repeatAnswer   = 200 * time.Millisecond
)

func (e *Sockets) repeatAnswers(over <-chan struct{}) {
	tick := time.NewTicker(repeatAnswer)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		for _, i := range e.living {
			last := &e.last[i]
			last.mu.Lock()
			silent := e.now() - last.at
			if last.at > 0 && silent >= uncheckedNanos && silent < engine.ConsentLasts.Nanoseconds() {
				_ = e.sockets[i].try(last.message[:])
			}
			last.mu.Unlock()
		}
	}
}

// answerCheck answers a datagram if it is a check of the sender.
func (e *Sockets) answerCheck(stream int, d datagram) {
	if e.codec != nil {
		return
	}
	if m, number, ok := e.order.StreamKey(stream).AnswerCheck(d.whole()); ok {
		if e.follower != nil {
			e.follower.note(stream, number)
		}
		if e.last != nil {
			last := &e.last[stream]
			last.mu.Lock()
			last.message, last.at = m, e.now()
			last.mu.Unlock()
		}
		_ = e.sockets[stream].try(m[:]) // the sender asks again
	}
}
