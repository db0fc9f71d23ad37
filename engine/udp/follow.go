package udp

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"pelt/engine"
)

// follower lets the streams of a listening end follow their peer to a new address: a NAT may give a stream another one
// in mid-run. The peer's newest check moves its stream. A copy of an older check moves nothing, wherever it comes from,
// and who copies the newest one loses the stream again to the peer's own.
//
// A sender that listens gets no checks. It follows its receiver, which repeats an answer while no check comes, to the
// address from which a check that was sent there is answered.
type follower struct {
	order engine.Order
	clock engine.Clock

	mu      sync.Mutex // guards what follows
	streams []followed
	moves   []engine.Move
	strange uint64 // packets of the trial that came from another address than the stream had at the time
	tell    func(stream int, to netip.AddrPort)
	keeper  *keeper // of a sender, while it sends; nil of one whose streams cannot move
}

// followed is one stream.
type followed struct {
	socket       socket // nil: nothing is carried
	peer, before netip.AddrPort
	newest       uint64 // number of the newest check

	// Of a sender: the newest check that was sent to another address, which one, when, and how long no other is sent.
	check engine.ConsentMessage
	to    netip.AddrPort
	at    int64
	rest  time.Duration
}

// A sender waits twice as long before each further check to the same address: the answer may take long.
const (
	shortestRest = 100 * time.Millisecond
	longestRest  = 4 * time.Second
)

func newFollower(o engine.Order, c engine.Clock) *follower {
	return &follower{order: o, clock: c, streams: make([]followed, o.Flow.Streams)}
}

// follow begins to follow, with the streams' sockets.
func (f *follower) follow(sockets []socket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, s := range sockets {
		if s != nil {
			f.streams[i] = followed{socket: s, peer: s.remote()}
		}
	}
}

// close ends it, before the sockets are closed.
func (f *follower) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.streams)
}

// note takes note of a check that came from the stream's address.
func (f *follower) note(stream int, number uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.streams[stream]
	s.newest = max(s.newest, number)
}

// take takes a message from an address that is not that of the stream, or of no stream. ok is false if it is no packet
// and no check of the flow.
func (f *follower) take(stream int, b []byte, from netip.AddrPort) (ok bool) {
	if f.order.Role == engine.Send {
		return false // whoever has the key could make it send to anybody
	}
	if h, test := engine.ParseHeader(b); test {
		f.mu.Lock()
		defer f.mu.Unlock()
		if h.Trial == f.order.Trial {
			f.strange++
		}
		return h.Trial == f.order.Trial
	}
	answer, number, ok := f.order.StreamKey(stream).AnswerCheck(b)
	if !ok {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.streams[stream]
	original := number == s.newest && from == s.before // a copy was faster
	if s.socket == nil || number <= s.newest && !original || from.Addr().Is4() != s.peer.Addr().Is4() {
		return true
	}
	if from == s.peer { // it waited to be read while the stream moved
		s.newest = max(s.newest, number)
		_ = s.socket.try(answer[:])
		return true
	}
	if f.tell != nil {
		f.tell(stream, from)
	}
	if s.socket.follow(from) != nil {
		return true
	}
	if original { // the move was a copy's
		f.moves = slices.DeleteFunc(f.moves, func(m engine.Move) bool { return m.Stream == stream && m.To == s.peer })
	} else {
		s.before, s.newest = s.peer, number
		f.addMove(stream, from)
	}
	s.peer = from
	_ = s.socket.try(answer[:]) // the peer asks again
	return true
}

func (f *follower) addMove(stream int, to netip.AddrPort) {
	if len(f.moves) < engine.MostMoves {
		f.moves = append(f.moves,
			engine.Move{Stream: stream, From: f.streams[stream].peer, To: to, Nanos: f.clock.Now()})
	}
}

// keep has a sender's streams follow, with nil no more.
func (f *follower) keep(k *keeper) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keeper = k
}

// seek takes an answer that came from an address that is not that of the stream. ok says that check is to be sent
// there: an old answer may be a copy. An answer to that moves the stream.
func (f *follower) seek(stream int, b []byte, from netip.AddrPort) (check engine.ConsentMessage, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, k := &f.streams[stream], f.keeper
	if k == nil || s.socket == nil || from == s.peer || from.Addr().Is4() != s.peer.Addr().Is4() {
		return check, false
	}
	all := &k.end.engine.keepers
	all.mu.Lock()
	defer all.mu.Unlock()
	answer, proof := k.Answers(stream, b, s.check)
	now := k.end.now()
	switch {
	case !answer:
	case proof && from == s.to:
		if s.socket.follow(from) == nil {
			k.Hear(stream, b, now)
			f.addMove(stream, from)
			s.peer, s.to = from, netip.AddrPort{}
		}
	case from != s.to || now-s.at >= s.rest.Nanoseconds():
		if s.rest = min(2*s.rest, longestRest); from != s.to {
			s.rest = shortestRest
		}
		s.check, s.to, s.at = k.Ask(stream, now), from, now
		return s.check, true
	}
	return check, false
}

// report returns the moves, and how many packets came from another address than their stream's.
func (f *follower) report() ([]engine.Move, uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.moves, f.strange
}
