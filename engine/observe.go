package engine

import (
	"context"

	"pelt/model"
)

// Observation watches what becomes of a trial's packets on one host, outside
// the ends. Its methods may be called concurrently.
type Observation interface {
	// Meet says that the ends of a flow are about to look for each other; tag is that of their packets.
	// Several ends may name the same flow.
	Meet(flow model.Flow, tag uint16) error
	// Track names the streams of one flow; several ends may name the same flow. alone is that of its Order.
	Track(flow model.Flow, tuples []model.Tuple, alone bool) error
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

// EndObservation is an Observation of the host of an end, which also tells of drops while a trial runs.
type EndObservation interface {
	Observation
	// Counts is what a report says of drops by now, without sequences and without
	// counters. It may be called at any time from any goroutine.
	Counts() (model.Observation, error)
}

// Observe begins the observation of one trial.
type Observe func(trial uint16, mode model.DropMode) (EndObservation, error)

// Watch samples a host while a trial runs.
type Watch interface {
	// Stop ends the watch and returns the host's load since it began, with the
	// per-second series (At is left empty). It may be called once.
	Stop() (model.CPU, []model.Series)
	// Cores returns the busy share of each core since it was called last, or since the watch
	// began; none where that is not known. One goroutine at a time calls it, also beside Stop.
	Cores() map[int]float64
}

// StartWatch begins a watch of the host this process runs on.
type StartWatch func() Watch

// Recording takes down, packet by packet, what receivers of one session see. Its
// methods may be called concurrently.
type Recording interface {
	// Tap puts the record of a receiver around its meter.
	Tap(o Order, m Meter) Meter
	// Finish hands over what is left: the receivers have ended. It does not wait.
	Finish()
	// Blocks returns whole blocks of the record from the given byte on, at most a
	// number of bytes, and forgets what lies before. It waits a moment for some, or
	// until ctx ends. done says that no more will come; a recording that needs
	// nobody to fetch its blocks says so at once.
	Blocks(ctx context.Context, from uint64, most int) (blocks []byte, done bool)
	// Close frees everything.
	Close()
}
