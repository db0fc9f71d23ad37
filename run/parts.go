package run

import (
	"context"
	"sync"

	"pelt/engine"
	"pelt/model"
	"pelt/observe"
)

// counters are read at the moments of a trial.
type counters interface {
	Snapshot(model.Moment)
	Halt(ctx context.Context)
	Settle(ctx context.Context, lost bool)
}

func readCounters(ctx context.Context, c counters, t model.Timing, s engine.Step, k engine.Known) {
	switch s {
	case engine.Open: // no other moment comes if no flow finds a way
		c.Snapshot(model.MomentStart)
	case engine.Ready:
		if k.Window > 0 {
			c.Snapshot(model.MomentIdle)
			engine.Sleep(ctx, k.Window)
		}
		c.Snapshot(model.MomentStart)
	case engine.Go:
		if t.Warmup() > 0 && engine.Sleep(ctx, k.UntilMeasured(t)) {
			c.Snapshot(model.MomentMeasure)
		}
	case engine.Halt:
		c.Halt(ctx)
	case engine.Still:
		c.Settle(ctx, k.Lost)
	}
}

// kernelWatch is the watch over the kernel of one namespace.
type kernelWatch struct {
	engine.Passive
	timing               model.Timing
	*observe.Observation // nil: it cannot be observed

	mu      sync.Mutex
	ending  bool // the last reading of the counters has begun
	account *model.Observation
}

// watchKernel makes a watch. What it cannot do stands in its account.
func watchKernel(o *observe.Observer, order engine.WatchOrder) *kernelWatch {
	w, err := o.Begin(order.Trial, order.Drops)
	if err != nil {
		return &kernelWatch{account: &model.Observation{Mode: model.DropsOff,
			Why: model.Reasons{{Code: model.WatchFailed, Of: model.Reasons{bySystem(err)}}}}}
	}
	return &kernelWatch{timing: order.Timing, Observation: w}
}

func (w *kernelWatch) Do(ctx context.Context, s engine.Step, k engine.Known) (l engine.Learned, _ error) {
	if w.Observation == nil {
		return l, nil
	}
	if s == engine.Still {
		w.mu.Lock()
		w.ending = true
		w.mu.Unlock()
	}
	for _, f := range k.Flows {
		switch {
		case f.Tuples == nil && f.Protocol == model.TCP && f.Awaited.Port() == 0: // nothing to know it by
			w.Toward(f.Name, f.To)
		case f.Tuples == nil:
			_ = w.Meet(f.Flow(), f.Number, f.Tag, f.Awaited)
		default:
			_ = w.Track(f.Flow(), f.Number, f.Tuples)
		}
	}
	readCounters(ctx, w.Observation, w.timing, s, k)
	return l, nil
}

// Live is what was dropped by now, until the counters are read for the last time.
func (w *kernelWatch) Live() (l engine.Live) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Observation == nil || w.ending {
		return l
	}
	if o, err := w.Counts(); err == nil {
		l.Counts = &o
	}
	return l
}

func (w *kernelWatch) Account() engine.Account {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.account == nil {
		if !w.ending { // the trial was cut
			w.Snapshot(model.MomentEnd)
		}
		o := w.Report()
		w.account = &o
	}
	return engine.Account{Observed: w.account}
}

func (w *kernelWatch) Close() error {
	if w.Observation == nil {
		return nil
	}
	return w.Observation.Close()
}

// processorWatch is the watch over this machine's processors in the measured part.
type processorWatch struct {
	engine.Passive
	timing model.Timing
	stop   context.CancelFunc
	ctx    context.Context
	work   sync.WaitGroup // Do

	mu    sync.Mutex
	watch *observe.Watcher // nil outside of the measured part
	load  *engine.Load
}

func watchProcessors(o engine.WatchOrder) *processorWatch {
	w := &processorWatch{timing: o.Timing}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// Do watches while the measured part lasts: senders of a number of packets may end long before its time.
func (w *processorWatch) Do(ctx context.Context, s engine.Step, k engine.Known) (l engine.Learned, _ error) {
	if s != engine.Go {
		return l, nil
	}
	w.work.Add(1)
	defer w.work.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	if !engine.Sleep(ctx, k.UntilMeasured(w.timing)) {
		return l, nil
	}
	watch := observe.StartWatch()
	w.mu.Lock()
	w.watch = watch
	w.mu.Unlock()
	engine.Sleep(ctx, w.timing.Measure())
	cpu, series := watch.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watch, w.load = nil, &engine.Load{CPU: cpu, Series: series}
	return l, nil
}

// Live is how busy the cores were since it was called last.
func (w *processorWatch) Live() (l engine.Live) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watch != nil {
		l.Cores = w.watch.Cores()
	}
	return l
}

func (w *processorWatch) Account() engine.Account {
	w.stop()
	w.work.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return engine.Account{Load: w.load}
}

func (w *processorWatch) Close() error { w.Account(); return nil }
