package live

import (
	"time"

	"pelt/design"
	"pelt/model"
	"pelt/unit"
	"pelt/words"
)

// left estimates how long the rest of a run takes.
type left struct {
	design.Rest
	first  int           // trials that were left when the first search began
	begun  int           // trials that ended since then
	design design.Design // nil: the plan is of another version
	began  time.Time     // the first trial of this command
	ended  int           // trials
	sent   float64       // seconds that these were to send
	beside float64       // seconds that each needs besides
}

// usualBeside is how many seconds a trial needs besides sending, before one has ended: its ends meet, packets arrive
// late.
const usualBeside = 1

// Estimate says how long a plan takes, in words and in seconds, and how many trials it makes.
func Estimate(in words.Language, p model.Plan) (text string, seconds float64, trials int) {
	l := leftOf(&model.Document{Plan: p})
	return l.text(in), l.seconds(), l.Trials
}

// leftOf estimates the rest of a run that has some results.
func leftOf(d *model.Document) left {
	l := left{Rest: design.Rest{AtOnce: 1}, beside: usualBeside}
	next, err := design.New(d.Plan)
	if err != nil {
		return l
	}
	for i := range d.Results {
		next.Add(&d.Results[i])
	}
	l.design, l.Rest = next, design.Left(d.Plan, next)
	return l
}

// text says how long the whole run takes; "" if nothing is left.
func (l *left) text(in words.Language) string {
	how, trials := "about %s", "%d trials"
	switch {
	case l.Trials == 0:
		return ""
	case l.Guess:
		how, trials = "at least %s", "a search of %d trials or more"
	}
	whole := in.Say(unit.FormatEstimate(l.seconds()))
	if longest := *l; l.More > 0 && !l.Guess {
		longest.Seconds += l.More
		whole = in.Sayf("%s to %s", whole, in.Say(unit.FormatEstimate(longest.seconds())))
	}
	text := in.Sayf(how, whole)
	if l.Trials == 1 {
		return text
	}
	return in.Sayf("%s: %s", text, in.Sayf(trials, l.Trials))
}

// begin is called when a trial begins.
func (l *left) begin(d *model.Document) {
	if l.began.IsZero() {
		l.began = time.Now()
	}
	if l.Guess {
		l.Rest = design.Left(d.Plan, l.design)
		if l.begun == 0 { // what floods show is no contradiction
			l.first = l.Trials
		}
	}
	if l.ended > 0 {
		l.beside = max(time.Since(l.began).Seconds()*float64(l.AtOnce)-l.sent, 0) / float64(l.ended)
	}
}

// end is called when a trial has ended, perhaps again. One of a grid is taken for an average one: all take turns.
func (l *left) end(p model.Plan, r *model.Result, again bool) {
	if l.design != nil {
		l.design.Add(r)
	}
	if again {
		return
	}
	each := l.Seconds / float64(max(l.Trials, 1))
	if !l.Guess {
		l.More -= l.More / float64(max(l.Trials, 1))
		l.Trials, l.Seconds = max(l.Trials-1, 0), l.Seconds-each
	} else if t, err := p.Trial(r.Cell, r.Repeat); err == nil {
		each = t.Timing.WarmupSeconds + t.Timing.MeasureSeconds
	}
	l.ended, l.sent = l.ended+1, l.sent+each
	if l.begun > 0 || r.Cell.Searching() {
		l.begun++
	}
}

// steady is how many trials of searches count as foreseen, about those of one, so that the first search does not say
// much of the others.
const steady = 20

// seconds is how long the rest takes. A search whose trials contradict each other needs more than were foreseen: what
// is left of it is taken to need as many times more as what was made.
func (l *left) seconds() float64 {
	seconds := (l.Seconds + float64(l.Trials)*l.beside) / float64(max(l.AtOnce, 1))
	if l.Guess {
		seconds *= max(1, float64(l.begun+steady)/float64(max(l.first-l.Trials, 0)+steady))
	}
	return seconds
}
