package udp

import (
	"pelt/engine"
	"pelt/internal/kernelclock"
)

// threadTimes finds out where a thread's time goes while its schedule is not kept.
// The thread that calls begin must make all calls.
type threadTimes struct {
	thread kernelclock.Thread
	kept   engine.LateTime // the last reading while the schedule was kept, since the thread began
	behind engine.LateTime
}

// readEvery is how often a thread that is on time reads its times, in ns.
const readEvery = 1_000_000

func (t *threadTimes) begin(now int64) {
	t.thread = kernelclock.OpenThread()
	t.kept, _ = t.read(now)
}

// onTime notes that the schedule is kept.
func (t *threadTimes) onTime(now int64) {
	if now-t.kept.Nanos >= readEvery {
		if r, ok := t.read(now); ok {
			t.kept = r
		}
	}
}

// fellBehind adds the time since the schedule was last kept.
func (t *threadTimes) fellBehind(now int64) {
	r, ok := t.read(now)
	if !ok {
		return
	}
	t.behind = t.behind.Plus(r.Minus(t.kept))
	t.kept = r
}

func (t *threadTimes) end() {
	t.thread.Close()
	t.thread = kernelclock.Thread{}
}

func (t *threadTimes) read(now int64) (r engine.LateTime, ok bool) {
	run, wait, ok := t.thread.Read()
	return engine.LateTime{Nanos: now, RunNanos: run, WaitNanos: wait}, ok
}
