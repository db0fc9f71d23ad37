package lab

import (
	"errors"
	"slices"

	"pelt/model"
	"pelt/words"
)

// LinkChanged is a direction of a link that a change reached.
type LinkChanged struct {
	From   string     `json:"from"`
	To     string     `json:"to"`
	Before model.Link `json:"before"`
	Now    model.Link `json:"now"`
}

// SetOptions say how links are changed. The zero value changes them for good.
type SetOptions struct {
	Dry       bool // find out only whether they can be
	Temporary bool // of a lab that another process holds: put back once this one closes it, or ends
}

// changed returns the plans of the links of an open lab after some changes, and which
// directions the changes speak of. The plans that are given stay as they are; made are
// those that the links were made by. The error is a *UsageError.
func changed(t topologySpec, made, plans []linkPlan, changes []model.Link) (next []linkPlan, reached [][2]bool,
	err error) {
	next, reached = slices.Clone(plans), make([][2]bool, len(plans))
	for _, c := range changes {
		where := model.Link{Node: c.Node, Toward: c.Toward}
		if err := checkLink(t, where); err != nil {
			return nil, nil, err
		}
		any, shaped := false, false
		eachDirection(t, where, func(link, direction int) {
			l, applyErr := c.Apply(next[link].Toward[direction])
			if applyErr != nil {
				if field, ok := errors.AsType[*model.FieldError](applyErr); ok {
					applyErr = field.Unwrap()
				}
				err = linkError(where, applyErr)
				return
			}
			next[link].Toward[direction] = l
			any, reached[link][direction] = true, true
			shaped = shaped || l.Rate > 0 || l.QueuePackets == 0 && l.QueueBytes == 0 && l.OverheadBytes == 0
		})
		switch {
		case err != nil:
			return nil, nil, err
		case !any:
			return nil, nil, linkError(where, words.Errorf("no link there leads to %s", c.Toward))
		case !shaped && (c.QueuePackets|c.QueueBytes|c.OverheadBytes) != 0:
			return nil, nil, linkError(where,
				words.Errorf("a queue or an overhead needs a rate on the same link; without one nothing queues"))
		}
	}
	for i := range next {
		if next[i] != plans[i] {
			if err := next[i].canBecome(t, i, made[i]); err != nil {
				return nil, nil, err
			}
		}
	}
	return next, reached, nil
}

// canBecome checks the settings of a link that was made in a certain way.
func (p linkPlan) canBecome(t topologySpec, link int, made linkPlan) error {
	if made.emulated() {
		return p.check(t, link, true)
	}
	for direction, l := range p.Toward {
		before, is := made.Toward[direction], "a plain cable"
		var why error
		if before.Rate > 0 {
			is = "shaped by the kernel's tbf"
		}
		switch {
		case l.Impaired():
			l.Rate, l.QueuePackets, l.QueueBytes, l.OverheadBytes = 0, 0, 0, 0
			why = words.Errorf("only an emulated link can do %s, and this one is %w; end the lab, and start it with "+
				"--link backend=user", l.Words(), errors.New(is))
		case l.Rate > 0 && before.Rate == 0:
			why = words.Errorf("it was made without a rate, so it cannot get one now; " +
				"end the lab, and start it with a rate or with --link backend=user")
		case l.Rate == 0 && before.Rate > 0:
			why = words.Errorf("its tbf cannot be without a rate; give a higher rate, " +
				"or end the lab, and start it with --link backend=user")
		}
		if why != nil {
			return t.wayError(link, direction, why)
		}
	}
	return p.check(t, link, false)
}

// CheckChanges reports whether a lab that Open makes of the links could make
// every one of several groups of changes, without making anything. Its errors
// are *UsageError.
func CheckChanges(topology string, links []model.Link, groups [][]model.Link) error {
	t, err := findTopology(topology)
	if err != nil {
		return err
	}
	plans, err := planLinks(t, links)
	if err != nil {
		return err
	}
	for _, changes := range groups {
		if _, _, err := changed(t, plans, plans, changes); err != nil {
			return err
		}
	}
	return nil
}
