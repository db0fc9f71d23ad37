package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/lab"
	"pelt/model"
)

// varied are the settings of links that a plan's factors vary: each combination,
// as the changes that make it, and in which order factors name them.
func varied(p model.Plan) (groups [][]model.LinkChange, names []string, err error) {
	cells := []model.Cell{{}}
	for _, f := range p.Factors {
		if _, _, link := model.SplitLinkKnob(f.Knob); !link {
			continue
		}
		names = append(names, f.Knob)
		var next []model.Cell
		for _, c := range cells {
			for _, v := range f.Levels {
				one := maps.Clone(c)
				one[f.Knob] = v
				next = append(next, one)
			}
		}
		cells = next
	}
	if len(names) == 0 {
		return nil, nil, nil
	}
	for _, c := range cells {
		t, err := p.Trial(c, 0)
		if err != nil {
			return nil, nil, &model.FieldError{Field: "factors", Want: fmt.Sprintf("the combination %s cannot run: %v", c.Key(), err)}
		}
		for _, change := range t.Links {
			if l, err := change.Apply(model.Link{}); err == nil && (l.LossRatio == 1 || l.CorruptRatio == 1) {
				return nil, nil, &model.FieldError{Field: "factors", Want: fmt.Sprintf("the combination %s lets no packet through, nor the two ends' consent before a test; want less than 100 %%", c.Key())}
			}
		}
		groups = append(groups, t.Links)
	}
	return groups, names, nil
}

// CheckLinks reports whether the links of a lab that a plan has made could be and
// become what it asks, without making anything. It says nothing of other targets.
func CheckLinks(p model.Plan) error {
	_, _, _, err := planned(p)
	return err
}

// planned are the links of a plan's lab that is to be opened, and what its factors
// make of them. They can become what its timed changes ask, too.
func planned(p model.Plan) (links []model.Link, groups [][]model.LinkChange, names []string, err error) {
	if groups, names, err = varied(p); err != nil {
		return nil, nil, nil, err
	}
	name, isLab := strings.CutPrefix(p.Target, "lab:")
	if links = p.Links; !isLab || !isTopology(name) {
		return links, groups, names, nil
	}
	if len(groups) > 0 {
		links = linksFor(links, groups)
		if err = lab.CheckChanges(starOf(name, p), links, groups); err != nil {
			return nil, nil, nil, err
		}
	}
	links, err = linksForTimed(starOf(name, p), links, linkChanges(p.Timed))
	return links, groups, names, err
}

// linksFor are the links of a lab that is to be opened for a plan: as it asks, and
// so made that they can become what its factors ask.
func linksFor(asked []model.Link, groups [][]model.LinkChange) []model.Link {
	if len(groups) == 0 {
		return asked
	}
	type rates struct{ some, none bool }
	impaired, rated := map[string]bool{}, map[string]rates{}
	for _, changes := range groups {
		for _, c := range changes {
			l, err := c.Apply(model.Link{})
			if err != nil {
				continue // the plan's check tells it
			}
			impaired[c.Node] = impaired[c.Node] || l.Impaired()
			if c.Settings[0].Key == "rate" {
				r := rated[c.Node]
				rated[c.Node] = rates{r.some || l.Rate > 0, r.none || l.Rate == 0}
			}
		}
	}
	var links []model.Link
	for _, node := range slices.Sorted(maps.Keys(impaired)) {
		if impaired[node] || rated[node].some && rated[node].none {
			// What the user says overrides it, and is emulated as well.
			links = append(links, model.Link{Node: node, Mode: "exact"})
		}
	}
	links = append(links, asked...)
	for _, c := range groups[0] {
		if l, err := c.Apply(model.Link{Node: c.Node, Toward: c.Toward}); err == nil {
			links = append(links, l)
		}
	}
	return links
}

// canVary finds out whether the links of a lab that another process holds can
// become all that is asked.
func canVary(l *lab.Lab, groups [][]model.LinkChange) error {
	for _, changes := range groups {
		if _, err := l.SetLinks(changes, lab.SetOptions{Dry: true}); err != nil {
			return err
		}
	}
	return nil
}

// setLinks makes the lab's links what a trial asks.
func (p *path) setLinks(t model.Trial) error {
	if len(t.Links) > 0 {
		if _, err := p.roads.lab.SetLinks(t.Links, lab.SetOptions{Lent: true}); err != nil {
			return fmt.Errorf("set the links of trial %s: %w", t.Cell.Key(), err)
		}
	}
	if err := p.seedLinks(t.LinkSeed); err != nil {
		return fmt.Errorf("seed the links of trial %s: %w", t.Cell.Key(), err)
	}
	return nil
}

// tellVaried says in the facts of a lab what its links do not keep.
func tellVaried(facts *model.LabFacts, names []string) {
	if len(names) > 0 {
		facts.Backends = append(slices.Clone(facts.Backends), "set for each trial: "+strings.Join(names, ", "))
	}
}
