package counters

import (
	"context"
	"time"
)

// settlePatience is for foreign traffic that never lets the counters stand still.
const settlePatience = time.Second

// Settle reads until two readings, so far apart, agree, and reports whether they did. read is false if there is no new
// reading. lost says that packets are missing: only then may the late figures of devices matter, of the named
// interfaces or of all.
func Settle(ctx context.Context, apart time.Duration, lost bool, read func() (Snapshot, bool),
	interfaces ...string) bool {
	last, ok := read()
	if !ok {
		return true // there is nothing to wait for
	}
	wait := apart
	if lost {
		wait = max(wait, last.Settling(interfaces...))
	}
	for end := time.Now().Add(wait + settlePatience); ; wait = apart {
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
		now, ok := read()
		switch {
		case ok && !Moving(last, now):
			return true
		case !ok || ctx.Err() != nil || time.Now().After(end):
			return false
		}
		last = now
	}
}

// tcpSlack is how many segments may pass between the reading of one file and
// the next.
const tcpSlack = 8

// Moving reports whether packets of a trial may still have been on their way
// between two snapshots: whether a counter of losses moved, a queue changed, or
// more packets passed than the host's own TCP, the control connection's, say,
// accounts for. Counters that came, went, or went back do not matter.
func Moving(a, b Snapshot) bool {
	type key struct {
		name string
		part part
	}
	before := make(map[key]uint64, len(a.readings))
	for _, r := range a.readings {
		before[key{r.name, part{r.link, r.part}}] = r.value
	}
	moved := func(r reading) uint64 {
		from, known := before[key{r.name, part{r.link, r.part}}]
		if !known {
			if !r.fresh {
				return 0
			}
			from = 0
		}
		if r.role&gauge != 0 {
			return max(from, r.value) - min(from, r.value)
		}
		n, _ := r.advance(from, r.value)
		return n
	}
	segments := uint64(0)
	for _, r := range b.readings {
		if r.role&hidden != 0 {
			segments += moved(r)
		}
	}
	if segments > 0 {
		segments += tcpSlack
	}
	for _, r := range b.readings {
		switch {
		case r.role&(loss|datagrams|gauge) != 0 && moved(r) > 0,
			r.role&packets != 0 && moved(r) > segments:
			return true
		}
	}
	return false
}
