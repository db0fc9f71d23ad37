package table

import (
	"maps"
	"math"
	"slices"

	"pelt/model"
	"pelt/words"
)

// Row is what one figure is about: a flow of a trial, or a part of it. Of
// Window, Line, Receiver, Mix, Core and Search at most one is set.
type Row struct {
	Doc   *model.Document
	Trial *model.Result
	// Flow has the figures: of the whole flow, or of the row's window or receiver.
	// It is nil in the row of a core, and in one that stands for its trial alone, as Group.Trials counts them.
	Flow     *model.FlowResult
	Window   *Window
	Line     *model.Line
	Receiver *model.ReceiverShare
	Mix      *Mix
	Core     *Core
	Search   *Search

	number   int     // of the trial in its run, from 1; 0: not looked up
	shortest float64 // round trip of trials on the same path, in ns; 0 unknown
}

// Language is what the row's report is to be written in.
func (r Row) Language() words.Language {
	if r.Doc == nil {
		return words.English
	}
	return r.Doc.Language
}

// Say says an English text in the language of the row's report.
func (r Row) Say(text string) string { return r.Language().Say(text) }

// Sayf says a format, and puts values into it.
func (r Row) Sayf(format string, values ...any) string { return r.Language().Sayf(format, values...) }

// Language is what a report of rows is to be written in.
func Language(rows []Row) words.Language {
	if len(rows) == 0 {
		return words.English
	}
	return rows[0].Language()
}

// Core is one processor core of a watched router over the measured part of a trial.
type Core struct {
	Node string
	model.CPUSplit
}

// Unattributed is the layer of lost packets that no line of a ledger explains.
const Unattributed = "unattributed"

// Valid reports whether the row's trial ran as ordered: only then it has figures.
func (r Row) Valid() bool { return r.Trial.State == model.Valid }

// Rows makes a row of each flow of each trial, whatever the trial's state. A
// trial that ended without flows has the flows that it was to have.
func Rows(docs ...*model.Document) []Row {
	var rows []Row
	for _, d := range docs {
		trips := shortestTrips(d)
		for i := range d.Results {
			t := &d.Results[i]
			flows := t.Flows
			if len(flows) == 0 {
				flows = plannedFlows(d, t)
			}
			for j := range flows {
				rows = append(rows, Row{Doc: d, Trial: t, Flow: &flows[j], number: i + 1,
					shortest: trips[pathOf(t)]})
			}
		}
	}
	return rows
}

func plannedFlows(d *model.Document, t *model.Result) []model.FlowResult {
	planned := d.Plan.Flows
	if trial, err := d.Plan.Trial(t.Cell, t.Repeat); err == nil { // else the plan is of another version
		planned = trial.Flows
	}
	var flows []model.FlowResult
	for _, f := range planned {
		flows = append(flows, f.Result(f.Family))
	}
	return flows
}

// pathOf is the same for trials of a run whose paths are set alike: the control
// is a setting of the sender, not of the path.
func pathOf(t *model.Result) string {
	path := maps.Clone(t.Cell)
	delete(path, "control")
	return path.Key()
}

// shortestTrips is the shortest round trip on each path of a run, in ns.
func shortestTrips(d *model.Document) map[string]float64 {
	out := map[string]float64{}
	for i := range d.Results {
		t := &d.Results[i]
		for _, f := range t.Flows {
			if t.State != model.Valid || f.RoundTrip == nil || !(f.RoundTrip.Min > 0) {
				continue
			}
			if least, ok := out[pathOf(t)]; !ok || f.RoundTrip.Min < least {
				out[pathOf(t)] = f.RoundTrip.Min
			}
		}
	}
	return out
}

// Accounted are the rows whose packets' ends are told: those of UDP flows, or without any those of TCP flows some of
// whose segments have a known place where they were dropped.
func Accounted(rows []Row) (out []Row) {
	of := func(accounted func(*model.FlowResult) bool) (out []Row) {
		for _, r := range rows {
			if accounted(r.Flow) {
				out = append(out, r)
			}
		}
		return out
	}
	if out = of(func(f *model.FlowResult) bool { return f.Protocol == model.UDP }); out != nil {
		return out
	}
	return of(func(f *model.FlowResult) bool { return len(f.Ledger.Lines)+len(f.Ledger.Possible) > 0 })
}

// Lines makes a row of each line of the ledgers of accounted flows, and one of what is unattributed.
func Lines(rows []Row) (out []Row) {
	for _, r := range Accounted(rows) {
		lines := slices.Clone(r.Flow.Ledger.Lines)
		if n := r.Flow.Ledger.Unattributed; n > 0 {
			lines = append(lines, model.Line{Layer: Unattributed, Packets: n})
		}
		for i := range lines {
			r.Line = &lines[i]
			out = append(out, r)
		}
	}
	return out
}

// Receivers makes a row of each receiver of flows to many. Of one receiver only
// what it got is known; its packets were sent at the rate of its part of the flow.
func Receivers(rows []Row) []Row {
	var out []Row
	for _, r := range rows {
		whole := r.Flow
		for i := range whole.Receivers {
			one := &whole.Receivers[i]
			f := whole.Bare()
			f.DurationS, f.GoodputBPS = whole.DurationS, one.GoodputBPS
			f.Attempted, f.Received = one.Attempted, min(one.Received, one.Attempted)
			f.Lost = f.Attempted - f.Received
			f.LossRatio = float64(f.Lost) / float64(max(f.Attempted, 1))
			if whole.Attempted > 0 {
				part := float64(one.Attempted) / float64(whole.Attempted)
				f.SendPPS, f.SendGoodputBPS = whole.SendPPS*part, whole.SendGoodputBPS*part
			}
			if f.PayloadBytes > 0 {
				f.ReceivePPS = f.GoodputBPS / 8 / float64(f.PayloadBytes)
			}
			r.Receiver, r.Flow = one, &f
			out = append(out, r)
		}
	}
	return out
}

// Summed is one row for several of one way between two hosts: their packets add up. It has no times.
func Summed(rows []Row) Row {
	r, f := rows[0], rows[0].Flow.Bare()
	for _, one := range rows {
		f.Attempted, f.Received = f.Attempted+one.Flow.Attempted, f.Received+one.Flow.Received
		f.Lost, f.DurationS = f.Lost+one.Flow.Lost, f.DurationS+one.Flow.DurationS
	}
	f.LossRatio = float64(f.Lost) / float64(max(f.Attempted, 1))
	r.Flow = &f
	return r
}

// Cores makes a row of each core of the routers that were watched during the rows' trials.
func Cores(rows []Row) []Row {
	var out []Row
	for _, r := range OneEach(rows) {
		if r.Trial.Router == nil {
			continue
		}
		for _, c := range r.Trial.Router.Cores {
			out = append(out, Row{Doc: r.Doc, Trial: r.Trial, Core: &Core{r.Trial.Router.Node, c}})
		}
	}
	return out
}

// OneEach is the first row of each trial.
func OneEach(rows []Row) (out []Row) {
	seen := map[*model.Result]bool{}
	for _, r := range rows {
		if !seen[r.Trial] {
			seen[r.Trial] = true
			out = append(out, r)
		}
	}
	return out
}

// mean of the values that are numbers, NaN if there are none.
func mean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n)
}
