package run

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pelt/analysis/controls"
	"pelt/design"
	"pelt/engine"
	"pelt/lab"
	"pelt/model"
	"pelt/unit"
)

// enough tells a design when a plan's controls are told apart; nil where that ends
// no run.
func enough(p model.Plan) design.Enough {
	if p.Design.MostRepeats <= p.Design.Repeats {
		return nil
	}
	return func(done []model.Result, repeats int) bool {
		return controls.Apart(model.Document{Plan: p, Results: done}, repeats)
	}
}

// rehearse has both ends find out, before anything is sent or stored, whether they
// can use the congestion controls of all trials.
func (p *path) rehearse(ctx context.Context, plan model.Plan) error {
	trials, err := rehearsals(plan)
	for _, trial := range trials {
		placed, _, err := p.place(trial)
		if err != nil {
			return err
		}
		placed.Number = 1 // no packet carries it
		if err := p.controller.Rehearse(ctx, placed); err != nil {
			return fmt.Errorf("before the first trial: %w", err)
		}
	}
	return err
}

// rehearsed is how many congestion controls are tried at once: a mix may have more.
const rehearsed = 8

// rehearsals are trials that have each congestion control of a plan's factor, and
// nothing that is of no matter to it; none without such a factor.
func rehearsals(plan model.Plan) (trials []model.Trial, err error) {
	var names []string
	for _, f := range plan.Factors {
		if f.Knob != "control" {
			continue
		}
		for _, v := range f.Levels {
			for _, name := range (model.Flow{Control: v.Text}).Controls() {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	for some := range slices.Chunk(names, rehearsed) {
		trial, err := plan.Trial(oneByOne(plan)[0], 0)
		if err != nil {
			return nil, err
		}
		for i := range trial.Flows {
			f := &trial.Flows[i]
			f.Control, f.Streams = strings.Join(some, model.MixSeparator), max(f.Streams, len(some))
			f.Bytes, f.HTTP, f.StaggerSeconds, f.Commands = 0, false, 0, nil
		}
		trials = append(trials, trial)
	}
	return trials, nil
}

// oneReceiver refuses what is told of one transfer at a time where there are several.
func oneReceiver(p model.Plan, receivers int) error {
	if receivers > 0 && slices.ContainsFunc(p.Flows, func(f model.Flow) bool { return f.Bytes > 0 || f.InfoSeconds > 0 || f.Commands != nil }) {
		return &model.FieldError{Field: "target", Want: "a star has many receivers, and a transfer is told of one; want another lab, as lab:direct"}
	}
	return nil
}

// seedLinks has a lab's emulated links draw from a beginning of their own. Links that
// another process moves, or the kernel, go on as they are.
func (p *path) seedLinks(seed uint64) error {
	if seed == 0 || p.roads.lab == nil || len(p.roads.links) == 0 ||
		slices.ContainsFunc(p.roads.links, func(e lab.EmulatedLink) bool { return e.Cable == nil }) {
		return nil
	}
	change := model.LinkChange{Settings: []model.LinkSetting{{Key: "seed", Value: fmt.Sprint(seed)}}}
	if _, err := p.roads.lab.SetLinks([]model.LinkChange{change}, lab.SetOptions{Lent: true}); err != nil {
		return err
	}
	return p.roads.lab.BeginAnew()
}

// completion is how a transfer went, by the account that tells it best; nil of a flow
// without an end.
func completion(f model.Flow, oneClock bool, sent engine.SendReport, in engine.ReceiveReport) *model.Completion {
	if f.Bytes == 0 || sent.TCP == nil || sent.TCP.Completion == nil {
		return nil
	}
	c := *sent.TCP.Completion
	c.Bytes, c.By = f.Bytes, model.ByAcknowledged
	if answer := in.TCP; f.HTTP && answer != nil && answer.Completion != nil && answer.Completion.Done {
		c.Done, c.Seconds, c.By = true, answer.Completion.Seconds, model.ByAnswer
	} else if took := float64(in.Tally.LastNanos-sent.BeginNanos) / 1e9; oneClock && !f.HTTP && in.Tally.Bytes >= f.Bytes && took > 0 && took <= c.Seconds+1 {
		c.Done, c.Seconds, c.By = true, took, model.ByRead
	}
	return &c
}

// heldShare is the part of its busy time that TCP may be held by its windows before
// the figure is no longer its congestion control's; busyHost and fullLink the share of
// all cores, and of a link's rate, from which on they are full.
const (
	heldShare = 0.05
	heldLeast = 0.1 // s: every connection's windows are small at its begin
	busyHost  = 0.97
	fullLink  = 0.9
)

// held says why a transfer shows something else than its congestion control: on a path
// with a rate it fell short of, TCP was held by its windows, or this machine had no
// time left. "" if neither.
func (p *path) held(f model.FlowResult, asked model.Flow) string {
	if asked.InfoSeconds == 0 || f.TCP == nil || p.lab == nil {
		return ""
	}
	rate := p.slowest(asked)
	if rate == 0 || f.GoodputBPS >= fullLink*rate {
		return ""
	}
	if held := f.TCP.RwndLimitedS + f.TCP.SndbufLimitedS; held > max(heldShare*f.TCP.BusyS, heldLeast) {
		return fmt.Sprintf("flow %s: TCP was held by its windows for %s of the time, not by its congestion control (receive window %s, send buffer %s)",
			f.Name, unit.FormatRatio(held/f.TCP.BusyS), unit.FormatNanos(f.TCP.RwndLimitedS*1e9), unit.FormatNanos(f.TCP.SndbufLimitedS*1e9))
	}
	if f.SenderCPU.HostRatio > busyHost {
		return fmt.Sprintf("flow %s: this machine had no time left: its processors were busy for %s of the trial", f.Name, unit.FormatRatio(f.SenderCPU.HostRatio))
	}
	return ""
}

// slowest is the least rate of a lab's links on a flow's way in bit/s; 0 where none
// has one.
func (p *path) slowest(f model.Flow) float64 {
	if p.roads.lab == nil {
		return 0
	}
	ways, err := p.roads.lab.Links()
	if err != nil {
		return 0
	}
	var nodes []string
	for _, n := range p.roads.lab.Nodes() {
		nodes = append(nodes, n.Name())
	}
	return slowestWay(ways, nodes, f.From == model.Sender)
}

// slowestWay is that of the ways that lead up or down a path of nodes.
func slowestWay(ways []lab.LinkWay, nodes []string, up bool) (least float64) {
	for _, w := range ways {
		leadsUp := slices.Index(nodes, w.From) < slices.Index(nodes, w.To)
		if r := float64(w.Settings.Rate); leadsUp == up && r > 0 && (least == 0 || r < least) {
			least = r
		}
	}
	return least
}

// Bounds of what a sender's own account over time may be.
const (
	maxTCPSeries = 24 * model.MaxStreams
	maxTCPValues = 1 << 20
)

// tcpMetrics are what a sender tells over time.
func tcpMetrics() []string {
	return []string{model.SeriesWindow, model.SeriesInflight, model.SeriesLostSegments, model.SeriesRetransmits, model.SeriesRTT, model.SeriesMinRTT,
		model.SeriesDelivery, model.SeriesAppLimited, model.SeriesPacing, model.SeriesAcked, model.SeriesBusy, model.SeriesRwndLimited,
		model.SeriesSndbufLimited, model.SeriesBBRBandwidth, model.SeriesBBRPacingGain, model.SeriesBBRWindowGain}
}

// tcpSeries are a sender's series that can be: named as pelt names them, and no longer
// than the trial. A sender begins them with its warm-up, which is left out.
func tcpSeries(f model.Flow, t model.Timing, sent engine.SendReport) (list []model.Series) {
	longest := t.WarmupSeconds + t.MeasureSeconds + overtimeSeconds
	values, metrics := 0, tcpMetrics()
	for _, s := range sent.Series {
		if len(list) == maxTCPSeries || !slices.Contains(metrics, s.Metric) ||
			!(s.StepSeconds >= 0.001 && s.StepSeconds <= longest) || s.Stream != nil && (*s.Stream < 0 || *s.Stream >= f.Streams) {
			continue
		}
		s.Values = s.Values[:min(len(s.Values), int(math.Ceil(longest/s.StepSeconds)))]
		if values += len(s.Values); values > maxTCPValues {
			break
		}
		before := int(math.Ceil(t.WarmupSeconds / s.StepSeconds))
		if s.Values = s.Values[min(before, len(s.Values)):]; len(s.Values) == 0 {
			continue
		}
		s.Flow, s.At, s.Core, s.StartSeconds = f.Name, f.From, nil, float64(before)*s.StepSeconds-t.WarmupSeconds
		list = append(list, s)
	}
	return list
}

// tameTCP bounds what a sender says of its streams.
func tameTCP(f model.TCPFacts, streams int) *model.TCPFacts {
	f.PerStream = f.PerStream[:min(len(f.PerStream), streams)]
	f.Control = f.Control[:min(len(f.Control), maxText)]
	for i := range f.PerStream {
		s := &f.PerStream[i]
		s.Control = s.Control[:min(len(s.Control), maxText)]
		s.StartSeconds, s.GoodputBPS = max(s.StartSeconds, 0), max(s.GoodputBPS, 0)
	}
	for _, s := range []*float64{&f.BusyS, &f.RwndLimitedS, &f.SndbufLimitedS, &f.MinRTTNanos} {
		if !(*s >= 0 && *s < 1e12) {
			*s = 0
		}
	}
	if c := f.Completion; c != nil && !(c.Seconds >= 0 && c.Seconds < 1e9) {
		f.Completion = nil
	}
	return &f
}

// maxSettings is more than any kernel has of TCP.
const maxSettings = 512

// hostsOf are the hosts as a plan's document has them: with TCP's settings where that
// is what is compared, and no more of them than a kernel has.
func hostsOf(p model.Plan, hosts []model.Host) []model.Host {
	wanted := slices.ContainsFunc(p.Flows, func(f model.Flow) bool { return f.InfoSeconds > 0 })
	for i := range hosts {
		h := &hosts[i]
		if !wanted || len(h.TCPSettings) > maxSettings {
			h.TCPSettings = nil
		}
		maps.DeleteFunc(h.TCPSettings, func(name, value string) bool { return len(name) > maxText || len(value) > maxText })
	}
	return hosts
}
