// Package live shows runs while they go on: as lines of JSON, in a terminal, and in a browser.
//
// Events of package run come in, and become events of this package: numbered, in base units, under the names of
// run documents. All readers see these events and nothing else, so that they show the same numbers.
package live

import (
	"time"

	"pelt/model"
)

// Event is one thing that happened in a run. Beside ID and Time exactly one field is set.
type Event struct {
	ID      uint64    `json:"id"` // from 1, without gaps
	Time    time.Time `json:"time"`
	Started *Started  `json:"started,omitempty"` // the run; the first event
	Next    *Next     `json:"next,omitempty"`    // a trial begins
	Sample  *Sample   `json:"sample,omitempty"`  // of the trial that runs
	Account *Account  `json:"account,omitempty"` // of the trial that runs, by now
	Trial   *Trial    `json:"trial,omitempty"`   // a trial has ended
	// what all trials so far show, in place of what was said before
	Findings *[]model.Finding `json:"findings,omitempty"`
	Note     string           `json:"note,omitempty"`
	Done     *Done            `json:"done,omitempty"` // the last event
}

// Started says which run begins.
type Started struct {
	Run       string   `json:"run,omitempty"` // its id; "" if it is not kept
	Command   string   `json:"command"`
	Target    string   `json:"target"`
	Arguments []string `json:"arguments"` // without codes
	Nodes     []string `json:"nodes"`     // in travel order
	Text      string   `json:"text"`      // all of it in a line
}

// Next says which trial begins.
type Next struct {
	Number          int        `json:"number"`           // from 1
	Trials          int        `json:"trials,omitempty"` // of the run; 0: the run decides as it goes on
	Setting         string     `json:"setting,omitempty"`
	Cell            model.Cell `json:"cell"`
	Repeat          int        `json:"repeat"`
	WarmupSeconds   float64    `json:"warmup_s"`
	MeasuredSeconds float64    `json:"measured_s"`
	UntilSent       bool       `json:"until_sent,omitempty"` // it ends when all is sent, after measured_s at the latest
	LeftSeconds     float64    `json:"left_s,omitempty"`     // an estimate of the rest of the run, with this trial
	Flows           []Ends     `json:"flows,omitempty"`      // in a star one to each receiver
}

// Ends are a flow of a trial and where it begins and ends.
type Ends struct {
	Name     string         `json:"name"`
	Protocol model.Protocol `json:"protocol"`
	From     string         `json:"from"`
	To       string         `json:"to"`
	Silent   string         `json:"silent,omitempty"` // the node that tells nothing before the trial has ended
}

// Sample is one value of a series of the trial that runs, see model.Series.
type Sample struct {
	Metric string  `json:"metric"` // send_pps, receive_pps, of TCP send_bps, receive_bps (payload); cpu_busy_ratio
	Flow   string  `json:"flow,omitempty"`
	At     string  `json:"at"` // node where it was measured, or run.Machine
	Core   *int    `json:"core,omitempty"`
	AtS    float64 `json:"at_s"` // after the start of the measured part
	Value  float64 `json:"value"`
}

// Account is where the packets of the trial that runs ended by now.
type Account struct {
	ElapsedS float64           `json:"elapsed_s"`
	Flows    []model.FlowSoFar `json:"flows"`
}

// Trial is how a trial ended.
type Trial struct {
	Number  int         `json:"number"` // how many have ended
	Trials  int         `json:"trials,omitempty"`
	Cell    model.Cell  `json:"cell"`
	Repeat  int         `json:"repeat"`
	State   model.State `json:"state"`
	Why     string      `json:"why,omitempty"`
	Text    string      `json:"text"` // its figures in a line
	Figures []Figures   `json:"flows"`
}

// Figures are the figures of one flow of a trial: name of the metric to value.
type Figures struct {
	Flow    string             `json:"flow"`
	Figures map[string]float64 `json:"figures"`
}

// Done says how the run ended.
type Done struct {
	Run      string `json:"run,omitempty"` // "" if it is not kept
	Complete bool   `json:"complete"`
	Error    string `json:"error,omitempty"`
}
