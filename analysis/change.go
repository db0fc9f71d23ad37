package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
	"pelt/unit"
)

const (
	// mostEvents are told one by one; further ones are counted. mostReasons of each.
	mostEvents  = 8
	mostReasons = 3
	// plainFit is what a mover of another unit comes to at most, of which only the document tells.
	plainFit = 0.5
)

// happening is what several series of a flow did at the same time; the first tells most.
type happening struct {
	trial   int // index of the result
	changes []model.Change
}

// changed tells what the series of valid trials did that is not their noise.
func (a *analyst) changed() {
	var all []happening
	for i, r := range a.doc.Results {
		if r.State == model.Valid || r.State == model.Aborted || isSoak(a.doc) { // what a cut trial showed until then stands
			all = append(all, happenings(i, r.Changes)...)
		}
	}
	for i, h := range all {
		if i == mostEvents {
			a.add(KindChange, map[string]float64{"further_changes": float64(len(all) - i)}, "%d further changes are in the document.", len(all)-i)
			break
		}
		a.happened(h)
	}
}

// happenings puts together what began together, in the order of time.
func happenings(trial int, changes []model.Change) (out []happening) {
	for _, c := range changes {
		at := slices.IndexFunc(out, func(h happening) bool {
			f := h.changes[0]
			return f.Alike(c) && c.StartLowS <= f.StartHighS+model.Together && f.StartLowS <= c.StartHighS+model.Together
		})
		if at < 0 {
			out = append(out, happening{trial: trial})
			at = len(out) - 1
		}
		out[at].changes = append(out[at].changes, c)
	}
	for _, h := range out {
		slices.SortStableFunc(h.changes, func(a, b model.Change) int { return prominence(a) - prominence(b) })
	}
	return out
}

// prominence is a change's rank; of moments losses tell most.
func prominence(c model.Change) int {
	if c.Kind == model.ChangeBurst && c.Metric == "lost_pps" {
		return 0
	}
	return c.Rank()
}

func (a *analyst) happened(h happening) {
	c := h.changes[0]
	text := a.whichTrial(h.trial) + moved(c)
	text = strings.ToUpper(text[:1]) + text[1:]
	for _, reason := range append(a.reasons(h), a.asked(h)...) {
		text += "; " + reason
	}
	values := map[string]float64{"trial": float64(h.trial), "start_s": c.StartS, "start_low_s": c.StartLowS, "start_high_s": c.StartHighS, "end_s": c.EndS,
		"before": c.Before, "after": c.After, "size": c.Size, "p_value": c.PValue}
	for name, v := range map[string]float64{"period_s": c.PeriodS, "count": float64(c.Count), "packets": c.Packets} {
		if v != 0 {
			values[name] = v
		}
	}
	for k, v := range values { // whatever a document holds
		if math.IsNaN(v) || math.IsInf(v, 0) {
			delete(values, k)
		}
	}
	a.add(KindChange, values, "%s.", text)
}

// whichTrial names a trial where a run has several.
func (a *analyst) whichTrial(i int) string {
	if len(a.doc.Results) < 2 {
		return ""
	}
	r := a.doc.Results[i]
	var words []string
	for _, knob := range slices.SortedFunc(func(yield func(string) bool) {
		for k := range r.Cell {
			if !yield(k) {
				return
			}
		}
	}, say.ByImportance) {
		if v := r.Cell[knob]; knob == "payload_bytes" || knob == "frame_bytes" {
			words = append([]string{v.String() + " B"}, words...)
		} else if text := say.Knob(knob, v); text != "" {
			words = append(words, text)
		}
	}
	name := strings.TrimSpace(strings.Join(words, " "))
	if name != "" {
		name = ", " + name
	}
	return fmt.Sprintf("trial %d%s: ", i+1, name)
}

// moved says what a series did.
func moved(c model.Change) string {
	what := nameOf(c)
	switch c.Kind {
	case model.ChangeShift:
		return fmt.Sprintf("after %s %s %s %s", clock(c.StartS), what, verb(c.Size), fromTo(c.Metric, c.Before, c.After))
	case model.ChangeDrift:
		return fmt.Sprintf("from %s to %s %s %s steadily %s", clock(c.StartS), clock(c.EndS), what, verb(c.Size), fromTo(c.Metric, c.Before, c.After))
	case model.ChangeStall:
		return fmt.Sprintf("every %s %s fell %s for a moment, %d times from %s to %s", say.Level(unit.FormatNanos(c.PeriodS*1e9)), what,
			fromTo(c.Metric, c.Before, c.After), c.Count, clock(c.StartS), clock(c.EndS))
	case model.ChangeBurst:
		lost := unit.FormatCount(uint64(max(0, math.Round(c.Packets)))) + " packets more than usual were lost" + ofFlow(c.Flow)
		switch {
		case c.PeriodS > 0:
			return fmt.Sprintf("every %s there was a burst of loss, %d from %s to %s: %s in them", say.Level(unit.FormatNanos(c.PeriodS*1e9)), c.Count, clock(c.StartS), clock(c.EndS), lost)
		case c.Count > 1:
			return fmt.Sprintf("%d bursts of loss came from %s to %s: %s in them", c.Count, clock(c.StartS), clock(c.EndS), lost)
		}
		return fmt.Sprintf("at %s %s within %s", clock(c.StartS), lost, say.Level(unit.FormatNanos(max(0, c.EndS-c.StartS)*1e9)))
	}
	return c.Kind + " of " + what
}

func nameOf(c model.Change) string {
	names := map[string]string{"receive_pps": "the rate that arrived", "send_pps": "the rate that was sent", "goodput_bps": "goodput", "lost_pps": "loss"}
	name, ok := names[c.Metric]
	if !ok {
		name = c.Metric + " at " + c.At
	}
	return name + ofFlow(c.Flow)
}

func ofFlow(flow string) string {
	if flow == "" {
		return ""
	}
	return " (" + flow + ")"
}

func verb(size float64) string {
	if size < 0 {
		return "fell"
	}
	return "rose"
}

// fromTo prints two figures of a metric, the unit once where it is the same.
func fromTo(metric string, before, after float64) string {
	from, to := figure(metric, before), figure(metric, after)
	return "from " + unit.Bare(from, to) + " to " + to
}

// figure prints a value by the unit in its metric's name.
func figure(metric string, v float64) string {
	if text, ok := unit.FormatNamed(metric, v); ok {
		return text
	}
	if strings.HasSuffix(metric, "_hz") {
		return fmt.Sprintf("%.3g /s", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// clock prints a time within a trial: "80 s", "2 h 3 min 20 s".
func clock(s float64) string {
	whole := int64(math.Round(max(0, min(s, 1e12))))
	if whole < 600 {
		return fmt.Sprintf("%d s", whole)
	}
	var words []string
	for _, p := range []struct {
		seconds int64
		name    string
	}{{3600, "h"}, {60, "min"}, {1, "s"}} {
		if n := whole / p.seconds; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, p.name))
			whole -= n * p.seconds
		}
	}
	return strings.Join(words, " ")
}

// reasons says what moved with a change, a thing once.
func (a *analyst) reasons(h happening) (out []string) {
	c := h.changes[0]
	told := map[string]bool{}
	layered := slices.ContainsFunc(c.Causes, func(m model.Mover) bool { return m.Metric == "lost_pps" && m.Layer != "" })
	movers := slices.Clone(c.Causes)
	// Losses come first: they are what happened to the packets; the rest is why.
	slices.SortStableFunc(movers, func(x, y model.Mover) int { return cmp.Compare(rank(x), rank(y)) })
	for _, m := range movers {
		if m.Metric == "lost_pps" && m.Layer == "" && layered {
			continue
		}
		key, text := a.reason(h.trial, m)
		if key == "" || told[key] || len(out) == mostReasons {
			continue
		}
		told[key] = true
		out = append(out, text)
	}
	return out
}

func rank(m model.Mover) int {
	switch {
	case m.Metric == "send_pps":
		return 0
	case m.Metric == "lost_pps":
		return 1
	case m.Metric == "dropped_pps":
		return 2
	}
	return 3
}

func (a *analyst) reason(trial int, m model.Mover) (key, text string) {
	who := "the " + m.At
	switch {
	case m.Metric == "send_pps":
		return "send", fmt.Sprintf("what was sent %s %s", verb(m.After-m.Before), fromTo(m.Metric, m.Before, m.After))
	case m.Metric == "lost_pps":
		text = fmt.Sprintf("losses moved %s", fromTo(m.Metric, m.Before, m.After))
		if m.Layer != "" {
			text += ": " + a.placeOf(trial, m)
		}
		return m.Metric + m.Layer + m.Cause, text
	case m.Metric == "dropped_pps":
		return m.Metric + m.At + m.Layer + m.Cause, fmt.Sprintf("the kernel of %s dropped %s after %s (%s)", who, figure(m.Metric, m.After), figure(m.Metric, m.Before), strings.TrimSpace(m.Layer+" "+m.Cause))
	case strings.HasPrefix(m.Metric, "cpu_"):
		of := who
		if m.Core != nil {
			of = fmt.Sprintf("core %d of %s", *m.Core, who)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(m.Metric, "cpu_"), "_ratio")
		return "cpu" + of, fmt.Sprintf("%s went from %s to %s %s", of, strings.TrimSuffix(figure(m.Metric, m.Before), " %"), figure(m.Metric, m.After), name)
	}
	if m.Fit <= plainFit {
		return "", ""
	}
	return m.Metric + m.At, fmt.Sprintf("%s at %s went %s", m.Metric, who, fromTo(m.Metric, m.Before, m.After))
}

// placeOf says for people where and why packets were lost: at the mover's node, or at that of the
// ledger's line where the series tells only whose packets they were.
func (a *analyst) placeOf(trial int, m model.Mover) string {
	host := m.At
	for _, f := range a.doc.Results[trial].Flows {
		for _, l := range f.Ledger.Lines {
			if l.Layer == m.Layer && l.Cause == m.Cause && m.At == f.From {
				host = l.Host
			}
		}
	}
	return fmt.Sprintf("%s (%s)", model.Phrase(m.Layer, m.Cause, host), strings.TrimSpace(m.Layer+" "+m.Cause))
}

// asked names what was changed in the lab on purpose when a change began.
func (a *analyst) asked(h happening) (out []string) {
	for _, m := range a.doc.Results[h.trial].Made {
		if c := h.changes[0]; m.Failure == "" && m.AtS >= c.StartLowS-model.Together && m.AtS <= c.StartHighS {
			out = append(out, fmt.Sprintf("the lab was changed at %s, as asked: %s", clock(m.AtS), m.Words))
		}
	}
	return out
}
