package observe

import (
	"runtime"
	"slices"
	"time"
)

// probeSleep and probeCount make the sleep test last about 15 ms.
const (
	probeSleep = 200 * time.Microsecond
	probeCount = 50
	clockReads = 2000
)

func examine() survey {
	s := survey{Host: Facts(), os: runtime.GOOS}
	s.clockCost = measureClock()
	s.sleepP50, s.sleepP99 = measureSleep(sleepFor)
	examineSystem(&s)
	return s
}

// measureClock returns the cost of one reading: the least of several runs,
// because everything that disturbs a run makes it longer.
func measureClock() time.Duration {
	best := time.Duration(1<<63 - 1)
	for range 5 {
		start := time.Now()
		last := start
		for range clockReads {
			last = time.Now()
		}
		best = min(best, last.Sub(start))
	}
	return best / clockReads
}

// measureSleep returns how much later than asked a thread wakes.
func measureSleep(sleep func(time.Duration)) (p50, p99 time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var late [probeCount]time.Duration
	for i := range late {
		start := time.Now()
		sleep(probeSleep)
		late[i] = max(time.Since(start)-probeSleep, 0)
	}
	slices.Sort(late[:])
	return late[probeCount/2], late[probeCount*99/100]
}
