package draw

import (
	"slices"

	"pelt/render/plain"
	"pelt/view"
)

const (
	edge   = 32.0
	gutter = 36.0
)

// Drawn reports whether a section is a picture with something on it.
func Drawn(s view.Section) bool {
	switch s := s.(type) {
	case view.Chart:
		return !Empty(s)
	case view.Times:
		return len(s.Lanes) > 0
	case view.Path:
		return len(s.Nodes) > 1
	}
	return false
}

// mostUneven is how many times as high as its neighbour a picture may be: more leaves half a row empty.
const mostUneven = 1.5

func half(s view.Section) bool {
	c, ok := s.(view.Chart)
	return ok && !c.Hero && Drawn(s)
}

// beside reports whether two pictures stand well beside each other, each so wide.
func beside(a, b view.Section, width float64) bool {
	if !half(a) || !half(b) {
		return false
	}
	pair := Pair(a, b, width)
	low, high := min(pair[0].Height, pair[1].Height), max(pair[0].Height, pair[1].Height)
	return high <= mostUneven*low
}

// Rows puts sections one below the other, and two small pictures beside each other, each so
// wide, where they are about equally high. Pictures without data are left out.
func Rows(sections []view.Section, width float64) (rows [][]view.Section) {
	for _, s := range sections {
		switch s.(type) {
		case view.Chart, view.Times, view.Path:
			if !Drawn(s) {
				continue
			}
		}
		if last := len(rows) - 1; last >= 0 && len(rows[last]) == 1 && beside(rows[last][0], s, width) {
			rows[last] = append(rows[last], s)
			continue
		}
		rows = append(rows, []view.Section{s})
	}
	return rows
}

// Section draws a section; one that is no picture is empty.
func Section(s view.Section, width float64) Picture {
	switch s := s.(type) {
	case view.Chart:
		return Chart(s, width, 0)
	case view.Times:
		return Times(s, width)
	case view.Path:
		return Path(s, width)
	}
	return Picture{Width: width}
}

// Pair draws two pictures that stand beside each other, equally high where one can grow.
func Pair(a, b view.Section, width float64) [2]Picture {
	out := [2]Picture{Section(a, width), Section(b, width)}
	high := max(out[0].Height, out[1].Height)
	for i, s := range []view.Section{a, b} {
		if c, ok := s.(view.Chart); ok && out[i].Height < high {
			out[i] = Chart(c, width, min(high, 420))
		}
	}
	return out
}

// Sheet puts the verdict, the hero of a page and its neighbours in one picture.
// Without a picture in the page, ok is false.
func Sheet(page view.Page, width float64) (p Picture, ok bool) {
	p = Picture{Width: width, Title: plain.Text(page.Verdict)}
	room := width - 2*edge
	y := edge + 8
	p.print(edge, y, Shape{Text: fit(plain.Text(page.Title+" · "+page.Subject), normal, room), Size: normal, Fill: Soft})
	for _, line := range wrap(plain.Text(page.Verdict), 21, room/boldness, 2) {
		y += 29
		p.print(edge, y, Shape{Text: line, Size: 21, Fill: Text, Bold: true})
	}
	y += 6
	for _, line := range wrap(plain.Text(page.Why), 15, room, 2) {
		y += 22
		p.print(edge, y, Shape{Text: line, Size: 15, Fill: Text})
	}
	y += 34
	rows := neighbours(page.Sections, (room-gutter)/2)
	for _, row := range rows {
		high, each := 0.0, (room-gutter*float64(len(row)-1))/float64(len(row))
		pictures := []Picture{Section(row[0], each)}
		if len(row) == 2 {
			pair := Pair(row[0], row[1], each)
			pictures = pair[:]
		}
		for i, sub := range pictures {
			x := edge + (each+gutter)*float64(i)
			if sub.Title != "" {
				p.print(x, y, Shape{Text: fit(sub.Title, 15, each/boldness), Size: 15, Fill: Text, Bold: true})
			}
			p.paste(sub, x, y+14)
			below := y + 14 + sub.Height
			for _, line := range wrap(plain.Text(sub.Note), small, each, 2) {
				below += 18
				p.print(x, below, Shape{Text: line, Size: small, Fill: Soft})
			}
			high = max(high, below-y)
		}
		y += high + 40
	}
	p.Height = y - 40 + edge
	return p, len(rows) > 0
}

// mostNeighbours is how many rows of pictures stand below the hero.
const mostNeighbours = 2

// neighbours are the hero of a page and the pictures that follow it, in rows. Half a row is width wide.
func neighbours(sections []view.Section, width float64) [][]view.Section {
	all := slices.DeleteFunc(slices.Clone(sections), func(s view.Section) bool { return !Drawn(s) })
	if len(all) == 0 {
		return nil
	}
	hero := max(0, slices.IndexFunc(all, func(s view.Section) bool {
		c, ok := s.(view.Chart)
		return ok && c.Hero
	}))
	rest := Rows(slices.Concat(all[hero+1:], all[:hero]), width)
	return append([][]view.Section{{all[hero]}}, rest[:min(len(rest), mostNeighbours)]...)
}

func (p *Picture) paste(sub Picture, x, y float64) {
	for _, s := range sub.Shapes {
		at := append([]float64{}, s.At...)
		n := len(at)
		if s.Form == Box {
			n = 2
		}
		for i := 0; i < n; i++ {
			at[i] += []float64{x, y}[i%2]
		}
		s.At = at
		p.Shapes = append(p.Shapes, s)
	}
}
