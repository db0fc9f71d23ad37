package fleet

import (
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// listener passes what agents tell to the sessions of a controller, which has one subscription for all. Its lock is
// not the link's: that one is held while the NATS client connects.
type listener struct {
	mu     sync.Mutex
	takers map[string]func(agent string, data []byte) // by SESSION
	sub    *nats.Subscription                         // nil before the first
	missed int                                        // messages that takers had no time for, as told last
}

// listen calls f with each message of an agent about a session of this controller, one after the other. A nil f ends
// that.
func (l *link) listen(session string, f func(agent string, data []byte)) (err error) {
	e := &l.listener
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() { l.sessions.Store(int32(len(e.takers))) }()
	switch {
	case f == nil:
		delete(e.takers, session)
		return nil
	case l.nc.IsClosed():
		return errLost
	case e.sub == nil:
		if e.sub, err = l.subscribe("pelt.session."+l.client+".*.*", e.take); err != nil {
			return err
		}
		e.takers = map[string]func(string, []byte){}
	}
	e.takers[session] = f
	return nil
}

func (e *listener) take(m *nats.Msg) {
	words := strings.Split(m.Subject, ".")
	e.mu.Lock()
	f := e.takers[words[3]]
	e.mu.Unlock()
	if f != nil {
		f(words[4], m.Data)
	}
}

// overrun returns how many messages were dropped since the call before, because they were not taken in time.
func (e *listener) overrun() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sub == nil {
		return 0
	}
	now, err := e.sub.Dropped()
	if err != nil { // the connection is gone, and its trial is cut
		return 0
	}
	before := e.missed
	e.missed = now
	return uint64(now - before)
}
