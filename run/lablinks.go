package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pelt/lab"
	"pelt/model"
)

// setLinks sets the links of a lab before each trial, and links and router during one.
func (s *site) setLinks(l *lab.Lab) {
	links := func(changes ...model.Link) error {
		_, err := l.SetLinks(changes, lab.SetOptions{Temporary: true})
		return err
	}
	s.set = append(s.set, func(_ context.Context, t model.Trial) error {
		if len(t.Links) > 0 {
			if err := links(t.Links...); err != nil {
				return fmt.Errorf("set the links of trial %s: %w", t.Cell.Key(), err)
			}
		}
		// Links that another process moves draw on as they are.
		list := l.Emulated()
		drawn := len(list) > 0 && !slices.ContainsFunc(list, func(k *lab.Link) bool { return !k.Own() })
		if t.LinkSeed != 0 && drawn {
			l.RestartDraws(t.LinkSeed)
		}
		return nil
	})
	s.change = func(c model.TimedChange) error {
		if c.Link != nil {
			return links(*c.Link)
		}
		return l.SetRouter(c.Router)
	}
}

// setLabRouter makes a lab's router what a variant says: words of package lab, or a command that runs in its node.
func setLabRouter(ctx context.Context, l *lab.Lab, v model.Variant) error {
	words := v.Name
	if v.Command != "" {
		words = lab.Plain
	}
	if err := l.SetRouter(words); err != nil {
		return err
	}
	router, _ := l.Router() // SetRouter wants one
	return runCommand(ctx, v.Command, router.Shell)
}

// linkFactors returns the combinations of link settings that a plan's factors make, each as a list of changes, and
// the names of these factors.
func linkFactors(p model.Plan) (groups [][]model.Link, names []string, err error) {
	var factors []model.Factor
	for _, f := range p.Factors {
		if _, _, link := model.SplitLinkKnob(f.Knob); link {
			names, factors = append(names, f.Knob), append(factors, f)
		}
	}
	if len(names) == 0 {
		return nil, nil, nil
	}
	for _, c := range model.Cells(factors) {
		t, err := p.Trial(c, 0)
		if err != nil {
			return nil, nil, refuse("factors", "the combination %s cannot run: %v", c.Key(), err)
		}
		for _, l := range t.Links {
			if l.LossRatio == 1 || l.CorruptRatio == 1 {
				return nil, nil, refuse("factors", "the combination %s lets no packet through, so its test "+
					"cannot begin; want less than 100 %%", c.Key())
			}
		}
		groups = append(groups, t.Links)
	}
	return groups, names, nil
}

// CheckLinks checks the links of a plan's lab, and all changes of them, without making
// anything. Plans with other targets pass.
func CheckLinks(p model.Plan) error {
	_, _, _, err := linksToOpen(p)
	return err
}

// linksToOpen returns the links with which a plan's lab is opened, and the changes of its factors. All factors and
// timed changes can change these links.
func linksToOpen(p model.Plan) (links []model.Link, groups [][]model.Link, names []string, err error) {
	if groups, names, err = linkFactors(p); err != nil {
		return nil, nil, nil, err
	}
	name, isLab := strings.CutPrefix(p.Target, "lab:")
	if links = p.Links; !isLab || !lab.IsTopology(name) {
		return links, groups, names, nil
	}
	topology := starOf(name, p)
	links = slices.Clone(links)
	if len(groups) > 0 { // a lab begins as the first combination
		links = append(links, groups[0]...)
	}
	links = changeable(topology, links, groups)
	if err = lab.CheckChanges(topology, links, groups); err != nil {
		return nil, nil, nil, err
	}
	timed := linkChanges(p.Timed)
	links = changeable(topology, links, timed)
	if err = lab.CheckChanges(topology, links, timed); err != nil {
		return nil, nil, nil, fmt.Errorf("--at: %w", err)
	}
	for _, c := range p.Timed {
		if c.Router == "" {
			continue
		}
		if err := lab.CheckRouter(topology, c.Router); err != nil {
			return nil, nil, nil, fmt.Errorf("--at: %w", err)
		}
	}
	return links, groups, names, nil
}

// changeable returns links that each group of changes can change: a link that cannot be
// changed otherwise is emulated in user space from the start.
func changeable(topology string, links []model.Link, groups [][]model.Link) []model.Link {
	for _, changes := range groups {
		for i, c := range changes {
			if lab.CheckChanges(topology, links, [][]model.Link{changes[:i+1]}) != nil {
				links = append([]model.Link{{Node: c.Node, Backend: model.BackendUser}}, links...)
			}
		}
	}
	return links
}

// linkChanges lists a plan's timed changes of links: each with all that come before it.
func linkChanges(changes []model.TimedChange) (groups [][]model.Link) {
	var made []model.Link
	for _, c := range changes {
		if c.Link != nil {
			made = append(made, *c.Link)
			groups = append(groups, slices.Clone(made))
		}
	}
	return groups
}

// canChange checks before the run that a lab of another process can make all changes.
func canChange(l *lab.Lab, groups [][]model.Link, timed []model.TimedChange) error {
	dry := func(groups [][]model.Link) error {
		for _, changes := range groups {
			if _, err := l.SetLinks(changes, lab.SetOptions{Dry: true}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range timed {
		if c.Router != "" {
			return refuse("--at", "a lab of pelt lab up keeps its router as it is; want a lab that is "+
				"made for the run, as lab:router")
		}
	}
	if err := dry(linkChanges(timed)); err != nil {
		return fmt.Errorf("--at: %w", err)
	}
	return dry(groups)
}
