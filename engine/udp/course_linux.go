package udp

import (
	"math"

	"pelt/engine"
)

// course is one stream of those that a hand sends. Its turns do what sending.work
// does in one go, and wait for nothing.
type course struct {
	*sending
	due  int64 // when it wants its next turn
	done chan error

	*phase         // the present one: the warm-up, then the measured part
	start    int64 // of it
	rest     int   // packets whose time has come and that found no room yet
	cpu      int64
	cpuKnown bool
}

// begin sets the first phase.
func (c *course) begin(at int64) {
	o := c.sender.end.order
	if o.Timing.Warmup() > 0 {
		c.trial = o.Trial ^ engine.WarmupBit
		c.enter(&c.phases[0], at)
		return
	}
	c.measure(at)
}

// measure begins the measured part.
func (c *course) measure(start int64) {
	o := c.sender.end.order
	c.trial, c.sequence, c.measured, c.lastSend = o.Trial, 0, true, 0
	c.stepTo = start + engine.StepNanos
	c.enter(&c.phases[1], start)
}

func (c *course) enter(p *phase, start int64) {
	c.phase, c.start, c.due, c.rest = p, start, start, 0
	if c.measured && c.paced {
		c.planned = c.pacer.slots
	}
}

// turn sends what is due, a batch at most. over is true when there is no more to
// do, because all is sent, the bell rang, or sending is hopeless.
func (c *course) turn(now int64) (over bool, err error) {
	if c.measured && !c.cpuKnown {
		c.cpu, c.cpuKnown = threadNanos()
	}
	rang := c.waiter.bell.rang()
	switch {
	case rang && c.measured && c.paced:
		c.planned = c.pacer.count(max(now-c.start, 0))
	case rang:
	case now < c.start:
		c.due = c.start
		return false, nil
	case c.paced:
		over, err = c.pace(now)
	default:
		over, err = c.flood(now)
	}
	if !c.paced && c.measured {
		c.planned = c.attempted.Load()
	}
	switch {
	case rang || err != nil:
		over = true
	case over && !c.measured:
		c.warmupSent = c.sequence
		c.measure(c.start + c.length)
		return false, nil
	}
	if over && !c.measured {
		c.warmupSent = c.sequence
	}
	return over, err
}

func (c *course) pace(now int64) (over bool, err error) {
	if c.rest == 0 {
		at, ok := c.pacer.deadline()
		if !ok {
			at = c.length // after the last slot its time runs to the end
		}
		if c.due = c.start + at; c.due > now || !ok {
			return c.due <= now, nil
		}
		c.rest = int(min(c.pacer.take(now-c.start), math.MaxInt32))
		c.tookLate(c.rest, c.due, now)
		if c.measured {
			c.burstMax = max(c.burstMax, c.rest)
		}
	}
	now, sent, err := c.emitSome(c.rest, now)
	c.rest -= sent
	if now >= c.start+c.length {
		c.rest = 0 // out of time while there was no room
	}
	if c.rest == 0 {
		if at, ok := c.pacer.deadline(); ok {
			c.due = c.start + at
		} else {
			c.due = c.start + c.length
		}
	}
	return false, err
}

func (c *course) flood(now int64) (over bool, err error) {
	share := c.share()
	if now >= c.start+c.length || c.sequence >= share {
		return true, nil
	}
	if c.measured {
		c.burstMax = len(c.bytes)
	}
	_, _, err = c.emitSome(int(min(share-c.sequence, math.MaxInt32)), now)
	return c.sequence >= share, err
}

// emitSome sends a batch at most, and sets the time of the turn after it.
func (c *course) emitSome(n int, now int64) (after int64, sent int, err error) {
	before := c.sequence
	n = min(n, len(c.bytes))
	after, err = c.emit(n, now, c.start+c.length)
	c.due = after
	if sent = int(c.sequence - before); sent < n {
		c.due = after + int64(noRoom)
	}
	if c.refusals.row >= hopelessRow {
		c.due = after + int64(refusedNap)
	}
	if err == nil {
		c.attendTo(after)
	}
	return after, sent, err
}

// end closes the stream's account.
func (c *course) end() {
	c.readFaults(nil)
	if !c.measured {
		return
	}
	c.ended = c.clock.now()
	if used, ok := threadNanos(); ok && c.cpuKnown && c.ended > c.start {
		c.threadRatio = float64(used-c.cpu) / float64(c.ended-c.start)
	}
	c.flush()
}
