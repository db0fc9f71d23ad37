package pace

import (
	"math"

	"pelt/unit"
)

// OnOff sends at a constant gap while it is on, from the beginning, and nothing
// while it is off. The gaps run on over what is off as if it were not there, so
// the mean rate is exactly on / (on + off) of the other. Both are in nanoseconds;
// on is positive.
func OnOff(rate unit.Schedule, on, off int64) Clock { return onOff{rate, on, off} }

type onOff struct {
	rate    unit.Schedule
	on, off int64
}

func (o onOff) Due(n uint64) int64 {
	running := o.rate.Due(n)
	times := running / o.on
	if o.off > 0 && times > (math.MaxInt64-running)/o.off {
		return math.MaxInt64
	}
	return running + times*o.off
}

func (o onOff) Count(elapsed int64) uint64 {
	if elapsed <= 0 {
		return 0
	}
	period := plus(o.on, o.off)
	return o.rate.Count(elapsed/period*o.on + min(elapsed%period, o.on))
}

func (o onOff) Slots(phase int64) uint64 { return o.Count(phase) }
func (o onOff) End(n uint64) int64       { return o.Due(n) }

// RandomOnOff is OnOff with times on and off that are independent draws of the
// exponential distributions with those means. The same seed makes the same
// schedule. It counts its periods from the beginning, so these must not be more
// than some ten million.
func RandomOnOff(rate unit.Schedule, on, off int64, seed uint64) Clock {
	o := &randomOnOff{rate: rate, on: on, off: off, seed: seed}
	o.draw()
	return o
}

type randomOnOff struct {
	rate    unit.Schedule
	on, off int64
	seed    uint64

	period  uint64 // where the cursor stands
	running int64  // time on before it
	start   int64  // of it
	goes    int64  // on for so long, then
	pauses  int64  // off
}

func (o *randomOnOff) draw() {
	o.goes = max(exponential(mix(o.seed+(2*o.period+1)*golden), o.on), 1)
	o.pauses = exponential(mix(o.seed+(2*o.period+2)*golden), o.off)
}

func (o *randomOnOff) forward() {
	o.running = plus(o.running, o.goes)
	o.start = plus(plus(o.start, o.goes), o.pauses)
	o.period++
	o.draw()
}

func (o *randomOnOff) back() {
	if o.start == math.MaxInt64 { // what was added is not known any more
		o.period, o.running, o.start = 0, 0, 0
		o.draw()
		return
	}
	o.period--
	o.draw()
	o.running -= o.goes
	o.start -= o.goes + o.pauses
}

func (o *randomOnOff) Due(n uint64) int64 {
	running := o.rate.Due(n)
	if running == math.MaxInt64 {
		return running
	}
	for running < o.running {
		o.back()
	}
	for running-o.running >= o.goes {
		o.forward()
	}
	return plus(o.start, running-o.running)
}

func (o *randomOnOff) Count(elapsed int64) uint64 {
	if elapsed <= 0 {
		return 0
	}
	for elapsed < o.start {
		o.back()
	}
	for elapsed-o.start >= plus(o.goes, o.pauses) {
		o.forward()
	}
	return o.rate.Count(o.running + min(elapsed-o.start, o.goes))
}

func (o *randomOnOff) Slots(phase int64) uint64 { return o.Count(phase) }
func (o *randomOnOff) End(n uint64) int64       { return o.Due(n) }
