package table

import (
	"math"
	"slices"

	"pelt/model"
)

// Layout is what varies among rows, in its role: choices are compared with each other under each condition.
type Layout struct {
	Under, Choice []Key
	Conditions    []Condition
	ranked        bool // by what is compared
}

// Condition is the rows that share the levels of what nobody chooses.
type Condition struct {
	Group
	Places []Place // one for each choice that any condition has; those that were not tried have no rows
}

// Place is one combination of condition and choice.
type Place struct {
	Group         // its keys are those of the condition, then those of the choice
	Choice  Group // by the keys of the choice alone
	Effects map[*Metric]Effect
}

// Vary are the keys that differ among rows: the goal of searches, settings but for those named, and the flow where
// settings do not tell flows apart.
func Vary(rows []Row, but ...string) []Key {
	keys := Varying(rows, append([]Key{KeyOf("goal_loss_ratio")}, Settings(rows, but...)...)...)
	flows := append(slices.Clone(keys), KeyOf("flow"))
	if slices.Contains(but, "flow") || len(By(rows, flows...)) <= max(len(By(rows, keys...)), 1) {
		return keys
	}
	return flows
}

// Settled groups rows by all that varies: each group is one setting of one flow.
func Settled(rows []Row) []Group { return By(rows, Vary(rows)...) }

// Lay lays out rows by what varies. The roles of the knobs tell what a user chooses.
func Lay(rows []Row) Layout {
	var under, choice []Key
	for _, k := range Vary(rows) {
		if k.Name == "flow" || model.RoleOf(k.Name).IsCondition() {
			under = append(under, k)
		} else {
			choice = append(choice, k)
		}
	}
	if len(choice) == 0 {
		choice = slices.DeleteFunc(Settings(rows), func(k Key) bool { return model.RoleOf(k.Name).IsCondition() })
	}
	if len(choice) == 0 {
		choice = []Key{KeyOf("payload_bytes")}
	}
	return LayBy(rows, under, choice)
}

// LayBy lays out rows by the keys of conditions and of choices.
func LayBy(rows []Row, under, choice []Key) Layout {
	l := Layout{Under: under, Choice: choice}
	choices, keys := By(rows, choice...), slices.Concat(under, choice)
	for _, c := range By(rows, under...) {
		one := Condition{Group: c}
		own := By(c.Rows, choice...)
		for _, g := range choices {
			at := slices.IndexFunc(own, func(o Group) bool { return slices.Equal(o.Levels, g.Levels) })
			if g.Rows = nil; at >= 0 {
				g.Rows = own[at].Rows
			}
			levels := slices.Concat(c.Levels, g.Levels)
			one.Places = append(one.Places, Place{Group{keys, levels, g.Rows}, g, map[*Metric]Effect{}})
		}
		l.Conditions = append(l.Conditions, one)
	}
	return l
}

// Keys are those of conditions and choices.
func (l Layout) Keys() []Key { return slices.Concat(l.Under, l.Choice) }

// Tried are the places with rows.
func (c Condition) Tried() []Place {
	return slices.DeleteFunc(slices.Clone(c.Places), func(p Place) bool { return len(p.Rows) == 0 })
}

// Choices are the choices that were tried under a condition.
func (c Condition) Choices() (out []Group) {
	for _, p := range c.Tried() {
		out = append(out, p.Choice)
	}
	return out
}

// Tried are the places with rows, by condition and choice.
func (l Layout) Tried() (out []Place) {
	for _, c := range l.Conditions {
		out = append(out, c.Tried()...)
	}
	return out
}

// Groups are the rows of places.
func Groups(places []Place) (out []Group) {
	for _, p := range places {
		out = append(out, p.Group)
	}
	return out
}

// Rank puts the places of each condition into the order of a metric, the best first; those that are spoilt, and those
// without rows, come last. Then Compare compares all with the best.
func (l *Layout) Rank(m *Metric, spoilt func(Group) bool) {
	l.ranked = true
	last := func(p Place) int {
		switch {
		case len(p.Rows) == 0:
			return 2
		case spoilt(p.Group):
			return 1
		}
		return 0
	}
	for i, c := range l.Conditions {
		l.Conditions[i].Places = Rank(m, c.Places)
		slices.SortStableFunc(l.Conditions[i].Places, func(a, b Place) int { return last(a) - last(b) })
	}
}

// Compare compares each place with the first one under the same condition. All comparisons are one family; where the
// first is first because it is the best, any place could have been, so all pairs of a condition count as tests. A place
// that cannot be compared is not told from the first, and its change is NaN.
func (l Layout) Compare(metrics ...*Metric) {
	nan, tests := math.NaN(), 0
	pairs, places := make([][]Pair, len(metrics)), make([][]Place, len(metrics))
	for i, m := range metrics {
		for pool, c := range l.Conditions {
			base, known := c.Places[0], len(pairs[i])
			b := base.Sample(m)
			if l.ranked {
				base.Effects[m] = Effect{Low: nan, High: nan, Points: m.Points(), P: 1, Verdict: Best}
			}
			for _, p := range c.Places[1:] {
				p.Effects[m] = Effect{Change: nan, Low: nan, High: nan, P: 1, Verdict: TooFew}
				a := p.Sample(m)
				if len(a.Values) > 0 && len(b.Values) > 0 && !FloodLoss(m, p.Group, base.Group) {
					pairs[i], places[i] = append(pairs[i], Pair{a, b, pool}), append(places[i], p)
				}
			}
			if known = len(pairs[i]) - known; l.ranked {
				known = known * (known + 1) / 2
			}
			tests += known
		}
	}
	for i, m := range metrics {
		for n, e := range Family(m, pairs[i], tests) {
			places[i][n].Effects[m] = e
		}
	}
}

// FloodLoss reports whether a metric is the loss of packets that were sent as fast as possible: of that the sender's
// speed decides, and it is not compared.
func FloodLoss(m *Metric, groups ...Group) bool {
	return m.Name == "loss_ratio" && slices.ContainsFunc(groups, func(g Group) bool { return !g.Asked() })
}
