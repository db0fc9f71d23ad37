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

// Watch samples a host while a trial runs.
type Watch interface {
	// Stop ends the watch and returns the host's load since it began, with the
	// per-second series (At is left empty). It may be called once.
	Stop() (model.CPU, []model.Series)
}

// StartWatch begins a watch of the host this process runs on.
type StartWatch func() Watch
