package userlink

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pelt/lab/impair"
)

// NewPool starts the threads of one lab's cables, which may take so many bytes of memory together.
func NewPool(threads int, memory int64) (*Pool, error) {
	p := &Pool{budget: newBudget(memory)}
	for range max(threads, 1) {
		one, err := newPump(p.budget)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start an emulated link: %w", err), p.Close())
		}
		p.pumps = append(p.pumps, one)
	}
	return p, nil
}

// Close ends all cables, and their interfaces with them.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, one := range p.pumps {
		errs = append(errs, one.close())
	}
	var mu sync.Mutex
	var closing sync.WaitGroup
	room := make(chan struct{}, 64) // each waits for the kernel in a thread
	for _, c := range p.cables {
		closing.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			err := c.close()
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
		})
	}
	closing.Wait()
	p.pumps, p.cables = nil, nil
	return errors.Join(errs...)
}

// Cable is one cable. Its methods may be called concurrently.
type Cable struct {
	fds  [2]int
	ways [2]*way // from the first end to the second, and back
}

// way is one direction of a cable.
type way struct {
	in, out int
	pump    *pump
	link    *impair.Link  // this and what follows belong to the pump's thread
	least   time.Duration // about what a frame spends on it at least
	counts  Counts
	watches []*watch
}

// Open makes a cable. The interfaces are down; toward holds the settings of the
// direction to the second end and of the one back. The pool closes it.
func (p *Pool) Open(a, b End, toward [2]impair.Settings) (*Cable, error) {
	c := &Cable{fds: [2]int{-1, -1}}
	for i, e := range []End{a, b} {
		err := e.Do(func() (err error) {
			c.fds[i], err = openTAP(e.Name)
			return err
		})
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pumps) == 0 {
		return nil, errors.Join(errors.New("open an emulated link: the pool is closed"), c.close())
	}
	p.next++ // so that what goes one way over many cables is parted, too
	for i := range c.ways {
		one := p.pumps[(p.next+i)%len(p.pumps)]
		c.ways[i] = &way{in: c.fds[i], out: c.fds[1-i], pump: one, link: impair.New(toward[i]),
			least: leastDelay(toward[i])}
	}
	p.cables = append(p.cables, c)
	for _, w := range c.ways {
		var err error
		w.pump.do(func() {
			if err = w.pump.waiter.add(w.in, len(w.pump.ways)); err == nil {
				w.pump.ways = append(w.pump.ways, w)
				w.pump.judge()
			}
		})
		if err != nil {
			return nil, fmt.Errorf("open an emulated link: %w", err) // the pool closes what is there
		}
	}
	return c, nil
}

// leastDelay is about the least that a frame spends on a link.
func leastDelay(s impair.Settings) time.Duration {
	if s.Reorder > 0 { // some wait for nothing
		return 0
	}
	return s.Delay - 3*s.Jitter
}

func (c *Cable) close() error {
	var errs []error
	for _, fd := range c.fds {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}

// Set changes a direction's settings; what is on its way stays as it was meant, and
// what waits for the bottleneck leaves before what comes.
// It panics on settings that their Check refuses.
func (c *Cable) Set(direction int, s impair.Settings) {
	link := impair.New(s)
	w := c.ways[direction]
	w.pump.do(func() {
		link.Follow(w.link)
		w.link, w.least = link, leastDelay(s)
		w.pump.judge()
	})
}

// Counts reads what a direction did.
func (c *Cable) Counts(direction int) (r Counts) {
	w := c.ways[direction]
	w.pump.do(func() { r = w.counts })
	return r
}

// late records how far behind its time a frame leaves.
func (w *way) late(nanos, limit int64) {
	w.counts.lateness[binOf(nanos)]++
	if nanos > limit {
		w.counts.Late++
	}
	w.counts.LatestNS = max(w.counts.LatestNS, nanos)
}
