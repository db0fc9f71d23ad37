package analysis

import (
	"fmt"
	"slices"
	"strings"

	"pelt/analysis/controls"
	"pelt/analysis/internal/say"
	"pelt/model"
)

// What held a transfer other than its congestion control, as shares.
const (
	windowHeld = 0.1  // of the time that it had data to send
	cpuFull    = 0.95 // of a core
	missedMost = 0.05 // of the samples of a trial
)

// holder is a cause that is no congestion control, and how many trials of each cell
// it held.
type holder struct {
	text  string
	holds func(model.Result, model.FlowResult) bool
	name  string // of its value
}

func holders() []holder {
	share := func(part, whole, most float64) bool { return whole > 0 && part > most*whole }
	return []holder{
		{"by the receiver's window for over 10 % of the time", func(_ model.Result, f model.FlowResult) bool {
			return share(f.TCP.RwndLimitedS, f.TCP.BusyS, windowHeld)
		}, "window"},
		{"by the sender's own buffer for over 10 % of the time", func(_ model.Result, f model.FlowResult) bool {
			return share(f.TCP.SndbufLimitedS, f.TCP.BusyS, windowHeld)
		}, "buffer"},
		{"by a processor that was full", func(_ model.Result, f model.FlowResult) bool { return full(f.SenderCPU) || full(f.ReceiverCPU) }, "cpu"},
	}
}

func full(c model.CPU) bool {
	return c.ThreadRatio >= cpuFull || c.HostRatio >= cpuFull || c.BusiestRatio >= cpuFull
}

// limited tells of trials that show less than what their congestion control would do.
func (a *analyst) limited(t *model.ControlTable) {
	for _, h := range holders() {
		var held, trials int
		var cells []model.Cell
		var names []string
		for _, r := range a.doc.Results {
			f, ok := transferOf(r)
			if r.State != model.Valid || !ok {
				continue
			}
			if trials++; !h.holds(r, f) {
				continue
			}
			held++
			if slices.ContainsFunc(cells, r.Cell.Equal) {
				continue
			}
			cells = append(cells, r.Cell)
			names = append(names, controlAt(t, r))
		}
		if held == 0 {
			continue
		}
		slices.Sort(names)
		if rest := len(names) - 3; rest > 1 {
			names = append(names[:3], fmt.Sprintf("%d more", rest))
		}
		were := "were"
		if held == 1 {
			were = "was"
		}
		a.tell(KindLimited, cells, map[string]float64{"limited_trials": float64(held), "trials": float64(trials), h.name + "_limited": 1},
			"%d of %s %s held %s, not by the congestion control alone: %s.", held, number(trials, "trial", "trials"), were, h.text, strings.Join(names, ", "))
	}
}

// transferOf is the flow of TCP of a trial.
func transferOf(r model.Result) (model.FlowResult, bool) {
	i := slices.IndexFunc(r.Flows, func(f model.FlowResult) bool { return f.TCP != nil })
	if i < 0 {
		return model.FlowResult{}, false
	}
	return r.Flows[i], true
}

// offload tells what random loss takes, which can falsify all of it.
func (a *analyst) offload() {
	if text := controls.Offload(a.doc); text != "" {
		a.add(KindOffload, nil, "%s", text)
	}
}

// invalidControls tells how many trials did not count, and whether others took their
// place.
func (a *analyst) invalidControls(t *model.ControlTable) {
	var invalid, finished, missing int
	for _, r := range a.doc.Results {
		if r.State != model.Aborted {
			finished++
		}
		if r.State == model.Invalid {
			invalid++
		}
	}
	for _, c := range t.Cells {
		missing += c.Invalid
	}
	if invalid == 0 {
		return
	}
	end := "; others took their place"
	if missing > 0 {
		end = fmt.Sprintf("; %s no valid one", number(missing, "repeat has", "repeats have"))
	}
	a.add(KindInvalid, map[string]float64{"invalid_trials": float64(invalid), "trials": float64(finished), "repeats_without_valid": float64(missing)},
		"%d of %s invalid and left out%s; see Not counted.", invalid, number(finished, "trial is", "trials are"), end)
}

// controlDoubts are doubts about the figures of a run of congestion controls.
func controlDoubts(doc model.Document) []string {
	var other []string
	var missed, trials int
	for _, r := range doc.Results {
		f, ok := transferOf(r)
		if r.State != model.Valid || !ok {
			continue
		}
		trials++
		asked, used := strings.Split(r.Cell["control"].Text, model.MixSeparator), strings.Split(f.TCP.Control, model.MixSeparator)
		for _, name := range used {
			if asked[0] != "" && name != "" && !slices.Contains(asked, name) {
				if text := fmt.Sprintf("%s where %s was asked for", name, r.Cell["control"].Text); !slices.Contains(other, text) {
					other = append(other, text)
				}
			}
		}
		if due := f.DurationS / sampleSeconds; float64(f.TCP.SamplesMissed) > missedMost*max(due, 1) {
			missed++
		}
	}
	doubts := []string{}
	if len(other) > 0 {
		doubts = append(doubts, "the kernel used another congestion control: "+say.And(other))
	}
	if missed > 0 {
		doubts = append(doubts, fmt.Sprintf("%d of %s missed samples of TCP: series have gaps, totals have not", missed, number(trials, "trial", "trials")))
	}
	if len(doc.Plan.Flows) > 0 {
		from := doc.Plan.Flows[0].From
		i := slices.IndexFunc(doc.Host, func(h model.Host) bool { return h.Node == from })
		if i >= 0 && doc.Host[i].TCPSettings["no_metrics_save"] == "0" {
			doubts = append(doubts, "the "+from+" keeps what a connection learnt for the next one, which begins with its ssthresh: sysctl -w net.ipv4.tcp_no_metrics_save=1 there")
		}
	}
	return doubts
}

// sampleSeconds is how often TCP is read.
const sampleSeconds = 0.05

// controlAt names the control and the condition of a trial.
func controlAt(t *model.ControlTable, r model.Result) string {
	under := model.Cell{}
	for knob, v := range r.Cell {
		if knob != "control" {
			under[knob] = v
		}
	}
	name := r.Cell["control"].Text
	for _, s := range t.Conditions {
		if s.Cell.Equal(under) {
			return strings.TrimSpace(name + controls.Under(s))
		}
	}
	return name
}
