package run

import (
	"context"
	"sync"
	"time"

	"pelt/lab"
	"pelt/model"
)

// threadWatch reads what the receive threads of a lab's router take of the
// processors in the measured part of a trial. Its methods may be called concurrently.
type threadWatch struct {
	read func() map[string]time.Duration // processor times so far, by interface
	long time.Duration                   // of the measured part

	start   sync.Once
	stop    context.CancelFunc
	stopped context.Context
	done    sync.WaitGroup
	seconds []float64 // since the begin, of each reading
	times   []map[string]time.Duration
}

func watchThreads(n *lab.Node, t model.Timing) *threadWatch {
	return newThreadWatch(t.Measure(), func() map[string]time.Duration {
		list := map[string]time.Duration{}
		for _, i := range n.Interfaces() {
			if t, err := n.ThreadTime(i.Name); err == nil {
				list[i.Name] = t
			}
		}
		return list
	})
}

func newThreadWatch(long time.Duration, read func() map[string]time.Duration) *threadWatch {
	w := &threadWatch{long: long, read: read}
	w.stopped, w.stop = context.WithCancel(context.Background())
	return w
}

const threadStep = time.Second

// begin starts to read: now, each second, and at the end of the measured part.
func (w *threadWatch) begin() {
	w.start.Do(func() { w.done.Go(w.run) })
}

func (w *threadWatch) run() {
	begun := time.Now()
	for due := time.Duration(0); ; due = min(due+threadStep, w.long) {
		select {
		case <-time.After(time.Until(begun.Add(due))):
		case <-w.stopped.Done():
			return
		}
		w.seconds, w.times = append(w.seconds, time.Since(begun).Seconds()), append(w.times, w.read())
		if due == w.long {
			return
		}
	}
}

// end ends it early, as a trial that was cut does; it may be called again.
func (w *threadWatch) end() {
	w.start.Do(func() {}) // it cannot begin any more
	w.stop()
	w.done.Wait()
}

// result is what the busiest thread took of one core, nil if there is none, and all
// of them in cores over whole seconds. It ends the watch.
func (w *threadWatch) result(node string) (busiest *float64, series []model.Series) {
	w.end()
	last := len(w.times) - 1
	if last < 1 {
		return nil, nil
	}
	ratio := func(iface string, from, to int) (float64, bool) {
		a, was := w.times[from][iface]
		b, is := w.times[to][iface]
		return (b - a).Seconds() / (w.seconds[to] - w.seconds[from]), was && is && b >= a
	}
	for iface := range w.times[0] {
		if r, ok := ratio(iface, 0, last); ok && (busiest == nil || r > *busiest) {
			r = min(r, 1)
			busiest = &r
		}
	}
	if busiest == nil {
		return nil, nil
	}
	s := model.Series{Metric: "cpu_thread_ratio", At: node, StepSeconds: threadStep.Seconds()}
	for i := 1; i <= last; i++ {
		if i == last && w.seconds[i]-w.seconds[i-1] < threadStep.Seconds()/2 {
			break // the rest of the last second, and not a reading after one that came late
		}
		sum := 0.0
		for iface := range w.times[0] {
			if r, ok := ratio(iface, i-1, i); ok {
				sum += r
			}
		}
		s.Values = append(s.Values, sum)
	}
	if len(s.Values) > 0 {
		series = append(series, s)
	}
	return busiest, series
}
