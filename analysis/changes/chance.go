package changes

import (
	"math"

	"pelt/analysis/internal/stats"
)

// AlarmHours is how long steady traffic is watched, on average, until one change is
// told that is none: all series of a trial and all kinds of changes together.
const AlarmHours = 24.0

// searches are the kinds of changes that a series is searched for: levels with their
// drifts, regular stalls, and bursts or a trend too small for any level. They share
// the false alarms.
const searches = 3

// freedom of the noise that a series is judged by, in Student's sense: it is itself
// taken from a limited number of values.
const freedom = 30

// odds turn the chance of one look into that of any look in a trial.
type odds struct {
	series  int     // searched in this trial
	seconds float64 // of the trial
	surest  float64 // chance that no trial may have more of, however long it is
}

// anywhere is the chance that any of so many looks at one series, or at any other
// of the trial, shows by chance what one look does with probability p. It is
// Bonferroni's bound.
func (o odds) anywhere(p, looks float64) float64 {
	return min(1, p*looks*float64(o.series)*searches)
}

// surest is the chance of a false alarm in a trial that is never allowed, however long
// it is.
const surest = 0.05

// allowed is the chance of a false alarm that a trial of this length has.
func (o odds) allowed() float64 { return min(o.surest, o.seconds/(AlarmHours*3600)) }

// beyond is the number of standard deviations whose chance, in so many looks, is
// the one allowed.
func (o odds) beyond(looks float64) float64 {
	p := o.allowed() / (looks * float64(o.series) * searches)
	if p >= 1 {
		return 0
	}
	return stats.Student(1-p/2, freedom)
}

// twoSided is the chance of so many standard deviations or more, either way.
func twoSided(z float64) float64 {
	if math.IsInf(z, 0) {
		return leastChance
	}
	return max(leastChance, stats.StudentBeyond(z, freedom))
}

// leastChance is the smallest that the arithmetic tells from 0.
const leastChance = 1e-15
