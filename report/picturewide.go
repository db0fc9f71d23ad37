package report

import "slices"

// Sizes of the wide picture in its own pixels; it is shown at most that large.
const (
	wideWidth  = 1096.0
	wideBand   = 64.0  // of all that was sent
	wideTop    = 84.0  // of the band
	wideEdge   = 160.0 // lower edge of the nodes
	wideLabels = 216.0 // where arrows end
	wideStart  = 92.0  // before the first node, at least
	wideEnd    = 118.0 // behind the last one
	wideWire   = 34.0  // between two nodes
	wideNode   = 116.0 // of a node between the ends
	labelGap   = 22.0  // between two labels
	leastSlot  = 49.0  // of a layer, whose name must fit
	nodePad    = 8.0
)

// wide draws the path from left to right; losses fall out of the band where
// they happened.
func (r route) wide() picture {
	var c canvas
	slots := 0.0
	start := max(wideStart, textWidth(r.sent, 14)*bold+24)
	fixed := start + wideEnd
	for i, s := range r.stations {
		switch {
		case s.name == "":
			fixed += wideWire
		case i == 0 || i == len(r.stations)-1:
			fixed += 2 * nodePad
			slots += float64(len(s.stops))
		default:
			fixed += wideNode
		}
	}
	slot := max((wideWidth-fixed)/slots, leastSlot)
	width := fixed + slot*slots

	// Boxes and names first: the band lies over them.
	centre := map[*loss]float64{}
	x := start
	for i := range r.stations {
		s := &r.stations[i]
		if s.name == "" {
			sideBySide(centre, s.stops[0].losses, x, wideWire)
			x += wideWire
			continue
		}
		w, pad := wideNode, 0.0
		if i == 0 || i == len(r.stations)-1 {
			w, pad = slot*float64(len(s.stops))+2*nodePad, nodePad
		}
		class := "node"
		if s.unseen {
			class = "node unseen"
		}
		c.box(class, x, 8, w, wideEdge-8)
		c.text("name", "middle", x+w/2, 30, wrapText(s.name, 15.5*bold, w-12, 1)[0])
		c.text("about", "middle", x+w/2, 47, s.about)
		each := (w - 2*pad) / float64(len(s.stops))
		for j := range s.stops {
			left := x + pad + float64(j)*each
			class := "layer"
			if len(s.stops[j].losses) > 0 {
				class = "layer hit"
			}
			c.text(class, "middle", left+each/2, wideTop-9, s.stops[j].name)
			sideBySide(centre, s.stops[j].losses, left, each)
		}
		x += w
	}
	widths, arrived := r.widths(wideBand)
	if r.rest != nil {
		centre[r.rest] = x + 20 + widths[r.rest]/2 // clear of the last node
	}
	r.wideBand(&c, centre, widths, arrived, width)
	height := r.wideLabels(&c, centre, width)
	return picture{Width: px(width), Height: px(height), Class: "wide", Shapes: c.shapes}
}

// sideBySide sets the causes of one stop side by side.
func sideBySide(centre map[*loss]float64, losses []loss, left, width float64) {
	for i := range losses {
		centre[&losses[i]] = left + width*(float64(i)+0.5)/float64(len(losses))
	}
}

// turn is the inner radius with which a loss leaves the band.
const turn = 5.0

// wideBand draws what flows: one shape that loses its lower edge bit by bit.
func (r route) wideBand(c *canvas, centre, widths map[*loss]float64, arrived, width float64) {
	const left = 10.0
	bottom, tip := wideTop+wideBand, width-10
	words := []any{"M", left, wideTop, "V", bottom}
	for _, l := range r.all() {
		t := widths[l]
		bottom -= t
		words = append(words, "H", centre[l]-turn-t/2, "V", bottom)
	}
	words = append(words, "H", tip-22)
	if arrived > 0 {
		mid := (wideTop + bottom) / 2
		half := max((bottom-wideTop)/2+7, 12)
		words = append(words, "V", mid+half, "L", tip, mid, "L", tip-22, mid-half)
	}
	words = append(words, "V", wideTop, "Z")
	c.path("flow", r.sent+" packets sent, "+r.arrived+" arrived", words...)
	c.text("quiet", "start", left, wideTop-27, "sent")
	c.text("count", "start", left, wideTop-9, r.sent)
	c.text("quiet", "end", width-10, wideTop-50, "arrived")
	c.text("share", "end", width-10, wideTop-31, r.share)
	c.text("quiet", "end", width-10, wideTop-15, r.arrived)
}

// wideLabels draws the way of each loss to its label, and the labels; it
// returns the height of the whole.
func (r route) wideLabels(c *canvas, centre map[*loss]float64, width float64) float64 {
	losses := r.all()
	if len(losses) == 0 {
		c.text("clean", "middle", width/2, wideEdge+34, "nothing lost")
		return wideEdge + 52
	}
	widths, _ := r.widths(wideBand)
	named := mostLost(losses, mostLabels)
	each := min(188, (width-8)/float64(len(named))-labelGap)
	place := labelPlaces(named, centre, each, width)
	bottom, height := wideTop+wideBand, 0.0
	for _, l := range losses {
		t, x := widths[l], centre[l]
		from := bottom + turn
		to, labelled := place[l]
		point, half, tip := 9+t/5, max(t/2+5, 7), wideLabels
		if d := to - x; labelled && t > 10 && d > -30 && d < 30 {
			to = x // a broad one does not bend that sharply
		}
		if !labelled {
			to, point, half, tip = x, 6, t/2+3, wideEdge+20 // short of the labels, which are others'
		}
		mid, end := (wideEdge+4+tip)/2, tip-point
		c.fall(l, t,
			[]any{"M", x - turn - t/2, bottom - t/2, "A", turn + t/2, turn + t/2, "0 0 1", x, from, "V", wideEdge + 4, "C", x, mid, to, mid, to, end},
			[]any{"M", to - half, end - 0.5, "H", to + half, "L", to, tip, "Z"})
		bottom -= t
		if labelled {
			height = max(height, l.label(c, place[l], each))
		}
	}
	if rest := len(losses) - len(named); rest > 0 {
		height += 22
		c.text("quiet", "middle", width/2, height, smaller(rest))
	}
	return height + 12
}

// mostLabels is how many causes are named below a picture.
const mostLabels = 7

func smaller(n int) string {
	if n == 1 {
		return "One smaller cause stands in the list below."
	}
	return unitCount(n) + " smaller causes stand in the list below."
}

// label writes one cause below its arrow and returns where it ends.
func (l *loss) label(c *canvas, x, width float64) float64 {
	y := wideLabels + 18
	c.text("share", "middle", x, y, l.percent)
	y += 17
	c.text("quiet", "middle", x, y, l.packets)
	for _, line := range wrapText(l.text, 13, width, 4) {
		y += 17
		c.text("cause", "middle", x, y, line)
	}
	return y
}

// mostLost keeps the largest few, in travel order.
func mostLost(all []*loss, most int) []*loss {
	if len(all) <= most {
		return all
	}
	sizes := make([]float64, len(all))
	for i, l := range all {
		sizes[i] = l.share
	}
	slices.Sort(sizes)
	least := sizes[len(sizes)-most]
	var kept []*loss
	for _, l := range all {
		if l.share >= least && len(kept) < most {
			kept = append(kept, l)
		}
	}
	return kept
}

// labelPlaces puts labels below their losses, pushed apart where they would
// touch and into the picture where they would leave it. No label is wider than each.
func labelPlaces(named []*loss, centre map[*loss]float64, each, width float64) map[*loss]float64 {
	place := map[*loss]float64{}
	at, half := make([]float64, len(named)), make([]float64, len(named))
	for i, l := range named {
		half[i] = l.labelWidth(each)/2 + labelGap/2
	}
	left := 4.0
	for i, l := range named {
		at[i] = max(centre[l], left+half[i])
		left = at[i] + half[i]
	}
	right := width - 4
	for i := len(at) - 1; i >= 0; i-- {
		at[i] = min(at[i], right-half[i])
		right = at[i] - half[i]
	}
	for i, l := range named {
		place[l] = at[i]
	}
	return place
}

// labelWidth is how wide a label's longest line will be.
func (l *loss) labelWidth(most float64) float64 {
	width := max(textWidth(l.percent, 17)*bold, textWidth(l.packets, 12.5))
	for _, line := range wrapText(l.text, 13, most, 4) {
		width = max(width, textWidth(line, 13))
	}
	return width
}
