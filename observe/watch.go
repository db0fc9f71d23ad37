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
	steps []step
}

// step is one step of the watch. A busy host may wake the sampler late; the steps it slept through share one mean.
type step struct {
	busy  float64           // of the whole host
	cores map[int]coreRatio // without those that were switched off
}

type coreRatio struct{ softirq, idle float64 }

// StartWatch begins a watch. On a system that does not tell its processor time
// the watch is empty. The caller must call Stop.
func StartWatch() *Watcher { return startWatch(readLoad) }

func startWatch(read func() (counters.Processors, error)) *Watcher {
	w := &Watcher{read: read, quit: make(chan struct{}), done: make(chan struct{})}
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

// take closes the steps that ended since the last sample.
func (w *Watcher) take(end bool) {
	now, err := w.read()
	if err != nil {
		return
	}
	at := time.Now()
	n := int((at.Sub(w.begun) + watchStep/2) / watchStep)
	if end && len(w.steps) == 0 {
		n = max(n, 1)
	}
	all, ok := now.All.Since(w.last.All, -1)
	if n == 0 || !ok {
		return
	}
	one := step{all.Busy(), map[int]coreRatio{}}
	for core, t := range now.Cores {
		before, known := w.last.Cores[core]
		if s, ok := t.Since(before, core); known && ok {
			one.cores[core] = coreRatio{s.Softirq, s.Idle + s.IOWait}
		}
	}
	w.last, w.begun = now, at
	w.steps = append(w.steps, slices.Repeat([]step{one}, n)...)
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

func (w *Watcher) series() (all []model.Series) {
	cores := map[int]bool{}
	for _, one := range w.steps {
		for core := range one.cores {
			cores[core] = true
		}
	}
	add := func(metric string, core *int, value func(step) float64) {
		s := model.Series{Metric: metric, Core: core, StepSeconds: watchStep.Seconds()}
		for _, one := range w.steps {
			s.Values = append(s.Values, value(one))
		}
		all = append(all, s)
	}
	if len(w.steps) > 0 {
		add("cpu_busy_ratio", nil, func(one step) float64 { return one.busy })
	}
	for _, core := range slices.Sorted(maps.Keys(cores)) {
		add("cpu_softirq_ratio", &core, func(one step) float64 { return one.cores[core].softirq })
		add("cpu_idle_ratio", &core, func(one step) float64 {
			if ratio, there := one.cores[core]; there {
				return ratio.idle
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
