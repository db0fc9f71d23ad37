package engine

import (
	"context"
	"net/netip"

	"pelt/model"
)

// Tupler is implemented by ends whose streams are told apart by ports.
type Tupler interface {
	// Tuples lists the ports of each stream as this host sees them, once
	// Connect has returned.
	Tuples() []model.Tuple
}

// Addresses are those of one stream as one host sees them.
type Addresses struct{ Local, Remote netip.AddrPort }

// Socketed is implemented by ends that hold a connected socket for each stream,
// so that another engine can move the flow's packets past them.
type Socketed interface {
	// Addresses lists each stream's, once Connect has returned.
	Addresses() []Addresses
	// Strays counts the packets of the trial that came to the sockets all the
	// same: those that wait there, and those that found no room. It takes them
	// off, and must be called after Connect and instead of Run.
	Strays() uint64
}

// Observation watches what becomes of a trial's packets on one host, outside
// the ends. Its methods may be called concurrently.
type Observation interface {
	// Track names the streams of one flow; several ends may name the same flow.
	Track(flow model.Flow, tuples []model.Tuple) error
	// Snapshot reads the host's counters.
	Snapshot(m model.Moment)
	// Settle waits until the counters stand still, and then reads them for the
	// last time. lost says that packets are missing, so that it is worth waiting
	// for devices that tell their figures seldom.
	Settle(ctx context.Context, lost bool)
	// Report returns the account; called once, after Settle or instead of it.
	Report() model.Observation
	// Close frees everything.
	Close() error
}

// Counter is implemented by observations that can tell what was dropped so far.
type Counter interface {
	// Counts is what a report says of drops by now, without sequences and without
	// counters. It may be called at any time from any goroutine.
	Counts() (model.Observation, error)
}

// Observe begins the observation of one trial.
type Observe func(trial uint16, mode model.DropMode) (Observation, error)
