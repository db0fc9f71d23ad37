package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
	"pelt/observe"
	"pelt/observe/dut"
)

// device is a router that is asked through a shell.
type device struct {
	*dut.Router
	kernel *observe.Observer // tells of packets where the router is this process's host; else nil
}

// openOwn begins to watch the host of this process: its processors through the same shell
// and parsers as those of any router, its drops by its kernel.
func openOwn(kernel *observe.Observer) func(context.Context) (fleet.Router, error) {
	return func(ctx context.Context) (fleet.Router, error) {
		r, err := dut.Open(ctx, deviceNode, "its own pelt serve", dut.Here())
		if err != nil {
			return nil, err
		}
		return device{r, kernel}, nil
	}
}

func (d device) Begin(o engine.WatchOrder) engine.Part {
	w := &deviceWatch{shell: d.Router.Begin(), timing: o.Timing}
	if d.kernel != nil && o.Drops != "" {
		if w.kernel = watchKernel(d.kernel, o); w.kernel.Observation == nil {
			w.why, w.kernel = w.kernel.account.Why, nil
		}
	}
	return w
}

// deviceWatch watches a device during one trial.
type deviceWatch struct {
	engine.Passive
	shell  *dut.Watch
	timing model.Timing
	kernel *kernelWatch  // nil: not watched
	why    model.Reasons // the kernel is not watched though it was to be

	mu      sync.Mutex
	begun   time.Time     // of the measured part
	length  time.Duration // of it, once it is over
	account *model.Observation
}

// Do reads the kernel at once while the shell takes its time.
func (w *deviceWatch) Do(ctx context.Context, s engine.Step, k engine.Known) (l engine.Learned, _ error) {
	for _, f := range k.Flows {
		w.shell.Toward(f.Name, f.To)
	}
	var kernel sync.WaitGroup
	if w.kernel != nil {
		kernel.Go(func() { _, _ = w.kernel.Do(ctx, s, k) })
	}
	readCounters(ctx, shellMoments{w}, w.timing, s, k)
	if s == engine.Ready && w.timing.Warmup() == 0 { // the measured part begins with the trial
		shellMoments{w}.Snapshot(model.MomentMeasure)
	}
	kernel.Wait()
	return l, nil
}

// shellMoments reads a device through its shell.
type shellMoments struct{ *deviceWatch }

func (w shellMoments) Snapshot(m model.Moment) {
	if m == model.MomentMeasure {
		w.mu.Lock()
		w.begun = time.Now()
		w.mu.Unlock()
	}
	w.shell.Snapshot(m)
}

// Halt reads the route, unless the kernel's watch does.
func (w shellMoments) Halt(ctx context.Context) {
	if w.kernel == nil {
		w.shell.Halt(ctx)
	}
}

// Settle waits until the counters that are told stand still: the kernel's, if it is watched.
func (w shellMoments) Settle(ctx context.Context, lost bool) {
	w.measured()
	if w.kernel == nil {
		w.shell.Settle(ctx, lost)
		return
	}
	w.shell.Snapshot(model.MomentEnd)
}

// measured is how long the measured part was: senders may end before its time.
func (w *deviceWatch) measured() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.length == 0 {
		if w.length = w.timing.Measure(); !w.begun.IsZero() {
			w.length = min(w.length, time.Since(w.begun))
		}
	}
	return w.length
}

// Live is how busy the cores are, by the newest samples.
func (w *deviceWatch) Live() engine.Live { return engine.Live{Cores: w.shell.Cores()} }

// Account is that of the kernel, or else of the shell, and that of the processors.
func (w *deviceWatch) Account() engine.Account {
	length := w.measured()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.account == nil {
		var o model.Observation
		if w.kernel != nil {
			o = *w.kernel.Account().Observed
		} else if o = w.shell.Report(); w.why != nil {
			o.Why = w.why
		}
		watched, series := w.shell.Watched(length)
		o.Router, o.Series = &watched, series
		w.account = &o
	}
	return engine.Account{Observed: w.account}
}

func (w *deviceWatch) Close() error {
	err := w.shell.Close()
	if w.kernel != nil {
		err = errors.Join(err, w.kernel.Close())
	}
	return err
}
