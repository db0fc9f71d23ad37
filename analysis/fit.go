package analysis

import (
	"math"
	"slices"
)

// shape is how a path's rate depends on the size of packets.
type shape int

const (
	unclear  shape = iota // neither limit explains the rates
	frames                // the same time for every packet
	bitsOnly              // a time in proportion to the bytes
	both                  // frames up to the knee, bits from there
)

// fit is what the time per packet shows: a path needs a seconds for each
// packet, or b seconds for each byte of its frame, whichever is longer (sharp),
// or one after the other (gradual).
type fit struct {
	shape   shape
	gradual bool
	knee    float64 // bytes of frame where both take the same time; only for both
	low     int     // how many of the points are limited by frames

	lowest, highest float64 // where single repeats put the knee; 0 when they do not tell
	own             bool    // the hosts' own cost of bytes, not a limit of the path
	blurred         bool    // so far apart that the knee's number would say more than was measured
}

// kneeSeparable is how far apart, as a factor, repeats may put a knee that is told.
const kneeSeparable = 2

// blur looks at the knee in each repeat alone.
func (f *fit) blur(c curve, used []point) {
	if f.shape != both {
		return
	}
	low, high, ok := c.kneeInterval(f.gradual)
	if ok {
		f.lowest, f.highest = low, high
		f.blurred = kneePayload(high, used) > kneeSeparable*kneePayload(low, used)
	}
}

// maxHeader is how many bytes of each frame may be spent on what the size of
// the frame does not show: preamble and gap 20, tags, PPPoE, a tunnel. Up to
// that a time per packet is a time for bytes.
const maxHeader = 100

// sizeRange is how far apart the sizes must be to tell the two limits apart.
const sizeRange = 1.5

// mostTolerance is the mean relative error beyond which no explanation counts:
// noise must not make every one of them right.
const mostTolerance = 0.15

// fitShape explains times per packet t in seconds at frame sizes w in bytes,
// both ascending in w. noise is the spread between repeats, as a ratio.
func fitShape(w, t []float64, noise float64) fit {
	n := len(w)
	if n < 2 || w[n-1] < sizeRange*w[0] {
		return fit{shape: unclear}
	}
	tolerance := min(max(0.03, 1.5*noise), mostTolerance)
	flat, flatError := fit{shape: frames, low: n}, flatMisfit(t)
	only := fit{shape: bitsOnly}
	onlyError, header := bitMisfit(w, t)
	middle := median(t)
	simple, simpleError, model := flat, flatError, func(int) float64 { return middle }
	if onlyError < flatError {
		b := slope(w, t, header)
		simple, simpleError, model = only, onlyError, func(i int) float64 { return b * (w[i] + header) }
	}
	if simpleError <= tolerance && !(n > 2 && strays(t, model, max(0.1, 3*noise))) || n == 2 {
		if simpleError > tolerance {
			return fit{shape: unclear}
		}
		return simple
	}
	knee, kneeError := kneeFit(w, t)
	if kneeError <= min(max(0.08, 2.5*noise), mostTolerance) && kneeError < 0.6*simpleError {
		return knee.inside(w)
	}
	if simpleError <= mostTolerance {
		return simple
	}
	return fit{shape: unclear}
}

// inside gives up a knee that has no points on one of its sides.
func (f fit) inside(w []float64) fit {
	f.low = 0
	for _, x := range w {
		if x < f.knee {
			f.low++
		}
	}
	switch f.low {
	case 0:
		return fit{shape: bitsOnly}
	case len(w):
		return fit{shape: frames, low: len(w)}
	}
	return f
}

func flatMisfit(t []float64) float64 {
	a := median(t)
	return misfit(t, func(int) float64 { return a })
}

// bitMisfit is the least error of a time in proportion to the bytes, with
// the header that fits best.
func bitMisfit(w, t []float64) (least, header float64) {
	least = math.Inf(1)
	for h := -4.0; h <= maxHeader; h += 4 { // -4: a shaper does not count the FCS
		b := slope(w, t, h)
		if e := misfit(t, func(i int) float64 { return b * (w[i] + h) }); e < least {
			least, header = e, h
		}
	}
	return least, header
}

// strays tells whether two neighbouring sizes both lie off a model by more than
// noise: among many sizes that fit, their mean error hides them.
func strays(t []float64, model func(int) float64, most float64) bool {
	for i := 1; i < len(t); i++ {
		a, b := math.Log(t[i-1]/model(i-1)), math.Log(t[i]/model(i))
		if min(math.Abs(a), math.Abs(b)) > most && (a > 0) == (b > 0) {
			return true
		}
	}
	return false
}

func slope(w, t []float64, h float64) float64 {
	var b []float64
	for i := range w {
		b = append(b, t[i]/(w[i]+h))
	}
	return median(b)
}

// kneeFit explains the times by a sharp or a gradual knee. A gradual one must
// explain clearly more: it is the weaker claim.
func kneeFit(w, t []float64) (fit, float64) {
	sharp, sharpError := sharpFit(w, t)
	soft, softError := gradualFit(w, t)
	if softError < 0.7*sharpError {
		return soft, softError
	}
	return sharp, sharpError
}

// sharpFit tries a knee at every place between two sizes.
func sharpFit(w, t []float64) (f fit, least float64) {
	least = math.Inf(1)
	for k := 1; k < len(w); k++ {
		a := median(t[:k])
		for _, h := range []float64{-4, 0, 20} {
			b := slope(w[k:], t[k:], h)
			if e := misfit(t, func(i int) float64 { return max(a, b*(w[i]+h)) }); e < least {
				least, f = e, fit{shape: both, knee: a/b - h}
			}
		}
	}
	return f, least
}

// gradualFit tries every line through two points: the least sum of absolute
// errors lies on one of them, and no single bad point bends it.
func gradualFit(w, t []float64) (f fit, least float64) {
	least = math.Inf(1)
	for i := range w {
		for j := range w[:i] {
			b := (t[i] - t[j]) / (w[i] - w[j])
			a := t[i] - b*w[i]
			if !(a > 0 && b > 0) || a/b < maxHeader {
				continue
			}
			if e := misfit(t, func(i int) float64 { return a + b*w[i] }); e < least {
				least, f = e, fit{shape: both, gradual: true, knee: a / b}
			}
		}
	}
	return f, least
}

// misfit is the mean of the relative errors.
func misfit(t []float64, model func(int) float64) float64 {
	var sum float64
	for i, x := range t {
		sum += math.Abs(math.Log(x / model(i)))
	}
	return sum / float64(len(t))
}

// times returns frame sizes and seconds per packet of a curve's medians. Sizes
// at which nothing arrived say nothing, those split on the way are more than one
// packet, and another engine's packets cost the hosts something else.
func (c curve) times() (w, t []float64, used []point) {
	whole := slices.ContainsFunc(c.points, func(p point) bool { return p.arrived() && p.fragments <= 1 })
	for _, p := range c.points {
		if len(used) > 0 && p.engine != used[0].engine {
			continue
		}
		if p.arrived() && (p.fragments <= 1 || !whole) && (len(w) == 0 || float64(p.frame) > w[len(w)-1]) {
			w, t, used = append(w, float64(p.frame)), append(t, 1/p.pps), append(used, p)
		}
	}
	return w, t, used
}

// kneeInterval is where the knee lies in each repeat alone; ok is false when
// there are fewer than two repeats, or one of them shows no knee.
func (c curve) kneeInterval(gradual bool) (low, high float64, ok bool) {
	_, _, whole := c.times()
	byRepeat := map[int][]int{} // repeat -> places in whole
	for i, p := range whole {
		for _, x := range p.trials {
			byRepeat[x.repeat] = append(byRepeat[x.repeat], i)
		}
	}
	var knees []float64
	for repeat, places := range byRepeat {
		if len(places) != len(whole) {
			continue
		}
		one := curve{}
		for _, i := range places {
			p := whole[i]
			j := slices.IndexFunc(p.trials, func(x trial) bool { return x.repeat == repeat })
			one.points = append(one.points, point{payload: p.payload, frame: p.frame, received: 1, pps: p.trials[j].flow.ReceivePPS})
		}
		w, t, used := one.times()
		if len(used) < len(whole) {
			continue
		}
		f, _ := sharpFit(w, t)
		if gradual {
			f, _ = gradualFit(w, t)
		}
		if !(f.knee > 0) {
			return 0, 0, false
		}
		knees = append(knees, f.knee)
	}
	if len(knees) < 2 {
		return 0, 0, false
	}
	return slices.Min(knees), slices.Max(knees), true
}
