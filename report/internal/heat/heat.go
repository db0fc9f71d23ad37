// Package heat turns figures into the colours of a heat map.
//
// Values come in, colours and the ticks of their bar go out, and which of the
// labels beside them have room. It draws nothing and knows nothing of what the
// figures are.
package heat

import (
	"image/color"
	"math"
	"strconv"
)

// anchors are sixteen even steps of viridis (Smith, van der Walt, Firing;
// matplotlib 1.5, _cm_listed.py, CC0): its lightness rises evenly, so it can be
// read by colour-blind people, and on a grey printer.
var anchors = [...]uint32{
	0x440154, 0x481a6c, 0x472f7d, 0x414487, 0x39568c, 0x31688e, 0x2a788e, 0x23888e,
	0x1f988b, 0x22a884, 0x35b779, 0x54c568, 0x7ad151, 0xa5db36, 0xd2e21b, 0xfde725,
}

// Colour is that of a place 0..1 on the scale; places beyond are its ends.
func Colour(place float64) color.RGBA {
	if !(place > 0) {
		place = 0
	}
	at := min(place, 1) * float64(len(anchors)-1)
	i := min(int(at), len(anchors)-2)
	part := at - float64(i)
	mix := func(shift uint) uint8 {
		a, b := float64(anchors[i]>>shift&0xff), float64(anchors[i+1]>>shift&0xff)
		return uint8(math.Round(a + (b-a)*part))
	}
	return color.RGBA{mix(16), mix(8), mix(0), 0xff}
}

// Dark reports whether white can be read on a colour better than black can:
// relative luminance, WCAG 2.1.
func Dark(c color.RGBA) bool {
	linear := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R)+0.7152*linear(c.G)+0.0722*linear(c.B) < 0.179
}

// Hex is a colour as SVG writes it.
func Hex(c color.RGBA) string {
	text := strconv.FormatUint(1<<24|uint64(c.R)<<16|uint64(c.G)<<8|uint64(c.B), 16)
	return "#" + text[1:]
}

// Scale says which values the ends of the colours stand for.
type Scale struct {
	Low, High float64
	Log       bool
}

// least and largest bound what a scale shows, so that its arithmetic stays finite.
const (
	largest  = 1e18
	logRatio = 100 // from this ratio on a linear scale would show the large values only
)

// NewScale begins at 0; one that may be logarithmic begins at the least
// positive value where the values differ by orders of magnitude.
func NewScale(values []float64, mayLog bool) Scale {
	s := Scale{High: 0}
	least := math.Inf(1)
	for _, v := range values {
		if math.IsNaN(v) || math.Abs(v) > largest {
			continue
		}
		s.High = max(s.High, v)
		s.Low = min(s.Low, v)
		if v > 0 {
			least = min(least, v)
		}
	}
	if s.High <= s.Low {
		s.High = s.Low + 1
	}
	if mayLog && s.Low == 0 && s.High/least >= logRatio {
		s.Low, s.Log = max(least, s.High*1e-9), true
	}
	return s
}

// Place is where a value lies on the scale, 0..1.
func (s Scale) Place(v float64) float64 {
	if s.Log {
		if v <= s.Low {
			return 0
		}
		return min(1, math.Log(v/s.Low)/math.Log(s.High/s.Low))
	}
	return max(0, min(1, (v-s.Low)/(s.High-s.Low)))
}

// Ticks are round values on the scale, ascending, at most about six.
func (s Scale) Ticks() []float64 {
	var out []float64
	if s.Log {
		first, last := math.Ceil(math.Log10(s.Low)-1e-9), math.Floor(math.Log10(s.High)+1e-9)
		by := math.Ceil((last - first + 1) / 6)
		for e := first; e <= last; e += max(by, 1) {
			out = append(out, math.Pow(10, e))
		}
		return out
	}
	raw := (s.High - s.Low) / 5
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if step*m >= raw*0.999 {
			step *= m
			break
		}
	}
	// -0 + 0 is 0, which prints without its sign.
	for n := math.Ceil(s.Low/step-1e-9) + 0; n*step <= s.High+step*1e-9 && len(out) < 12; n++ {
		out = append(out, n*step)
	}
	return out
}
