package model

import (
	"math"
	"time"
)

// Checkpoint is what is known of a trial that still runs. A stored run holds them
// until the trial's result takes their place.
type Checkpoint struct {
	Cell     Cell        `json:"cell"`
	Repeat   int         `json:"repeat"`
	Started  time.Time   `json:"started"`   // of the trial; tells its tries apart
	ElapsedS float64     `json:"elapsed_s"` // of the measured part
	Flows    []FlowSoFar `json:"flows"`
	// Series are send_pps and receive_pps of each flow, of the seconds since the
	// checkpoint before; StartSeconds says from where on. NaN: nothing was heard.
	Series []Series `json:"series"`
}

// FlowSoFar is a flow's account while it runs. What was attempted is known by the
// sequences that came, so that what is on its way is not lost; where the receiver cannot
// tell that, both ends' figures are of the last second, not of one moment.
type FlowSoFar struct {
	Name         string   `json:"name"`
	Protocol     Protocol `json:"protocol"`
	From         string   `json:"from"`
	To           string   `json:"to"`
	PayloadBytes int      `json:"payload_bytes"`
	FrameBytes   int      `json:"frame_bytes"`
	Streams      int      `json:"streams"`
	Attempted    uint64   `json:"attempted_packets"`
	Received     uint64   `json:"received_packets"`
	Lines        []Line   `json:"lines,omitempty"` // losses that are named by now
}

func (f FlowSoFar) Lost() uint64 { return f.Attempted - min(f.Received, f.Attempted) }

// Unfinished is the result of a trial of which only checkpoints are left; they are
// in the order they were made. It is aborted: how its hosts were observed, in which
// seconds packets were lost and what their counters did comes with a trial's end, and
// is not in it.
func Unfinished(list []Checkpoint) Result {
	last := list[len(list)-1]
	r := Result{Cell: last.Cell, Repeat: last.Repeat, Started: last.Started, State: Aborted,
		Why: Reasons{{Code: StillOpen}}, Flows: []FlowResult{}, Series: []Series{}}
	for _, f := range last.Flows {
		one := FlowResult{Name: f.Name, Protocol: f.Protocol, From: f.From, To: f.To, PayloadBytes: f.PayloadBytes,
			FrameBytes: f.FrameBytes, Streams: f.Streams, DurationS: last.ElapsedS, Planned: f.Attempted,
			Attempted: f.Attempted, Accepted: f.Attempted, Received: min(f.Received, f.Attempted), Lost: f.Lost()}
		one.Ledger = Ledger{Lost: one.Lost, Unattributed: one.Lost, Lines: []Line{}, Checks: []Check{}}
		for _, l := range f.Lines {
			l.Packets = min(l.Packets, one.Ledger.Unattributed)
			one.Ledger.Unattributed -= l.Packets
			one.Ledger.Lines = append(one.Ledger.Lines, l)
		}
		if one.Attempted > 0 {
			one.LossRatio = float64(one.Lost) / float64(one.Attempted)
		}
		if s := last.ElapsedS; s > 0 {
			one.SendPPS, one.ReceivePPS = float64(one.Attempted)/s, float64(one.Received)/s
			bits := float64(8 * f.PayloadBytes)
			one.SendGoodputBPS, one.GoodputBPS = one.SendPPS*bits, one.ReceivePPS*bits
		}
		r.Flows = append(r.Flows, one)
	}
	type key struct{ metric, flow string }
	at := map[key]int{}
	for _, c := range list {
		for _, s := range c.Series {
			k := key{s.Metric, s.Flow}
			i, known := at[k]
			if !known {
				i = len(r.Series)
				at[k] = i
				r.Series = append(r.Series, s)
				continue
			}
			r.Series[i].appendLater(s)
		}
	}
	return r
}

// mostSilent bounds the steps, of a second each, between two parts of a series: an end that is not heard for longer
// than MaxPatience ends its trial. So the parts of a file add no more than their number allows, whatever they say.
const mostSilent = 120

// appendLater appends a later part of a series. Steps between the two parts are unknown: in those nothing was heard
// of an end.
func (s *Series) appendLater(later Series) {
	silent := (later.StartSeconds-s.StartSeconds)/s.StepSeconds - float64(len(s.Values))
	if s.StepSeconds > 0 && silent >= 0.5 {
		if silent > mostSilent {
			return // no trial goes on that long without its ends
		}
		for range int(math.Round(silent)) {
			s.Values = append(s.Values, math.NaN())
		}
	}
	s.Values = append(s.Values, later.Values...)
}
