package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/fleet"
	"pelt/model"
)

// The path MTU is searched before the first trial, by a small trial of its own. If the
// search fails, the run goes on, and the path MTU is unknown.

const (
	surveySeconds  = 1.0             // of the search, as the engine bounds it
	surveyPatience = 3 * time.Second // with all that comes before and after it

	leastUnheard = 600 * time.Millisecond // after a search in which nothing came through
)

// survey finds each flow's path MTU, and puts it in place of payload levels "mtu". said are warnings about these
// levels. An error says that such a level stays unknown.
func (s *site) survey(ctx context.Context, plan *model.Plan) (mtus []model.PathMTU, said model.Reasons, err error) {
	if s.pairs != nil || s.silent != "" { // its pairs have paths of their own; probes are not answered
		return nil, nil, nil
	}
	mtus = s.searchMTU(ctx, plan.Flows)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if s.lab != nil { // the search draws differently from run to run, and a seed shall mean the same each time
		s.lab.RestartDraws(0)
	}
	if !plan.AsksPathMTU() {
		return mtus, nil, nil
	}
	payload, said, err := s.wholePayload(mtus)
	if err != nil {
		return nil, nil, err
	}
	settled, twice := plan.WithPayload(payload)
	if twice {
		said = append(said, model.NewReason(model.PayloadTwice, "payload_bytes", float64(payload)))
	}
	*plan = settled
	if err := plan.Check(); err != nil {
		return nil, nil, fmt.Errorf("payload mtu is %d B here: %w", payload, err)
	}
	return mtus, said, nil
}

// wholePayload is the largest payload that no flow's path needs fragments for.
func (s *site) wholePayload(mtus []model.PathMTU) (payload int, said model.Reasons, err error) {
	var unknown *model.PathMTU
	for i, m := range mtus {
		switch {
		case m.Bytes == 0 && unknown == nil:
			unknown = &mtus[i]
		case m.Bytes == 0:
		case payload == 0 || m.PayloadBytes < payload:
			payload = m.PayloadBytes
		}
		if m.AtLeast {
			said = append(said, model.NewReason(model.PayloadLeast, "flow", m.Flow,
				"payload_bytes", float64(m.PayloadBytes)))
		}
	}
	if unknown == nil {
		return payload, said, nil
	}
	for _, h := range s.hosts() {
		for _, m := range mtus {
			if n := model.WholePayload(m.Family, h.MTUBytes); n > 0 && (payload == 0 || n < payload) {
				payload = n
			}
		}
	}
	if payload == 0 {
		return 0, nil, refuse("--payload", "mtu: path MTU unknown: %s; give the size as a number",
			&finding.Fault{Reason: model.Reason{Code: model.Several, Of: unknown.Why}})
	}
	return payload, append(said, model.NewReason(model.PayloadGuess, "payload_bytes", float64(payload))), nil
}

// searchMTU makes one survey for each pair of ends, all at once: what goes between two ends
// in either direction is one.
func (s *site) searchMTU(ctx context.Context, flows []model.Flow) []model.PathMTU {
	trial := fleet.Trial{Number: uint16(1 + rand.IntN(engine.WarmupBit-1)), Survey: true, OneClock: s.oneClock,
		Timing: model.Timing{MeasureSeconds: surveySeconds}}
	list := make([]model.PathMTU, len(flows))
	asked := make([][]int, len(flows)) // the surveys of each in trial
	var why model.Doubts
	fault := func(err error) model.Doubts {
		return model.Doubts{{Code: model.MTUFault, Of: model.Reasons{finding.ReasonOf(err)}}}
	}
	for i, f := range flows {
		list[i] = model.PathMTU{Flow: f.Name, From: f.From, To: f.To, Family: 4}
		for _, one := range s.perReceiver(f, 0) {
			placed, err := s.surveyed(one)
			if err != nil {
				why = fault(err)
				continue
			}
			list[i].Family = familyOf(placed)
			at := slices.IndexFunc(trial.Flows, func(p fleet.PlacedFlow) bool {
				return p.To == placed.To && p.Listen == placed.Listen && p.Flow.DSCP == placed.Flow.DSCP &&
					p.Flow.Source(0) == placed.Flow.Source(0)
			})
			if at < 0 {
				at = len(trial.Flows)
				trial.Flows = append(trial.Flows, placed)
			}
			asked[i] = append(asked[i], at)
		}
	}
	var out fleet.Outcome
	if why == nil {
		ctx, cancel := context.WithTimeout(ctx, surveyPatience)
		defer cancel()
		var err error
		switch out, err = s.controller.RunTrial(ctx, trial, nil); {
		case errors.Is(err, context.DeadlineExceeded):
			why = model.Doubts{{Code: model.MTUUnmet, Numbers: map[string]float64{"after_s": surveyPatience.Seconds()}}}
		case err != nil:
			why = fault(err)
		default:
			if out.Cut.Code != "" {
				why = model.Doubts{{Code: model.TrialCut, Of: model.Reasons{out.Cut}}}
			}
			if out.Unmet { // silence of a slow path, or of a busy host, lasts longer
				s.unheard = max(leastUnheard, 4*out.Slowest)
			}
		}
	}
	for i := range list {
		list[i] = leastMTU(list[i], trial, asked[i], out, why)
	}
	return list
}

// surveyed places the survey of a flow, whose prober is at the end that dials.
func (s *site) surveyed(f model.Flow) (fleet.PlacedFlow, error) {
	node := f.To
	if node == model.Sender {
		node = f.From
	}
	near, far := s.end(model.Sender).agent, s.end(node).agent
	dialer, listen, err := s.dial(f)
	if err != nil {
		return fleet.PlacedFlow{}, err
	}
	one := model.Flow{Name: "path MTU to " + node, Protocol: model.UDP, From: model.Sender, To: node,
		Family: f.Family, DSCP: f.DSCP, Streams: 1, SourceAddresses: f.SourceAddresses}
	udp := fleet.Choice{Engine: "udp"}
	return fleet.PlacedFlow{Flow: one, Send: udp, Receive: udp, From: near.ID, To: far.ID, Dialer: dialer,
		Listen: listen, CPU: -1}, nil
}

// leastMTU returns the smallest path MTU among the receivers of one plan's flow, or the first one that is unknown.
func leastMTU(m model.PathMTU, trial fleet.Trial, asked []int, out fleet.Outcome, why model.Doubts) model.PathMTU {
	m.Why = why
	otherwise := func(m *model.PathMTU, code string) {
		if m.Why == nil {
			m.Why = model.Doubts{{Code: code}}
		}
	}
	chosen, probes := m, 0
	for _, k := range asked {
		var found *model.PathMTU
		f := trial.Flows[k].Flow
		if k < len(out.Flows) && out.Flows[k].Send != nil && out.Flows[k].Send.Probe != nil {
			found = out.Flows[k].Send.Probe.Out
			if called := trial.Flows[k].Dialer != trial.Flows[k].From; called != (m.From != model.Sender) {
				found = out.Flows[k].Send.Probe.Back
			}
			if m.From != model.Sender {
				f.From, f.To = f.To, f.From
			}
		}
		if k < len(out.Flows) && out.Flows[k].Meeting.None {
			otherwise(&m, model.NothingThrough)
		}
		if found == nil {
			otherwise(&m, model.MTUCut)
			return m
		}
		probes += found.Probes
		one := *found
		one.Flow, one.From, one.To, one.Family = m.Flow, f.From, f.To, m.Family
		one.PayloadBytes = model.WholePayload(one.Family, one.Bytes)
		if one.Bytes == 0 {
			if one.Why == nil {
				one.Why = why
			}
			otherwise(&one, model.MTUCut)
			return one
		}
		if chosen.Bytes == 0 || one.Bytes < chosen.Bytes {
			chosen = one
		}
	}
	chosen.Probes = probes
	return chosen
}
