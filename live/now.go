package live

import (
	"slices"
	"strings"
	"time"

	"pelt/model"
)

// mostValues is how many samples of a series are shown: five minutes of ten a second.
const mostValues = 3000

// mostTold is how many trials and notes are shown.
const mostTold = 200

// Now is what a screen shows of a run: its events, folded. It belongs to one goroutine.
type Now struct {
	Started  Started
	Next     *Next // the trial that runs; nil between trials
	Began    time.Time
	First    time.Time // when the first trial of this command began
	Before   int       // trials that had ended before that one
	Series   []Series
	Account  *Account // of the trial that runs, or ran last
	Trials   []Trial  // the newest
	Findings []model.Finding
	Notes    []string // the newest
	Done     *Done
	Last     uint64 // number of the newest event
	Time     time.Time
}

// Series is one series of samples of the trial that runs, or ran last: the newest.
type Series struct {
	Sample // the newest
	Values []float64
}

// Take adds an event. One that came before is left out.
func (n *Now) Take(e Event) {
	if e.ID <= n.Last {
		return
	}
	n.Last, n.Time = e.ID, e.Time
	switch {
	case e.Started != nil:
		n.Started = *e.Started
	case e.Next != nil:
		n.Next, n.Began, n.Series, n.Account = e.Next, e.Time, nil, nil
		if n.First.IsZero() {
			n.First, n.Before = e.Time, e.Next.Number-1
		}
	case e.Sample != nil:
		n.sample(*e.Sample)
	case e.Account != nil:
		n.Account = e.Account
	case e.Trial != nil:
		n.Trials, n.Next = newest(n.Trials, *e.Trial), nil
	case e.Findings != nil:
		n.Findings = *e.Findings
	case e.Note != "":
		n.Notes = newest(n.Notes, e.Note)
	case e.Done != nil:
		n.Done, n.Next = e.Done, nil
	}
}

// Left estimates how long the rest of the run takes, by the trials that have ended or else by what the trial that runs
// is to take; ok is false where nobody knows how many follow.
func (n *Now) Left(at time.Time) (left time.Duration, ok bool) {
	if n.Next == nil || n.Next.Trials == 0 {
		return 0, false
	}
	each, elapsed := n.Next.Whole(), at.Sub(n.Began)
	rest := max(each-elapsed, 0)
	if ended := n.Next.Number - 1 - n.Before; ended > 0 {
		each = n.Began.Sub(n.First) / time.Duration(ended)
		rest = max(each-elapsed, rest)
	}
	return rest + each*time.Duration(max(n.Next.Trials-n.Next.Number, 0)), true
}

// Answers is what the trials so far show, in words; "" before anything is known.
func (n *Now) Answers() string {
	var answers []string
	for _, f := range n.Findings {
		if f.Level == "answer" {
			answers = append(answers, f.Text)
		}
	}
	return strings.Join(answers, " ")
}

func newest[T any](list []T, one T) []T {
	list = append(list, one)
	return slices.Clone(list[max(0, len(list)-mostTold):])
}

func (n *Now) sample(s Sample) {
	same := func(x Series) bool {
		return x.Metric == s.Metric && x.Flow == s.Flow && x.At == s.At && (x.Core == nil) == (s.Core == nil) &&
			(x.Core == nil || *x.Core == *s.Core)
	}
	i := slices.IndexFunc(n.Series, same)
	if i < 0 {
		n.Series, i = append(n.Series, Series{}), len(n.Series)
	}
	x := &n.Series[i]
	x.Sample = s
	if len(x.Values) == 2*mostValues {
		x.Values = append(x.Values[:0], x.Values[mostValues:]...)
	}
	x.Values = append(x.Values, s.Value)
}
