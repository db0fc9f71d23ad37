package draw

import (
	"pelt/render/plain"
	"pelt/unit"
	"pelt/view"
	"pelt/words"
)

// Sizes of the picture of a path.
const (
	nodeHeight = 48.0
	bandHeight = 22.0 // of a link that carries all packets
	leastSlot  = 110.0
	mostCause  = 4 // lines of a cause below its place
)

// place is a node or a link of a path, with what was lost there.
type place struct {
	losses  []view.Loss
	carries float64 // share of the sent packets that went on from here
}

// Path draws the nodes in travel order, links as wide as the share of packets they
// carry, and what was lost under each place: in a row if there is room, else one
// below the other.
func Path(v view.Path, width float64) Picture {
	p := Picture{Width: max(width, 240), Title: plain.Text(v.Title)}
	if len(v.Nodes) < 2 {
		return Picture{Title: p.Title}
	}
	places := placesOf(v)
	if p.Width/float64(len(places)) < leastSlot {
		upright(&p, v, places)
	} else {
		flat(&p, v, places)
	}
	for _, l := range v.Losses {
		if l.Node < 0 { // at none of the places
			p.Height = lossWords(&p, v.Language, l, v.Sent, p.Width/2, p.Height+20, p.Width-20)
		}
	}
	return p
}

func placesOf(v view.Path) []place {
	places := make([]place, 2*len(v.Nodes)-1)
	for _, l := range v.Losses {
		if l.Node < 0 {
			continue
		}
		i := 2 * min(l.Node, len(v.Nodes)-1)
		if l.Link && i < len(places)-1 {
			i++
		}
		places[i].losses = append(places[i].losses, l)
	}
	left := float64(v.Sent)
	for i := range places {
		for _, l := range places[i].losses {
			left -= float64(l.Packets)
		}
		places[i].carries = share(left, v.Sent)
	}
	return places
}

func share(packets float64, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return clamp(packets/float64(of), 0, 1)
}

func flat(p *Picture, v view.Path, places []place) {
	slot := p.Width / float64(len(places))
	box := min(150, 1.25*slot)
	gap := (p.Width - 2 - box*float64(len(v.Nodes))) / float64(len(v.Nodes)-1)
	middle := 2 + nodeHeight/2
	for i := range len(v.Nodes) - 1 {
		x := 1 + box + (box+gap)*float64(i)
		band(p, v.Language, x, middle, gap, places[2*i].carries, places[2*i+1].carries)
	}
	p.Height = nodeHeight + 8
	for i, s := range places {
		center := 1 + box/2 + (box+gap)*float64(i)/2
		y := 2 + nodeHeight + 10
		if i%2 == 1 {
			y = middle + bandHeight/2 + 8
		}
		if len(s.losses) > 0 {
			arrow(p, center, y-8, 2+nodeHeight+22)
		}
		y = 2 + nodeHeight + 38
		for _, l := range s.losses {
			y = lossWords(p, v.Language, l, v.Sent, center, y, slot-10) + 12
			p.Height = max(p.Height, y-8)
		}
	}
	for i, name := range v.Nodes {
		x := 1 + (box+gap)*float64(i)
		node(p, x, 2, box, name)
		y := 2 + 29.0
		if text := Count(v, i); text != "" {
			y = 2 + 20
			p.print(x+box/2, 2+37, Shape{Text: text, Size: small, Fill: Soft, Anchor: Middle})
		}
		p.print(x+box/2, y, Shape{Text: fit(plain.Text(name), normal, (box-12)/boldness), Size: normal, Fill: Text,
			Anchor: Middle, Bold: true})
	}
}

func node(p *Picture, x, y, width float64, name string) {
	p.add(Shape{Form: Box, At: []float64{x, y, width, nodeHeight}, Fill: Panel, Stroke: Rule, Width: 1, Radius: 8,
		Tip: plain.Text(name)})
}

// band is a link: as high as the share of packets that enter and leave it.
func band(p *Picture, in words.Language, x, y, width, enter, leave float64) {
	a, b := max(bandHeight*enter, 1.5)/2, max(bandHeight*leave, 1.5)/2
	tip := in.Sayf("%s of the packets went on", unit.Ratio.Format(leave))
	p.add(Shape{Form: Polygon, At: []float64{x, y - a, x + width/2, y - a, x + width/2, y - b, x + width, y - b,
		x + width, y + b, x + width/2, y + b, x + width/2, y + a, x, y + a}, Fill: Series1, Opacity: 0.35, Tip: tip})
}

func arrow(p *Picture, x, from, to float64) {
	p.line(Bad, 2, x, from, x, to-5)
	p.add(Shape{Form: Polygon, At: []float64{x - 5, to - 6, x + 5, to - 6, x, to}, Fill: Bad})
}

// lossWords says a loss around a middle, and returns where its last line stands.
func lossWords(p *Picture, in words.Language, l view.Loss, sent uint64, x, y, width float64) float64 {
	p.print(x, y, Shape{Text: Lost(in, l, sent), Size: normal, Fill: Bad, Anchor: Middle, Bold: true})
	for _, line := range wrap(plain.Text(l.Text), small, width, mostCause) {
		y += 16
		p.print(x, y, Shape{Text: line, Size: small, Fill: Text, Anchor: Middle})
	}
	return y + 8
}

// Lost says which share of the packets a loss is.
func Lost(in words.Language, l view.Loss, sent uint64) string {
	return in.Sayf("%s lost", unit.Ratio.Format(share(float64(l.Packets), sent)))
}

// Count says what is known of the packets at a node.
func Count(v view.Path, i int) string {
	switch i {
	case 0:
		return v.Language.Sayf("%s sent", unit.Count.Format(float64(v.Sent)))
	case len(v.Nodes) - 1:
		return v.Language.Sayf("%s received", unit.Count.Format(float64(v.Received)))
	}
	return ""
}

// upright draws the path from top to bottom: what a node lost stands in its box, what a link lost beside the link.
func upright(p *Picture, v view.Path, places []place) {
	const head, x = 36.0, 24.0
	const linkWords, nodeWords = x + bandHeight/2, 14.0
	y := 1.0
	for i, s := range places {
		if i%2 == 1 {
			high := max(sideHeight(p, s.losses, linkWords), 16)
			w := max(bandHeight*s.carries, 1.5)
			p.box(x-w/2, y, w, high, Shape{Fill: Series1, Opacity: 0.35})
			sideLosses(p, v.Language, s.losses, v.Sent, linkWords, y)
			y += high
			continue
		}
		high := sideHeight(p, s.losses, nodeWords)
		if high > 0 {
			high += 2
		}
		name, text := plain.Text(v.Nodes[i/2]), Count(v, i/2)
		p.add(Shape{Form: Box, At: []float64{1, y, p.Width - 2, head + high}, Fill: Panel, Stroke: Rule, Width: 1,
			Radius: 8})
		p.print(p.Width-12, y+23, Shape{Text: text, Size: small, Fill: Soft, Anchor: End})
		p.print(12, y+23, Shape{Text: fit(name, normal, (p.Width-36-textWidth(text, small))/boldness), Size: normal,
			Fill: Text, Bold: true})
		sideLosses(p, v.Language, s.losses, v.Sent, nodeWords, y+head-6)
		y += head + high
	}
	p.Height = y + 2
}

// sideLosses lists losses from a place on, each with an arrow.
func sideLosses(p *Picture, in words.Language, losses []view.Loss, sent uint64, x, y float64) {
	for _, l := range losses {
		at := y + 14
		p.line(Bad, 2, x, at, x+12, at)
		p.add(Shape{Form: Polygon, At: []float64{x + 11, at - 5, x + 11, at + 5, x + 18, at}, Fill: Bad})
		p.print(x+25, at+4, Shape{Text: Lost(in, l, sent), Size: normal, Fill: Bad, Bold: true})
		for i, line := range sideCause(p, l, x) {
			p.print(x+25, at+20+16*float64(i), Shape{Text: line, Size: small, Fill: Text})
		}
		y += sideHeight(p, []view.Loss{l}, x)
	}
}

// sideHeight is how high a list of losses is.
func sideHeight(p *Picture, losses []view.Loss, x float64) (high float64) {
	for _, l := range losses {
		high += 24 + 16*float64(max(len(sideCause(p, l, x)), 1))
	}
	return high
}

// sideCause is the cause of a loss in one line or two.
func sideCause(p *Picture, l view.Loss, x float64) []string {
	return wrap(plain.Text(l.Text), small, p.Width-x-35, 2)
}
