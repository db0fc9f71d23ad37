package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/lab"
	"pelt/model"
)

// Trials may run side by side where their paths share nothing but this machine: in
// labs that are made for them. Whether the machine is enough for several is judged
// as for one: by senders and links that kept their schedules.

// checkSideBySide reports whether a plan's trials can run side by side at all.
func checkSideBySide(p model.Plan) error {
	if p.Design.SideBySide < 2 {
		return nil
	}
	name, isLab := strings.CutPrefix(p.Target, "lab:")
	if !isLab || !isTopology(name) {
		return &model.FieldError{Field: "design.side_by_side", Want: fmt.Sprintf("want a lab that is made for the run, as lab:%s: trials side by side need paths that share nothing, and there is one %s", lab.Star, p.Target)}
	}
	if p.Engine != auto && p.Engine != "udp" {
		return &model.FieldError{Field: "design.side_by_side", Want: "XDP frames take whole cores; want engine auto or udp"}
	}
	return nil
}

// alike opens, beside a path, as many more as a plan wants for trials side by side.
// It closes all of them if it fails.
func alike(ctx context.Context, p model.Plan, o Options, first *path) ([]*path, error) {
	paths := []*path{first}
	o.Uncalibrated = true // the first one was, and these have its settings
	for i := 1; i < p.Design.SideBySide; i++ {
		next := p
		next.Links = slices.Clone(p.Links)
		for k := range next.Links {
			if next.Links[k].Seed != 0 {
				next.Links[k].Seed += uint64(i) // the same draws twice at a time would count for more than they are
			}
		}
		one, err := openPath(ctx, next, o)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make lab %d of %d: %w", i+1, p.Design.SideBySide, err), closeAll(paths))
		}
		one.mtus = first.mtus
		paths = append(paths, one)
	}
	return paths, nil
}

func closeAll(paths []*path) error {
	var errs []error
	for _, p := range slices.Backward(paths) {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// offers is how many packets a second a trial is to send, all flows and receivers
// together, and each fragment for itself; infinite if it sends as fast as it can.
func (p *path) offers(t model.Trial) (sum float64) {
	for _, f := range t.Flows {
		pps, paced := f.PeakPPS()
		if !paced {
			return math.Inf(1)
		}
		_, n := p.fragments(f)
		sum += pps * float64(n*max(1, len(p.among(t))))
	}
	return sum
}

// crowded tells that a trial in company says nothing of its path: it is invalid, or
// packets were lost by what reads them on this machine, which the others kept busy.
// One that no kernel would send is so in any company.
func crowded(r model.Result, hopeless bool) bool {
	if r.State == model.Invalid {
		return !hopeless
	}
	return r.State == model.Valid && slices.ContainsFunc(r.Flows, func(f model.FlowResult) bool {
		return f.Ledger.Unattributed > 0 || slices.ContainsFunc(f.Ledger.Lines, func(l model.Line) bool {
			return l.Packets > 0 && slices.Contains([]string{"SOCKET_RCVBUFF", "CPU_BACKLOG", model.CauseUnread, model.CauseLate, model.CauseOverrun}, l.Cause)
		})
	})
}
