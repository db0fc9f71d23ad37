package seconds

import (
	"cmp"
	"math"
	"slices"

	"pelt/model"
)

// Part is an equal part of a trial's time, as one flow saw it.
type Part struct {
	FromS, ToS float64
	SentPPS    float64 // mean of the seconds that were heard; NaN if none was
	GotPPS     float64 // likewise, of what was received
	Lost       float64 // packets; NaN if no loss was measured in it
	WorstPPS   float64 // most that were lost in one step, per second; NaN likewise
	Causes     []Share // most first; none where nothing was lost
	AtLeast    bool    // of some of its seconds no loss was told
}

// Share is what one cause took in a part.
type Share struct {
	Words   string
	Packets float64
}

// lengths of parts in seconds that people count in.
var lengths = []float64{1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400}

// Parts cuts a trial's time into at most so many equal parts of a length that people
// count in; the last one may be shorter. It returns them for one flow.
func (t Trial) Parts(f Flow, most int) []Part {
	length := lengths[len(lengths)-1]
	for _, l := range lengths {
		if t.EndS <= l*float64(most) {
			length = l
			break
		}
	}
	for t.EndS > length*float64(most) {
		length *= 2
	}
	var out []Part
	for i := 0; float64(i)*length < t.EndS-1e-6; i++ {
		p := Part{FromS: float64(i) * length, ToS: min(float64(i+1)*length, t.EndS)}
		p.SentPPS, _, _ = p.over(f.Sent)
		p.GotPPS, _, _ = p.over(f.Received)
		p.Lost, p.WorstPPS, p.AtLeast = p.over(f.Lost)
		if !math.IsNaN(p.Lost) {
			p.Lost = p.sum(f.Lost)
		}
		for _, c := range f.Causes {
			if n := p.sum(c.Series); n >= 0.5 {
				p.Causes = append(p.Causes, Share{c.Words, n})
			}
		}
		slices.SortStableFunc(p.Causes, func(a, b Share) int { return cmp.Compare(b.Packets, a.Packets) })
		out = append(out, p)
	}
	return out
}

// values of a series that begin within the part.
func (p Part) values(s model.Series) []float64 {
	if len(s.Values) == 0 {
		return nil
	}
	index := func(at float64) int {
		return int(min(max(math.Ceil((at-s.StartSeconds)/s.StepSeconds-1e-6), 0), float64(len(s.Values))))
	}
	return s.Values[index(p.FromS):index(p.ToS)]
}

// over is the mean and the most of the values that were heard; missing: some were not.
func (p Part) over(s model.Series) (mean, most float64, missing bool) {
	sum, n := 0.0, 0
	most = math.NaN()
	for _, v := range p.values(s) {
		if math.IsNaN(v) {
			missing = true
			continue
		}
		v = known(v)
		sum, n = sum+v, n+1
		if !(v <= most) {
			most = v
		}
	}
	if n == 0 {
		return math.NaN(), math.NaN(), missing
	}
	return sum / float64(n), most, missing
}

func (p Part) sum(s model.Series) (packets float64) {
	for _, v := range p.values(s) {
		packets += known(v) * s.StepSeconds
	}
	return packets
}

// Thin brings a series to at most so many values, of which it keeps the least and the
// most of each stretch in the order they came, so that a short burst or stall stays
// seen. Steps that were not heard are missing only where the whole stretch is.
func Thin(s model.Series, most int) (step float64, values []float64) {
	if len(s.Values) <= most {
		return s.StepSeconds, s.Values
	}
	half := max(most/2, 1)
	by := (len(s.Values) + half - 1) / half
	for i := 0; i < len(s.Values); i += by {
		first, second := math.NaN(), math.NaN() // the least and the most, in their order
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range s.Values[i:min(i+by, len(s.Values))] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			if v < low {
				low = v
				first, second = high, low
			}
			if v > high {
				high = v
				first, second = low, high
			}
		}
		values = append(values, first, second)
	}
	return s.StepSeconds * float64(by) / 2, values
}
