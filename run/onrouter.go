package run

import (
	"context"
	"errors"
	"sync"

	"pelt/fleet"
	"pelt/model"
	"pelt/observe"
	"pelt/observe/dut"
)

// askedDevice is a router that is asked through a shell: its verdicts on packets are
// nobody's, or, in a lab, in the ends' accounts.
type askedDevice struct{ *dut.Router }

func (d askedDevice) Begin(trial uint16, _ model.DropMode) fleet.DeviceWatch {
	return d.Router.Begin(trial)
}

// ownDevice is the router that this process runs on.
type ownDevice struct {
	askedDevice
	observer *observe.Observer
}

// openOwn makes the watches over the host of this process: its processors through
// the same shell loop and parser as those of any router, its drops by its kernel.
func openOwn(observer *observe.Observer) fleet.OpenDevice {
	return func(ctx context.Context) (fleet.Device, error) {
		r, err := dut.Open(ctx, deviceNode, "its own pelt serve", dut.Here(), dut.Options{})
		if err != nil {
			return nil, err
		}
		return ownDevice{askedDevice{r}, observer}, nil
	}
}

// Begin watches one trial.
func (d ownDevice) Begin(trial uint16, drops model.DropMode) fleet.DeviceWatch {
	w := &ownWatch{Watch: d.Router.Begin(trial)}
	if drops == "" {
		return w
	}
	var err error
	if w.kernel, err = d.observer.Begin(trial, drops); err != nil {
		w.kernel, w.why = nil, err.Error()
	}
	return w
}

// ownWatch is one trial's.
type ownWatch struct {
	*dut.Watch
	kernel *observe.Observation // nil if it is not watched
	why    string               // ... though it was to be
}

func (w *ownWatch) both(shell, kernel func()) {
	if w.kernel == nil {
		shell()
		return
	}
	var all sync.WaitGroup
	all.Go(shell)
	kernel() // at once: the shell takes its time
	all.Wait()
}

// Track names the ports of a flow's streams on one side of the router.
func (w *ownWatch) Track(flow model.Flow, tuples []model.Tuple) error {
	if w.kernel == nil {
		return nil
	}
	return w.kernel.Track(flow, tuples)
}

// Snapshot reads what the router tells at a moment.
func (w *ownWatch) Snapshot(m model.Moment) {
	w.both(func() { w.Watch.Snapshot(m) }, func() { w.kernel.Snapshot(m) })
}

// Settle waits until the counters stand still: the kernel's where they are read, for
// then the shell's are not told.
func (w *ownWatch) Settle(ctx context.Context, lost bool) {
	if w.kernel == nil {
		w.Watch.Settle(ctx, lost)
		return
	}
	w.both(func() { w.Watch.Snapshot(model.MomentEnd) }, func() { w.kernel.Settle(ctx, lost) })
}

// Report is the kernel's account, or what the shell told if there is none.
func (w *ownWatch) Report() model.Observation {
	if w.kernel != nil {
		return w.kernel.Report()
	}
	o := w.Watch.Report()
	if w.why != "" {
		o.Why = w.why
	}
	return o
}

// Close ends both watches.
func (w *ownWatch) Close() error {
	err := w.Watch.Close()
	if w.kernel != nil {
		err = errors.Join(err, w.kernel.Close())
	}
	return err
}

// Bounds of what a router's agent may tell of itself.
const (
	maxSeries = 8192
	maxValues = 1 << 17
	maxGaps   = 64
)

// credibleWatch bounds it: that host may run another's program.
func credibleWatch(w model.RouterWatch, series []model.Series) (model.RouterWatch, []model.Series) {
	bound := func(list []string) []string {
		list = list[:min(len(list), maxGaps)]
		for i := range list {
			list[i] = list[i][:min(len(list[i]), 4*maxText)]
		}
		return list
	}
	w.Gaps, w.Cores = bound(w.Gaps), w.Cores[:min(len(w.Cores), maxSeries)]
	var kept []model.Series
	for _, s := range series[:min(len(series), maxSeries)] {
		if len(s.Metric) <= maxText && len(s.Values) <= maxValues && s.StepSeconds > 0 {
			kept = append(kept, s)
		}
	}
	return w, kept
}
