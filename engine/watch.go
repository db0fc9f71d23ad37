package engine

import "pelt/model"

// Watch samples a host while a trial runs.
type Watch interface {
	// Stop ends the watch and returns the host's load since it began, with the
	// per-second series (At is left empty). It may be called once.
	Stop() (model.CPU, []model.Series)
}

// StartWatch begins a watch of the host this process runs on.
type StartWatch func() Watch
