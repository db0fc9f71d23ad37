package model

import "slices"

const (
	ChangeShift = "level-shift" // a level gave way to another
	ChangeDrift = "drift"       // a level moved steadily for a time
	ChangeBurst = "loss-burst"  // for a short time far more packets were lost than before and after
)

// Change is something that a series did within a trial and that is not its noise. Times are seconds after the start
// of the measured part, levels are in the metric's own unit. docs/methods.md says how changes are found.
type Change struct {
	Kind   string `json:"kind"`
	Metric string `json:"metric"`
	Flow   string `json:"flow,omitempty"`
	At     string `json:"at"`
	Layer  string `json:"layer,omitempty"` // of a series of lost packets
	Cause  string `json:"cause,omitempty"` // ... likewise

	// StartS is when the new level held for the first time, when a drift or the first burst
	// began; it lies from StartLowS to StartHighS with 95 % confidence.
	StartS     float64 `json:"start_s"`
	StartLowS  float64 `json:"start_low_s"`
	StartHighS float64 `json:"start_high_s"`
	// EndS is when the new level, the drift or the last burst ended.
	EndS float64 `json:"end_s"`

	Before float64 `json:"before"` // the level until then; of a drift, where it begins
	After  float64 `json:"after"`  // the level from then on; where a drift ends; the mean within bursts
	Size   float64 `json:"size"`   // after - before

	Count   int     `json:"count,omitempty"`   // of bursts
	Packets float64 `json:"packets,omitempty"` // lost in bursts beyond what Before comes to

	// PValue is the chance that steady traffic shows as much anywhere in one of the
	// Tested series of this trial. Such a change is told if the chance is one that
	// comes once in AlarmHours of steady traffic, all Tested series together.
	PValue     float64 `json:"p_value"`
	Tested     int     `json:"tested_series"`
	AlarmHours float64 `json:"false_alarm_hours"`

	Causes []Mover `json:"causes,omitempty"` // what moved with it, the best fit first
}

// Together is how many seconds apart changes of several series may begin and be one event.
const Together = 3.0

// Alike reports whether two changes can be one event if they began together: both are
// moves of levels or both are moments, and of one flow where both are of one.
func (c Change) Alike(d Change) bool {
	return c.ofLevel() == d.ofLevel() && (c.Flow == d.Flow || c.Flow == "" || d.Flow == "")
}

func (c Change) ofLevel() bool { return c.Kind == ChangeShift || c.Kind == ChangeDrift }

// Rank orders the changes of one event: first what a reader asks for, then what may explain it.
func (c Change) Rank() int {
	order := []string{"receive_pps", "goodput_bps", "send_pps", "lost_pps"}
	if i := slices.Index(order, c.Metric); i >= 0 {
		return i
	}
	return len(order)
}

// Mover is a series that moved when another one changed. That it did is no proof that it is the reason.
type Mover struct {
	Metric string  `json:"metric"`
	Flow   string  `json:"flow,omitempty"`
	At     string  `json:"at"`
	Core   *int    `json:"core,omitempty"`
	Stream *int    `json:"stream,omitempty"`
	Layer  string  `json:"layer,omitempty"`
	Cause  string  `json:"cause,omitempty"`
	StartS float64 `json:"start_s"` // when it moved, by itself
	Before float64 `json:"before"`  // over the same times as the change's own
	After  float64 `json:"after"`
	Fit    float64 `json:"fit"` // 0..1: how near in time, and how much of the change's size it comes to
}
