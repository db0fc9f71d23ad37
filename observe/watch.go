package observe

import (
	"maps"
	"os"
	"slices"
	"time"

	"pelt/model"
	"pelt/observe/counters"
)

const watchStep = time.Second

// Watcher samples the processor time of this host once a second.
type Watcher struct {
	read       func() (counters.Processors, error)
	quit, done chan struct{}
	readings   []reading           // the first when the watch began; none where nothing can be read
	told       counters.Processors // when Cores was called last
}

type reading struct {
	at time.Time
	counters.Processors
}

// StartWatch begins a watch. On a system that does not tell its processor time
// the watch is empty. The caller must call Stop.
func StartWatch() *Watcher { return startWatch(readLoad) }

func startWatch(read func() (counters.Processors, error)) *Watcher {
	w := &Watcher{read: read, quit: make(chan struct{}), done: make(chan struct{})}
	if w.take(); len(w.readings) == 0 {
		close(w.done)
		return w
	}
	w.told = w.readings[0].Processors
	go w.sample()
	return w
}

func (w *Watcher) sample() {
	defer close(w.done)
	ticker := time.NewTicker(watchStep)
	defer ticker.Stop()
	for {
		select {
		case <-w.quit:
			w.take()
			return
		case <-ticker.C:
			w.take()
		}
	}
}

func (w *Watcher) take() {
	if now, err := w.read(); err == nil {
		w.readings = append(w.readings, reading{time.Now(), now})
	}
}

// Cores returns the busy share of each core since it was called last, or since the watch began.
func (w *Watcher) Cores() map[int]float64 {
	now, err := w.read()
	if err != nil {
		return nil
	}
	busy := now.Busy(w.told)
	w.told = now
	return busy
}

// Stop ends the watch and returns the host's load since it began, with the
// series cpu_busy_ratio of the whole host and cpu_softirq_ratio and
// cpu_idle_ratio of each core, one value a second. A last part of less than
// half a second is in the load, not in the series. ThreadRatio is left 0: it
// belongs to whoever runs the threads. A core that was away for a step counts
// as idle in it. Stop may be called once.
func (w *Watcher) Stop() (model.CPU, []model.Series) {
	close(w.quit)
	<-w.done
	if len(w.readings) < 2 {
		return model.CPU{}, nil
	}
	return w.cpu(), w.series()
}

func (w *Watcher) cpu() (c model.CPU) {
	first, end := w.readings[0], w.readings[len(w.readings)-1]
	s, ok := end.All.Since(first.All, -1)
	if !ok {
		return c
	}
	c.HostRatio, c.SoftirqRatio, c.StealRatio = s.Busy(), s.Softirq, s.Steal
	for core := range end.Cores {
		if s, ok := end.Core(first.Processors, core); ok {
			c.BusiestRatio = max(c.BusiestRatio, s.Busy())
		}
	}
	return c
}

func (w *Watcher) series() (all []model.Series) {
	cores := map[int]bool{}
	for _, r := range w.readings {
		for core := range r.Cores {
			cores[core] = true
		}
	}
	begun := w.readings[0].at
	total := w.readings[len(w.readings)-1].at.Sub(begun)
	steps := max(1, int((total+watchStep/2)/watchStep))
	add := func(metric string, core *int, value func(from, to counters.Processors) float64) {
		var spans []counters.Span
		for i, to := range w.readings[1:] {
			from := w.readings[i]
			spans = append(spans, counters.Span{From: from.at.Sub(begun).Seconds(), To: to.at.Sub(begun).Seconds(),
				Value: value(from.Processors, to.Processors)})
		}
		all = append(all, model.Series{Metric: metric, Core: core, StepSeconds: watchStep.Seconds(),
			Values: counters.Resample(spans, steps, watchStep.Seconds(), 0)})
	}
	add("cpu_busy_ratio", nil, func(from, to counters.Processors) float64 {
		s, _ := to.All.Since(from.All, -1)
		return s.Busy()
	})
	for _, core := range slices.Sorted(maps.Keys(cores)) {
		add("cpu_softirq_ratio", &core, func(from, to counters.Processors) float64 {
			s, _ := to.Core(from, core)
			return s.Softirq
		})
		add("cpu_idle_ratio", &core, func(from, to counters.Processors) float64 {
			if s, ok := to.Core(from, core); ok {
				return s.Idle + s.IOWait
			}
			return 1
		})
	}
	return all
}

// readLoad fails where the system does not tell its processor time.
func readLoad() (counters.Processors, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return counters.Processors{}, err
	}
	return counters.ParseProcessors(string(b))
}
