package run

import (
	"cmp"
	"context"
	"slices"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
)

// changes are those that a plan makes of the path while packets are measured.
type changes struct {
	engine.Passive
	change func(model.TimedChange) error
	asked  []model.TimedChange
	timing model.Timing
	made   []model.MadeChange // once the trial is over
}

// Do makes each at its time, and ends after the one under way.
func (c *changes) Do(ctx context.Context, s engine.Step, k engine.Known) (l engine.Learned, _ error) {
	if s != engine.Go || !engine.Sleep(ctx, k.UntilMeasured(c.timing)) {
		return l, nil
	}
	begun := time.Now()
	for _, one := range c.asked {
		if !engine.Sleep(ctx, time.Until(begun.Add(time.Duration(one.AtSeconds*1e9)))) {
			break
		}
		from := time.Now()
		m := model.MadeChange{Words: one.Words()}
		if err := c.change(one); err != nil {
			m.Failure = model.Reasons{bySystem(err)}
		}
		m.AtS, m.TookS = time.Since(begun).Seconds(), time.Since(from).Seconds()
		c.made = append(c.made, m)
	}
	return l, nil
}

// bySystem is the reason of an error of this machine: without a code it is what the system said.
func bySystem(err error) model.Reason {
	why := finding.ReasonOf(err)
	withReason := func(r model.Reason) bool { return r.Code != model.HostFault }
	if !withReason(why) || why.Code == model.Several && !slices.ContainsFunc(why.Of, withReason) {
		why = model.Reason{Code: model.HostFault, Text: cmp.Or(model.SystemSaid(err), err.Error())}
	}
	return why
}

// setMade records the changes that were made during the trial. A failed one makes a valid trial invalid.
func setMade(r *model.Result, made []model.MadeChange) {
	r.Made = made
	for _, m := range made {
		if len(m.Failure) == 0 {
			continue
		}
		if r.State == model.Valid {
			r.State = model.Invalid
		}
		r.Why = append(r.Why, model.Reason{Code: model.ChangeFailed, Name: m.Words, Of: m.Failure,
			Numbers: map[string]float64{"at_s": m.AtS}})
	}
}
