package live

import (
	"slices"
	"time"

	"pelt/finding"
	"pelt/model"
	"pelt/view"
	"pelt/words"
)

// mostKept is how many values of a series, trials and notes are kept: five minutes of a value a second.
const mostKept = 300

// Now is what a screen shows of a run: its events, folded. It belongs to one goroutine.
type Now struct {
	Language words.Language // of what is told about it

	Started  Started
	Next     *Next // the trial that runs; nil between trials
	Began    time.Time
	Series   []Series // of flows of the plan, and of cores
	Sum      *Sample  // what the newest event added to Series; nil if nothing
	Account  *Account // of the trial that runs, or ran last
	Trials   []Trial  // the newest
	Findings []model.Finding
	Notes    []string // the newest
	Done     *Done
	Last     uint64 // number of the newest event
	Time     time.Time

	flows []*flow          // of the trial that runs or ran last
	parts map[string]*part // of all flows, by name
}

// Series is one series of samples: the newest, of the trial that runs and of those before.
type Series struct {
	Sample           // the newest
	Trial  int       // of the newest
	Values []float64 // means of a second each; the last one goes on
	Second float64   // the mean of the last whole second of the trial, or of its beginning

	since   float64 // AtS of the first sample of the last value
	samples int     // of the last value
}

// Take adds an event. One that came before is left out.
func (n *Now) Take(e Event) {
	if e.ID <= n.Last {
		return
	}
	n.Last, n.Time, n.Sum = e.ID, e.Time, nil
	switch {
	case e.Started != nil:
		n.Started = *e.Started
	case e.Next != nil:
		n.Next, n.Began, n.Account = e.Next, e.Time, nil
		n.flows, n.parts = nil, nil
		for _, f := range e.Next.Flows {
			n.part(f)
		}
	case e.Sample != nil:
		n.sample(*e.Sample, e.Time)
	case e.Account != nil:
		n.Account = &Account{ElapsedS: e.Account.ElapsedS, Flows: summed(e.Account.Flows)}
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

// Left estimates how long the rest of the run takes; ok is false where nobody knows.
func (n *Now) Left(at time.Time) (left time.Duration, ok bool) {
	if n.Next == nil || n.Next.LeftSeconds == 0 {
		return 0, false
	}
	return max(0, time.Duration(n.Next.LeftSeconds*float64(time.Second))-at.Sub(n.Began)), true
}

// Verdict is what the trials so far show, in one sentence; "" before anything is known.
func (n *Now) Verdict() string {
	for _, f := range n.Findings {
		if f.Level == "answer" {
			return finding.FromStored(f, n.Language).Parts()[0]
		}
	}
	return ""
}

// Paths place the losses of the account on the path, flow by flow.
func (n *Now) Paths() []view.Path {
	if n.Account == nil {
		return nil
	}
	trial := model.Unfinished([]model.Checkpoint{{ElapsedS: n.Account.ElapsedS, Flows: n.Account.Flows}})
	trial.State = model.Valid // figures of other trials count nowhere
	return view.Paths(&model.Document{Language: n.Language, Lab: &model.LabFacts{Nodes: n.Started.Nodes},
		Results: []model.Result{trial}})
}

func newest[T any](list []T, one T) []T {
	list = append(list, one)
	return slices.Clone(list[max(0, len(list)-mostKept):])
}

func (n *Now) sample(s Sample, at time.Time) {
	if _, rate := sides[s.Metric]; rate {
		f, p := n.part(Ends{Name: s.Flow})
		sum, due := f.take(p, s, at)
		if !due {
			return
		}
		s = sum
	}
	n.Sum = &s
	same := func(x Series) bool {
		return x.Metric == s.Metric && x.Flow == s.Flow && x.At == s.At && (x.Core == nil) == (s.Core == nil) &&
			(x.Core == nil || *x.Core == *s.Core)
	}
	i := slices.IndexFunc(n.Series, same)
	if i < 0 {
		n.Series, i = append(n.Series, Series{}), len(n.Series)
	}
	trial := 0
	if n.Next != nil {
		trial = n.Next.Number
	}
	n.Series[i].take(s, trial)
}

// almostSecond is a second of samples whose times are not exact, in s.
const almostSecond = 0.95

func (x *Series) take(s Sample, trial int) {
	same := x.samples > 0 && x.Trial == trial
	x.Sample, x.Trial = s, trial
	last := len(x.Values) - 1
	if same && s.AtS-x.since < almostSecond {
		x.samples++
		x.Values[last] += (s.Value - x.Values[last]) / float64(x.samples)
		return
	}
	x.Second = s.Value
	if same {
		x.Second = x.Values[last]
	}
	x.Values, x.since, x.samples = newest(x.Values, s.Value), s.AtS, 1
}
