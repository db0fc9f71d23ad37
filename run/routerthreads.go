package run

import (
	"sync"
	"time"

	"pelt/lab"
	"pelt/model"
)

// threadWatch reads what the receive threads of a lab's router take of the
// processors in the measured part of a trial. Its methods may be called concurrently.
type threadWatch struct {
	times func() map[string]time.Duration // processor times so far, by interface
	long  time.Duration                   // of the measured part

	mu       sync.Mutex
	timer    *time.Timer // nil before the measured part
	from, to threadTimes
}

// threadTimes is one reading.
type threadTimes struct {
	at time.Time // zero before it was taken
	of map[string]time.Duration
}

func watchThreads(n *lab.Node, t model.Timing) *threadWatch {
	return &threadWatch{long: t.Measure(), times: func() map[string]time.Duration {
		list := map[string]time.Duration{}
		for _, i := range n.Interfaces() {
			if t, err := n.ThreadTime(i.Name); err == nil {
				list[i.Name] = t
			}
		}
		return list
	}}
}

// begin reads now, and again at the end of the measured part.
func (w *threadWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		w.from = threadTimes{time.Now(), w.times()}
		w.timer = time.AfterFunc(w.long, w.end)
	}
}

// end reads for the last time, unless that is done; a trial that was cut ends early.
func (w *threadWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil && w.to.at.IsZero() {
		w.timer.Stop()
		w.to = threadTimes{time.Now(), w.times()}
	}
}

// result is what the busiest thread took of one core, nil if there is none, and all
// of them together in cores. It ends the watch.
func (w *threadWatch) result(node string) (busiest *float64, series []model.Series) {
	w.end()
	seconds, sum := w.to.at.Sub(w.from.at).Seconds(), 0.0
	for iface, before := range w.from.of {
		after, is := w.to.of[iface]
		if !is || after < before || !(seconds > 0) {
			continue
		}
		ratio := (after - before).Seconds() / seconds
		sum += ratio
		if ratio = min(ratio, 1); busiest == nil || ratio > *busiest {
			busiest = &ratio
		}
	}
	if busiest == nil {
		return nil, nil
	}
	return busiest, []model.Series{{Metric: "cpu_thread_ratio", At: node, StepSeconds: seconds, Values: []float64{sum}}}
}
