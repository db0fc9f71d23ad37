package model

// Formats of what pelt tune --json writes.
const (
	AdviceFormat    = "pelt/advice/1"
	TuneFormat      = "pelt/tune/1"
	TuneTrialFormat = "pelt/tune-trial/1"
)

// TuningKnob is the factor of a run that tries a setting, and its levels.
const (
	TuningKnob    = "tuning"
	TuningWithout = "without"
	TuningWith    = "with"
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

// TuneTrial is what a run of pelt tune trial tried, in order, and how it ended.
type TuneTrial struct {
	Format  string     `json:"format"`
	Tool    Tool       `json:"tool"`
	Target  string     `json:"target"`
	First   TuneLoss   `json:"first"` // before anything was changed
	Steps   []TuneStep `json:"steps"`
	Last    TuneLoss   `json:"last"` // with all that was kept
	Verdict string     `json:"verdict"`
	Limits  []string   `json:"limits"` // what still loses packets, the largest first, a sentence each
	Undo    string     `json:"undo,omitempty"`
	Flags   string     `json:"flags,omitempty"` // of other commands, for what was kept of pelt's own settings
	Plan    Plan       `json:"plan"`            // with what was kept of pelt's own settings
}

// TuneLoss is the loss of valid trials together.
type TuneLoss struct {
	Run       string  `json:"run,omitempty"` // id
	Trials    int     `json:"trials"`
	Attempted uint64  `json:"attempted_packets"`
	Lost      uint64  `json:"lost_packets"`
	Ratio     float64 `json:"loss_ratio"`
}

// TuneStep is one setting that was tried, without and with in turn.
type TuneStep struct {
	Advised
	Run     string   `json:"run,omitempty"` // id
	Without TuneLoss `json:"without"`
	With    TuneLoss `json:"with"`
	Kept    bool     `json:"kept"`
	Untold  bool     `json:"untold,omitempty"` // too few trials were valid to judge by
	Text    string   `json:"text"`             // what the comparison says, or why it could not be tried
}
