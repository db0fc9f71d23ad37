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
	read  func() (counters.Processors, error)
	quit  chan struct{}
	done  chan struct{}
	first counters.Processors
	last  counters.Processors
	begun time.Time // of last
	valid bool      // first was read
	busy  []float64 // of the whole host, by step
	cores map[int]*coreSteps
}

// coreSteps are what a core did, by step of the watch. Steps in which it was away are
// made up for when it is seen again, or at the end.
type coreSteps struct{ softirq, idle []float64 }

// away makes up for steps before n: a core that is away is idle.
func (c *coreSteps) away(n int) {
	for len(c.idle) < n {
		c.softirq, c.idle = append(c.softirq, 0), append(c.idle, 1)
	}
}

// StartWatch begins a watch. On a system that does not tell its processor time
// the watch is empty. The caller must call Stop.
func StartWatch() *Watcher { return startWatch(readLoad) }

func startWatch(read func() (counters.Processors, error)) *Watcher {
	w := &Watcher{read: read, quit: make(chan struct{}), done: make(chan struct{}), cores: map[int]*coreSteps{}}
	first, err := read()
	w.first, w.last, w.valid, w.begun = first, first, err == nil, time.Now()
	if !w.valid {
		close(w.done)
		return w
	}
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
			w.take(true)
			return
		case <-ticker.C:
			w.take(false)
		}
	}
}

// take closes the steps that ended since the last sample. A busy host may
// wake the sampler late; the steps it slept through share one mean.
func (w *Watcher) take(end bool) {
	now, err := w.read()
	if err != nil {
		return
	}
	at := time.Now()
	n := int((at.Sub(w.begun) + watchStep/2) / watchStep)
	if end && len(w.busy) == 0 {
		n = max(n, 1)
	}
	if n == 0 {
		return
	}
	all, ok := now.All.Since(w.last.All, -1)
	if !ok {
		return
	}
	for core, t := range now.Cores {
		before, known := w.last.Cores[core]
		if s, ok := t.Since(before, core); known && ok {
			c := w.cores[core]
			if c == nil {
				c = &coreSteps{}
				w.cores[core] = c
			}
			c.away(len(w.busy))
			for range n {
				c.softirq, c.idle = append(c.softirq, s.Softirq), append(c.idle, s.Idle+s.IOWait)
			}
		}
	}
	w.last, w.begun = now, at
	for range n {
		w.busy = append(w.busy, all.Busy())
	}
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
	if !w.valid {
		return model.CPU{}, nil
	}
	return w.cpu(), w.series()
}

func (w *Watcher) cpu() (c model.CPU) {
	end, err := w.read()
	if err != nil {
		end = w.last
	}
	s, ok := end.All.Since(w.first.All, -1)
	if !ok {
		return c
	}
	c.HostRatio, c.SoftirqRatio, c.StealRatio = s.Busy(), s.Softirq, s.Steal
	for core, t := range end.Cores {
		if before, known := w.first.Cores[core]; known {
			if s, ok := t.Since(before, core); ok {
				c.BusiestRatio = max(c.BusiestRatio, s.Busy())
			}
		}
	}
	return c
}

func (w *Watcher) series() []model.Series {
	if len(w.busy) == 0 {
		return nil
	}
	all := []model.Series{{Metric: "cpu_busy_ratio", StepSeconds: watchStep.Seconds(), Values: w.busy}}
	for _, core := range slices.Sorted(maps.Keys(w.cores)) {
		c := w.cores[core]
		c.away(len(w.busy))
		all = append(all, model.Series{Metric: "cpu_softirq_ratio", Core: &core, StepSeconds: watchStep.Seconds(), Values: c.softirq},
			model.Series{Metric: "cpu_idle_ratio", Core: &core, StepSeconds: watchStep.Seconds(), Values: c.idle})
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
