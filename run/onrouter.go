package run

import (
	"context"
	"errors"
	"sync"
	"time"

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

// Begin watches one trial.
func (d device) Begin(trial uint16, drops model.DropMode, measured time.Duration) fleet.RouterWatch {
	w := &deviceWatch{Watch: d.Router.Begin(trial), measured: measured}
	if d.kernel != nil && drops != "" {
		var err error
		if w.kernel, err = d.kernel.Begin(trial, drops); err != nil {
			w.why = err.Error()
		}
	}
	return w
}

// deviceWatch watches a device during one trial.
type deviceWatch struct {
	*dut.Watch
	kernel *observe.Observation // nil: not watched
	why    string               // the kernel is not watched though it was to be

	mu       sync.Mutex
	begun    time.Time     // of the measured part
	measured time.Duration // its length, the longest until it is over
}

// both reads the kernel at once while the shell takes its time.
func (w *deviceWatch) both(shell func(), kernel func(*observe.Observation)) {
	var all sync.WaitGroup
	all.Go(shell)
	if w.kernel != nil {
		kernel(w.kernel)
	}
	all.Wait()
}

// Meet says that the ends of a flow are about to look for each other.
func (w *deviceWatch) Meet(flow model.Flow, tag uint16) error {
	if w.kernel == nil {
		return nil
	}
	return w.kernel.Meet(flow, tag)
}

// Track names the ports of a flow's streams on one side of the router.
func (w *deviceWatch) Track(flow model.Flow, tuples []model.Tuple, alone bool) error {
	if w.kernel == nil {
		return nil
	}
	return w.kernel.Track(flow, tuples, alone)
}

// Snapshot reads what the router tells at a moment.
func (w *deviceWatch) Snapshot(m model.Moment) {
	if m == model.MomentMeasure {
		w.mu.Lock()
		w.begun = time.Now()
		w.mu.Unlock()
	}
	w.both(func() { w.Watch.Snapshot(m) }, func(k *observe.Observation) { k.Snapshot(m) })
}

// Settle waits until the counters that are told stand still: the kernel's, if it is watched.
func (w *deviceWatch) Settle(ctx context.Context, lost bool) {
	w.length()
	if w.kernel == nil {
		w.Watch.Settle(ctx, lost)
		return
	}
	w.both(func() { w.Watch.Snapshot(model.MomentEnd) }, func(k *observe.Observation) { k.Settle(ctx, lost) })
}

// length is how long the measured part was: senders may end before its time.
func (w *deviceWatch) length() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun.IsZero() {
		w.measured = min(w.measured, time.Since(w.begun))
	}
	return w.measured
}

// Report is the account of the kernel, or else of the shell, and that of the processors.
func (w *deviceWatch) Report() (o model.Observation) {
	if w.kernel != nil {
		o = w.kernel.Report()
	} else if o = w.Watch.Report(); w.why != "" {
		o.Why = w.why
	}
	watched, series := w.Watched(w.length())
	o.Router, o.Series = &watched, series
	return o
}

// Close ends both watches.
func (w *deviceWatch) Close() error {
	err := w.Watch.Close()
	if w.kernel != nil {
		err = errors.Join(err, w.kernel.Close())
	}
	return err
}
