package model

// Formats of what pelt tune --json writes.
const (
	AdviceFormat = "pelt/advice/1"
	TuneFormat   = "pelt/tune/2"
)

// AdviceList is what the counters of a run call for.
type AdviceList struct {
	Format string    `json:"format"`
	Tool   Tool      `json:"tool"`
	Run    string    `json:"run"`  // id
	Here   []string  `json:"here"` // nodes of the run that are on this host
	Advice []Advised `json:"advice"`
}

// Advised is a setting that would address loss of a run, taken over all its trials.
type Advised struct {
	Advice
	Role      string `json:"role"`      // of the host: sender, receiver, router
	Here      bool   `json:"this_host"` // the host of the run is this one
	Apply     bool   `json:"apply"`     // pelt tune apply can set it here
	Layer     string `json:"layer"`
	Cause     string `json:"cause"`
	Packets   uint64 `json:"packets"`   // lost there in all valid trials
	Attempted uint64 `json:"attempted"` // in these trials
}
