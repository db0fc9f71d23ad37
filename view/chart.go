package view

import (
	"math"
	"slices"

	"pelt/finding"
	"pelt/table"
	"pelt/unit"
)

func axisOf(metric string) Axis {
	m := table.MetricOf(metric)
	return Axis{Label: m.Label, Unit: m.Unit}
}

func pointOf(g table.Group, metric string) (Point, bool) {
	m := table.MetricOf(metric)
	s := g.Stat(m)
	p := Point{Y: s.Median, Name: m.Format(s.Median)}
	if name := g.Name(); name != "" {
		p.Name = g.Sayf("%s: %s", name, p.Name)
	}
	if s.N > 1 {
		p.Low, p.High = s.Low, s.High
		if between := m.Unit.Between(s.Low, s.High); between != "" {
			p.Name = g.Sayf("%s (%s, %d repeats)", p.Name, between, s.N)
		}
	}
	return p, s.N > 0
}

// points are the figures of groups, each of which place puts where it belongs.
func points(groups []table.Group, metric string, place func(p *Point, i int)) []Point {
	var out []Point
	for i, g := range groups {
		if p, ok := pointOf(g, metric); ok {
			place(&p, i)
			out = append(out, p)
		}
	}
	return out
}

func figure(g table.Group, metric string) string {
	m := table.MetricOf(metric)
	if s := g.Stat(m); s.N > 0 {
		return m.Format(s.Median)
	}
	return ""
}

func withFigure(groups []table.Group, metric string) []table.Group {
	return slices.DeleteFunc(slices.Clone(groups), func(g table.Group) bool { return figure(g, metric) == "" })
}

func hero(c Chart) Chart {
	c.Hero = true
	return c
}

// lines draws metrics over a key whose levels are numbers: one line for each setting of
// other keys. The first metric sets the scale; what the others have beyond it is shown by
// arrows.
func lines(title string, rows []table.Row, others []table.Key, x table.Key, metrics ...string) Chart {
	c := Chart{Title: title, Kind: Line, X: Axis{Label: x.Label, Unit: x.Unit, Log: true}, Y: axisOf(metrics[0])}
	keys := slices.Concat(others, []table.Key{x})
	for i, metric := range metrics {
		for _, line := range table.By(rows, others...) {
			groups := slices.DeleteFunc(table.By(line.Rows, keys...),
				func(g table.Group) bool { return !g.Level(x.Name).Known })
			s := Series{Name: line.Name(), Guest: i > 0}
			l := table.Language(rows)
			switch label := l.Say(table.MetricOf(metric).Label); {
			case s.Name == "":
				s.Name = label
			case len(metrics) > 1:
				s.Name = l.Names(s.Name, label)
			}
			s.Points = points(groups, metric, func(p *Point, j int) {
				p.X = groups[j].Level(x.Name).Number
				if s.Guest {
					p.Low, p.High = 0, 0
				}
				c.X.Ticks = append(c.X.Ticks, p.X)
			})
			if s.Guest {
				s.Tone = Muted
			}
			if len(s.Points) > 0 {
				c.Series = append(c.Series, s)
			}
		}
	}
	slices.Sort(c.X.Ticks)
	c.X.Ticks = slices.Compact(c.X.Ticks)
	return c
}

// mostIntervals is how many rows a reader can take in; the table has them all.
const mostIntervals = 24

// intervals draws a metric of each group as a dot with its interval. effects, if any, colour the dots.
func intervals(title string, groups []table.Group, metric string, effects []table.Effect) Chart {
	c := Chart{Title: title, Kind: Interval, X: axisOf(metric)}
	if effects != nil {
		c.Note = "Green is better, red is worse, blue is the baseline or tied, grey is not told apart yet."
	}
	if len(groups) > mostIntervals {
		l := groups[0].Language()
		c.Title = l.Sayf("%s (the first %d of %d)", l.Say(c.Title), mostIntervals, len(groups))
		groups = groups[:mostIntervals]
	}
	dots := points(groups, metric, func(p *Point, i int) {
		if effects != nil {
			p.Tone = toneOf(effects[i].Verdict)
		}
		p.X, p.Y = p.Y, float64(len(c.Y.Categories))
		c.Y.Categories = append(c.Y.Categories, groups[i].Name())
	})
	c.Series = []Series{{Name: c.X.Label, Points: dots}}
	return c
}

// skewed is the ratio of the largest to the least figure from which on shades are logarithmic.
const skewed = 50

func heatMap(title string, groups []table.Group, x, y table.Key, metric string) Chart {
	c := Chart{Title: title, Kind: Heat, X: Axis{Label: x.Label}, Y: Axis{Label: y.Label}, Z: axisOf(metric)}
	for _, g := range groups { // also those without a figure
		c.X.category(x, g)
		c.Y.category(y, g)
	}
	least, most := math.Inf(1), 0.0
	cells := points(groups, metric, func(p *Point, i int) {
		p.X, p.Y, p.Z = c.X.category(x, groups[i]), c.Y.category(y, groups[i]), p.Y
		least, most = min(least, p.Z), max(most, p.Z)
	})
	c.Series = []Series{{Name: c.Z.Label, Points: cells}}
	c.Z.Log = least > 0 && most > skewed*least && c.Z.Unit != unit.Ratio
	return c
}

// category is the place of a group's level on an axis, which it adds where it is new.
func (a *Axis) category(k table.Key, g table.Group) float64 {
	name := k.FormatIn(g.Language(), g.Level(k.Name))
	i := slices.Index(a.Categories, name)
	if i < 0 {
		i = len(a.Categories)
		a.Categories = append(a.Categories, name)
	}
	return float64(i)
}

func stack(title string, groups []table.Group, y Axis, metrics ...string) Chart {
	c := Chart{Title: title, Kind: Stack, Y: y}
	for _, g := range groups {
		c.X.Categories = append(c.X.Categories, g.Name())
	}
	for _, name := range metrics {
		parts := points(groups, name, func(p *Point, i int) { p.X, p.Low, p.High = float64(i), 0, 0 })
		c.Series = append(c.Series, Series{Name: table.MetricOf(name).Label, Points: parts})
	}
	return c
}

// mostCauses is how many causes of loss a chart tells apart; the least ones are one.
const mostCauses = 5

// losses draws the share of packets that each group lost, by cause.
func losses(title string, groups []table.Group) Chart {
	c := Chart{Title: title, Kind: Stack, Y: Axis{Label: "Lost, of those sent", Unit: unit.Ratio}}
	shares, total := map[string][]float64{}, map[string]float64{} // by cause: of each group, of all
	add := func(cause string, group int, share float64) {
		if shares[cause] == nil {
			shares[cause] = make([]float64, len(groups))
		}
		shares[cause][group] += share
		total[cause] += share
	}
	for i, g := range groups {
		c.X.Categories = append(c.X.Categories, g.Name())
		all, whole := finding.Losses(g.Rows), 0.0
		for _, l := range all {
			whole += l.Packets
		}
		if s := g.Stat(table.MetricOf("loss_ratio")); s.N > 0 && s.Median > 0 {
			for _, l := range all { // they add up to the loss that the table prints, the middle of the trials
				add(l.Text, i, s.Median*l.Packets/whole)
			}
		}
	}
	order := table.MostFirst(total)
	if len(order) > mostCauses {
		const others = "other causes"
		for _, cause := range order[mostCauses-1:] {
			for i, share := range shares[cause] {
				add(others, i, share)
			}
		}
		order = append(order[:mostCauses-1], others)
	}
	for n, cause := range order {
		s := Series{Name: cause, Tone: map[bool]Tone{true: Bad}[n == 0]}
		for i, share := range shares[cause] {
			if share == 0 {
				continue
			}
			name := unit.Ratio.Format(share) + " " + cause
			if of := groups[i].Name(); of != "" {
				name = groups[i].Sayf("%s: %s", of, name)
			}
			s.Points = append(s.Points, Point{X: float64(i), Y: share, Name: name})
		}
		c.Series = append(c.Series, s)
	}
	return c
}
