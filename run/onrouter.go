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

func (d askedDevice) Begin(trial uint16, _ model.DropMode) fleet.RouterWatch {
	return d.Router.Begin(trial)
}

// ownDevice is the router that this process runs on.
type ownDevice struct {
	askedDevice
	observer *observe.Observer
}

// openOwn makes the watches over the host of this process: its processors through
// the same shell and parsers as those of any router, its drops by its kernel.
func openOwn(observer *observe.Observer) func(context.Context) (fleet.Router, error) {
	return func(ctx context.Context) (fleet.Router, error) {
		r, err := dut.Open(ctx, deviceNode, "its own pelt serve", dut.Here())
		if err != nil {
			return nil, err
		}
		return ownDevice{askedDevice{r}, observer}, nil
	}
}

// Begin watches one trial.
func (d ownDevice) Begin(trial uint16, drops model.DropMode) fleet.RouterWatch {
	shell := d.Router.Begin(trial)
	if drops == "" {
		return shell
	}
	kernel, err := d.observer.Begin(trial, drops)
	if err != nil {
		return unwatched{shell, err.Error()}
	}
	return ownWatch{shell, kernel}
}

// unwatched is a watch by the shell alone, though the kernel was to be watched.
type unwatched struct {
	*dut.Watch
	why string
}

// Report is what the shell told.
func (w unwatched) Report() model.Observation {
	o := w.Watch.Report()
	o.Why = w.why
	return o
}

// ownWatch watches by the shell, and by the kernel for what it tells of packets.
type ownWatch struct {
	*dut.Watch
	kernel *observe.Observation
}

// both reads the kernel at once while the shell takes its time.
func both(shell, kernel func()) {
	var all sync.WaitGroup
	all.Go(shell)
	kernel()
	all.Wait()
}

// Track names the ports of a flow's streams on one side of the router.
func (w ownWatch) Track(flow model.Flow, tuples []model.Tuple) error {
	return w.kernel.Track(flow, tuples)
}

// Snapshot reads what the router tells at a moment.
func (w ownWatch) Snapshot(m model.Moment) {
	both(func() { w.Watch.Snapshot(m) }, func() { w.kernel.Snapshot(m) })
}

// Settle waits until the kernel's counters stand still; those of the shell are not told.
func (w ownWatch) Settle(ctx context.Context, lost bool) {
	both(func() { w.Watch.Snapshot(model.MomentEnd) }, func() { w.kernel.Settle(ctx, lost) })
}

// Report is the kernel's account.
func (w ownWatch) Report() model.Observation { return w.kernel.Report() }

// Close ends both watches.
func (w ownWatch) Close() error { return errors.Join(w.Watch.Close(), w.kernel.Close()) }
