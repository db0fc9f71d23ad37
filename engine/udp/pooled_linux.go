package udp

import (
	"math"

	"pelt/engine"
)

// pooledSending is one stream of those that a worker sends. Its turns do what sending.work
// does in one go, and wait for nothing.
type pooledSending struct {
	*sending
	due          int64 // when it wants its next turn
	done         chan error
	*threadTimes // of the thread that sends it

	*phase         // the present one: the warm-up, then the measured part
	start    int64 // of it
	rest     int   // packets whose time has come and that found no room yet
	noRoom   int64 // since when the socket has had no room; 0: it has some
	cpu      int64
	cpuKnown bool
}

// begin sets the first phase.
func (c *pooledSending) begin(at int64) {
	o := c.sender.end.order
	if o.Timing.Warmup() > 0 {
		c.trial = o.Trial ^ engine.WarmupBit
		c.enter(&c.phases[0], at)
		return
	}
	c.measure(at)
}

// measure begins the measured part.
func (c *pooledSending) measure(start int64) {
	o := c.sender.end.order
	c.trial, c.sequence, c.measured, c.lastSend = o.Trial, 0, true, 0
	c.stepTo = start + engine.StepNanos
	c.enter(&c.phases[1], start)
}

func (c *pooledSending) enter(p *phase, start int64) {
	c.phase, c.start, c.due, c.rest = p, start, start, 0
	if c.measured && c.paced {
		c.planned = c.pacer.Slots()
	}
}

// turn sends what is due, a batch at most. over is true when there is no more to
// do, because all is sent, it is stopped, or sending is hopeless.
func (c *pooledSending) turn(now int64) (over bool, err error) {
	if c.measured && !c.cpuKnown {
		c.cpu, c.cpuKnown = threadNanos()
	}
	stopped := c.waiter.stop.isSet()
	switch {
	case stopped && c.measured && c.paced:
		c.planned = c.pacer.Planned(max(now-c.start, 0))
	case stopped:
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
	case stopped || err != nil:
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

func (c *pooledSending) pace(now int64) (over bool, err error) {
	if c.rest == 0 {
		if c.due = c.nextDue(); c.due > now {
			return false, nil
		}
		if _, ok := c.pacer.Next(); !ok {
			return true, nil
		}
		c.rest = c.take(&c.pacer, c.start, now, c.threadTimes)
	}
	now, sent, err := c.emitSome(c.rest, now)
	if c.rest -= sent; c.rest > 0 && now >= c.start+c.length {
		c.hold(&c.pacer, c.rest) // out of time while there was no room
		c.rest = 0
	}
	if c.rest == 0 && err == nil {
		c.due = c.nextDue()
	}
	return false, err
}

// nextDue is when the next packets are due; after the last slot its time runs to the end.
func (c *pooledSending) nextDue() int64 {
	if at, ok := c.pacer.Next(); ok {
		return c.start + at
	}
	return c.start + c.length
}

func (c *pooledSending) flood(now int64) (over bool, err error) {
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
func (c *pooledSending) emitSome(n int, now int64) (after int64, sent int, err error) {
	if c.noRoom > 0 {
		c.waited(now - c.noRoom)
		c.noRoom = 0
	}
	before := c.sequence
	n = min(n, len(c.bytes))
	after, err = c.emit(n, now, c.start+c.length)
	c.due = after
	if sent = int(c.sequence - before); sent < n {
		c.noRoom, c.due = after, after+int64(noRoom)
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
func (c *pooledSending) end() {
	c.readFaults(nil)
	if !c.measured {
		return
	}
	c.ended = c.clock.Now()
	if used, ok := threadNanos(); ok && c.cpuKnown && c.ended > c.start {
		c.threadRatio = float64(used-c.cpu) / float64(c.ended-c.start)
	}
	if c.late > 0 {
		c.times.behind = c.threadTimes.behind
	}
	c.flush()
}
