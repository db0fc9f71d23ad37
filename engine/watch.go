package engine

import "pelt/model"

// Pulse is implemented by Probe and Echo ends: their packets carry a sign of
// life of each host beside the control connection, which a flood may starve.
type Pulse interface {
	// SetPulse sets the number that every packet to the peer carries from now on.
	SetPulse(n uint64)
	// PeerPulse returns the newest number the peer's packets carried.
	PeerPulse() uint64
}

// Hearer is implemented by ends that hear their peer while they run: what comes
// from it is a sign that it lives, when a flood starves everything else.
type Hearer interface {
	// Heard returns how many packets of the flow have come, warm-up included;
	// only that it grows has a meaning. It may be called from any goroutine.
	Heard() uint64
}

// Watch samples a host while a trial runs.
type Watch interface {
	// Stop ends the watch and returns the host's load since it began, with the
	// per-second series (At is left empty). It may be called once.
	Stop() (model.CPU, []model.Series)
}

// StartWatch begins a watch of the host this process runs on.
type StartWatch func() Watch
