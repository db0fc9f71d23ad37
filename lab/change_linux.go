package lab

import (
	"errors"
	"fmt"

	"pelt/model"
)

// SetLinks changes settings of links while they run, all of them or none, and
// returns the directions that it reached, in travel order. What is on its way
// stays as it was meant. A lab that another process holds is changed there.
// The error is a *UsageError for what the links cannot become.
func (l *Lab) SetLinks(changes []model.Link, o SetOptions) (list []LinkChanged, err error) {
	if l.holder != nil {
		if err := l.checkHeld(changes); err != nil {
			return nil, err
		}
		err = l.holder.ask(request{Do: set, Changes: changes, Dry: o.Dry, Temporary: o.Temporary}, &list)
		return list, err
	}
	list, _, err = l.setLinks(changes, o.Dry)
	return list, err
}

// checkHeld finds what the links of a lab that another process holds cannot become, as they are now.
func (l *Lab) checkHeld(changes []model.Link) error {
	var told heldLab
	if err := l.holder.ask(request{Do: describe}, &told); err != nil {
		return err
	}
	var made, plans []linkPlan
	for _, k := range told.Links {
		made, plans = append(made, k.Made), append(plans, k.Plan)
	}
	if len(plans) != len(l.spec.links) {
		return errOtherLinks
	}
	_, _, err := changed(l.spec, made, plans, changes)
	return err
}

// setLinks also returns what the directions were before, by link and direction.
func (l *Lab) setLinks(changes []model.Link, dry bool) (list []LinkChanged, before map[[2]int]model.Link, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var made, plans []linkPlan
	for _, k := range l.links {
		made, plans = append(made, k.made), append(plans, k.plan)
	}
	next, reached, err := changed(l.spec, made, plans, changes)
	if err != nil {
		return nil, nil, err
	}
	list, before = []LinkChanged{}, map[[2]int]model.Link{}
	now := map[[2]int]model.Link{}
	for i, ways := range reached {
		for d, one := range ways {
			if one {
				at := [2]int{i, d}
				before[at], now[at] = plans[i].Toward[d], next[i].Toward[d]
				from, to := l.spec.ends(i, d)
				list = append(list, LinkChanged{from, to, before[at], now[at]})
			}
		}
	}
	if dry {
		return list, before, nil
	}
	return list, before, l.become(now)
}

// putBack makes directions of links what they were before.
func (l *Lab) putBack(before map[[2]int]model.Link) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.become(before)
}

// become gives directions of links, by link and direction, other settings, or leaves all
// as they are. The lab is locked.
func (l *Lab) become(next map[[2]int]model.Link) (err error) {
	before := map[[2]int]model.Link{}
	for at, asked := range next {
		was := l.links[at[0]].plan.Toward[at[1]]
		if was == asked {
			continue
		}
		if err = l.setWay(at, asked); err != nil {
			err = fmt.Errorf("change link %s: %w", l.spec.wayName(at[0], at[1]), err)
			for at, asked := range before {
				err = errors.Join(err, l.setWay(at, asked))
			}
			break
		}
		before[at] = was
	}
	l.facts.Links = l.shapes()
	return err
}

// setWay makes one direction of a link another.
func (l *Lab) setWay(at [2]int, asked model.Link) error {
	k, d := l.links[at[0]], at[1]
	if k.cable == nil {
		place := k.ways[d].shaper
		s, err := openSpace(l.held[place.Space])
		if err != nil {
			return err
		}
		defer s.rt.Close()
		if err = s.setTBF(place.Iface, tbfOf(asked, k.plan.MTU), 0); err == nil {
			k.plan.Toward[d] = asked
		}
		return err
	}
	k.plan.Toward[d] = asked
	k.draw(d, l.seed)
	k.cable.Set(d, k.ways[d].settings)
	return nil
}

// RestartDraws has the emulated links that this process has made draw from their
// seeds' beginnings, whatever was changed since; a seed above 0 takes the place of theirs.
// Nothing may use them, or read their counters, meanwhile.
func (l *Lab) RestartDraws(seed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.links {
		for d := range k.ways {
			if k.cable == nil {
				continue
			}
			if seed > 0 {
				k.plan.Toward[d].Seed = seed
			}
			k.ways[d].seed = 0
			k.draw(d, l.seed)
			k.cable.Set(d, k.ways[d].settings)
		}
	}
	l.facts.Links = l.shapes()
}
