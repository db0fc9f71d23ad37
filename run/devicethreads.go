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
	read func() map[string]time.Duration // processor times so far, by interface
	long time.Duration                   // of the measured part

	mu      sync.Mutex
	begun   bool
	quit    chan struct{}
	done    sync.WaitGroup
	seconds []float64 // since the begin, of each reading
	times   []map[string]time.Duration
}

func watchThreads(n *lab.Node, t model.Timing) *threadWatch {
	return &threadWatch{long: t.Measure(), quit: make(chan struct{}), read: func() map[string]time.Duration {
		list := map[string]time.Duration{}
		for _, i := range n.Interfaces() {
			if t, err := n.ThreadTime(i.Name); err == nil {
				list[i.Name] = t
			}
		}
		return list
	}}
}

// begin starts to read: now, each second, and at the end of the measured part.
func (w *threadWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun || w.closed() {
		return
	}
	w.begun = true
	begun := time.Now()
	w.take(begun)
	w.done.Go(func() {
		for k := 1; ; k++ {
			due := min(time.Duration(k)*threadStep, w.long)
			wait := time.NewTimer(time.Until(begun.Add(due)))
			select {
			case <-wait.C:
			case <-w.quit:
				wait.Stop()
				return
			}
			w.take(begun)
			if due == w.long {
				return
			}
		}
	})
}

const threadStep = time.Second

func (w *threadWatch) closed() bool {
	select {
	case <-w.quit:
		return true
	default:
		return false
	}
}

func (w *threadWatch) take(begun time.Time) {
	w.seconds, w.times = append(w.seconds, time.Since(begun).Seconds()), append(w.times, w.read())
}

// end ends it early, as a trial that was cut does; it may be called again.
func (w *threadWatch) end() {
	w.mu.Lock()
	if !w.closed() {
		close(w.quit)
	}
	w.mu.Unlock()
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
