package routerlog

import "sync"

// tail keeps the end of what is written to it. It may be used concurrently.
type tail struct {
	mu   sync.Mutex
	ring [tailBytes]byte
	next int  // where the next byte goes
	full bool // all of the ring was written once
}

// add writes less than the ring holds.
func (t *tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := copy(t.ring[t.next:], b)
	if n == len(b) {
		t.next += n
		return
	}
	t.next, t.full = copy(t.ring[:], b[n:]), true
}

// text is what was kept, whole lines only.
func (t *tail) text() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.full {
		return append([]byte(nil), t.ring[:t.next]...)
	}
	all := append(append([]byte(nil), t.ring[t.next:]...), t.ring[:t.next]...)
	for i, c := range all {
		if c == '\n' {
			return all[i+1:]
		}
	}
	return nil
}
