package udp

import (
	"slices"
	"sync"
	"time"

	"pelt/engine"
)

// keepers keep the consents of an engine's senders. One goroutine makes the checks of all: to be woken costs as much
// as a check.
type keepers struct {
	mu   sync.Mutex // held while checks are made
	list []*keeper
	over chan struct{} // closed when the list becomes empty
}

// keeper keeps the consents of one end's streams. It reads the sockets, as nobody else does who sends.
type keeper struct {
	*engine.ConsentKeeper
	end  *Sockets
	lost func(stream int)
}

// keepersRest is the longest time between two looks at who is due. A new keeper is not due earlier.
const keepersRest = 100 * time.Millisecond

func (all *keepers) add(k *keeper) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.list = append(all.list, k); len(all.list) == 1 {
		all.over = make(chan struct{})
		go all.run(all.over)
	}
}

// remove returns when no more checks of the keeper are made.
func (all *keepers) remove(k *keeper) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.list = slices.DeleteFunc(all.list, func(other *keeper) bool { return other == k })
	if len(all.list) == 0 {
		close(all.over)
	}
}

func (all *keepers) run(over <-chan struct{}) {
	tick := time.NewTimer(keepersRest)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			tick.Reset(all.check())
		}
	}
}

// check makes the checks that are due, and returns how long none is.
func (all *keepers) check() (wait time.Duration) {
	all.mu.Lock()
	defer all.mu.Unlock()
	wait = keepersRest
	for _, k := range all.list {
		for i := range k.end.sockets {
			if k.check(i) {
				k.lost(i)
			}
		}
		wait = min(wait, k.Wait(k.end.now()))
	}
	return wait
}

// mostHeard bounds what is read of a stream at once: a peer may send anything.
const mostHeard = 64

// check reads the answers of a stream and sends the next check if it is due. A lost check is not sent again: others
// follow. lost reports that the stream has just lost its consent.
func (k *keeper) check(stream int) (lost bool) {
	now := k.end.now()
	if !k.Due(stream, now) {
		return false
	}
	w := k.end.sockets[stream]
	for range mostHeard {
		d, err := w.read(0)
		if err == nil && d.nanos == 0 {
			break
		}
		since := k.Hear(stream, d.whole(), now) // with an error, which is an ICMP message, there is nothing in it
		if heard := k.end.engine.config.ConsentHeard; heard != nil {
			heard(stream, since)
		}
	}
	if k.Lost(stream, now) {
		return true
	}
	m := k.Ask(stream, now)
	_ = w.try(m[:])
	return false
}
