package engine

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Drain is how a receiver waits for packets that are still on their way.
type Drain struct {
	Time     time.Duration // at most
	Quiet    time.Duration // silence that ends it; 0: a quarter of the time, at most a second
	Want     uint64        // what left the sender
	Age      time.Duration // of what Heard counts
	Received func() uint64 // distinct packets so far
	Heard    func() uint64 // packets that came, of whatever kind
	Quit     <-chan struct{}
}

// longestQuiet is how long a silence may be in a drain of whatever length.
const longestQuiet = time.Second

// Wait returns when all has arrived, when nothing has arrived for some time, or
// when the time is over; cut says that packets still came then.
func (d Drain) Wait(ctx context.Context) (cut bool) {
	over := time.NewTimer(d.Time)
	defer over.Stop()
	tick := time.NewTicker(min(max(d.Time/100, 200*time.Microsecond), 2*time.Millisecond))
	defer tick.Stop()
	quiet := d.Quiet
	if quiet == 0 {
		quiet = min(d.Time/4, longestQuiet)
	}
	if n := d.Heard(); n > 0 { // large packets over a slow link come further apart
		quiet = max(quiet, min(3*d.Age/time.Duration(min(n, math.MaxInt32)), d.Time))
	}
	first := d.Heard()
	last, since := first, time.Now()
	for d.Received() < d.Want {
		seen := d.Heard()
		if now := time.Now(); seen != last {
			last, since = seen, now
		} else if now.Sub(since) >= quiet {
			return false
		}
		select {
		case <-tick.C:
		case <-over.C:
			return last != first
		case <-ctx.Done():
			return false
		case <-d.Quit:
			return false
		}
	}
	return false
}

// CutOff is what a receiver warns of when its drain was cut.
func CutOff(d time.Duration) string {
	return fmt.Sprintf("packets still came when the drain time of %v was over: those left in a queue on the path count as lost; a longer drain counts them", d)
}

// Left is how many packets left a sender that attempted so many of each stream.
func Left(attempted []uint64, unsent uint64) (n uint64) {
	for _, k := range attempted {
		n += k
	}
	return n - min(unsent, n)
}
