package report

import (
	"strconv"
	"strings"
)

func unitCount(n int) string { return strconv.Itoa(n) }

// Sizes of the tall picture, for a phone, in its own pixels.
const (
	tallWidth = 344.0
	tallBand  = 46.0
	tallLeft  = 18.0 // of the band
	tallArrow = 90.0 // where arrows end
	tallText  = 98.0 // where words begin
)

// tall draws the path from top to bottom; losses leave the band to the right.
func (r route) tall() picture {
	var boxes, lines canvas
	widths, arrived := r.widths(tallBand)
	right := tallLeft + tallBand
	y := 22.0
	lines.text("quiet", "start", tallLeft, y-6, "sent "+r.sent)
	top := y
	edge := []any{} // the band's right edge from top to bottom
	room := tallWidth - tallText - 12

	fall := func(l *loss) {
		t := widths[l]
		start := y + 2
		mid := start + turn + t/2
		half := max(t/2+4, 6.0)
		lines.fall(l, t,
			[]any{"M", right - t/2, start, "A", turn + t/2, turn + t/2, "0 0 0", right + turn, mid, "H", tallArrow - 8},
			[]any{"M", tallArrow - 8.5, mid - half, "V", mid + half, "L", tallArrow + 2, mid, "Z"})
		edge = append(edge, "V", start, "H", right-t)
		right -= t
		text := max(mid+5, y+16)
		if textWidth(l.percent, 17)*bold+8+textWidth(l.packets, 12.5) <= room {
			lines.pair("share", tallText, text, l.percent, l.packets)
		} else {
			lines.text("share", "start", tallText, text, l.percent)
			text += 16
			lines.text("quiet", "start", tallText, text, l.packets)
		}
		for _, line := range wrapText(l.text, 13, room, 4) {
			text += 17
			lines.text("cause", "start", tallText, text, line)
		}
		y = max(text+12, mid+half+8)
	}
	idle := func(names []string) {
		if len(names) == 0 {
			return
		}
		for _, line := range wrapText(strings.Join(names, ", "), 12, room, 4) {
			y += 17
			lines.text("layer", "start", tallText, y, line)
		}
		y += 8
	}
	for _, s := range r.stations {
		if s.name == "" {
			y += 6
			for j := range s.stops[0].losses {
				fall(&s.stops[0].losses[j])
			}
			y += 14
			continue
		}
		begin := y
		y += 22
		lines.text("name", "start", tallText, y, wrapText(s.name, 15.5*bold, room, 1)[0])
		if s.about != "" {
			y += 16
			lines.text("about", "start", tallText, y, s.about)
		}
		y += 6
		var names []string
		for j := range s.stops {
			if len(s.stops[j].losses) == 0 {
				if s.stops[j].name != "" {
					names = append(names, s.stops[j].name)
				}
				continue
			}
			idle(names)
			names = nil
			if s.stops[j].name != "" {
				y += 14
				lines.text("layer hit", "start", tallText, y, s.stops[j].name)
				y += 2
			}
			for k := range s.stops[j].losses {
				fall(&s.stops[j].losses[k])
			}
		}
		idle(names)
		y += 4
		class := "node"
		if s.unseen {
			class = "node unseen"
		}
		boxes.box(class, 4, begin, tallWidth-8, y-begin)
	}
	y += 6
	if r.rest != nil {
		fall(r.rest)
	}
	y += 16
	words := append([]any{"M", tallLeft, top, "H", tallLeft + tallBand}, edge...)
	bottom := y + 16
	if arrived > 0 {
		mid := (tallLeft + right) / 2
		half := max((right-tallLeft)/2+6, 11)
		words = append(words, "V", y, "H", mid+half, "L", mid, bottom, "L", mid-half, y, "H", tallLeft, "Z")
	} else {
		words = append(words, "V", y, "H", tallLeft, "Z")
	}
	boxes.path("flow", r.sent+" packets sent, "+r.arrived+" arrived", words...)
	lines.pair("share", tallText, y+4, r.share, "arrived, "+r.arrived)
	return picture{Width: px(tallWidth), Height: px(bottom + 6), Class: "tall", Shapes: append(boxes.shapes, lines.shapes...)}
}
