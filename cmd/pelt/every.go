package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/finding"
	"pelt/fleet"
	"pelt/live"
	"pelt/live/webhook"
	"pelt/model"
	"pelt/render/plain"
	"pelt/run"
	"pelt/store"
	"pelt/unit"
	"pelt/view"
	"pelt/words"
)

// everyFlags have a test run again and again.
type everyFlags struct{ every, lasts, onChange string }

func (f *everyFlags) register(s *pflag.FlagSet) {
	s.StringVar(&f.every, "every", "", "run again and again, with `TIME` from one start to the next: 5m")
	s.StringVar(&f.lasts, "for", "", "with --every, how long: `TIME` as 7d (default: until stopped)")
	s.StringVar(&f.onChange, "on-change", "",
		"with --every, POST JSON to `URL` when a limit fails, when it holds again, and when a figure changes")
}

// loop runs a plan again and again. Each run is kept as any other.
type loop struct {
	*commonFlags
	c            *cobra.Command
	plan         model.Plan
	every, lasts time.Duration // lasts is 0 for no end
	hook         *webhook.Hook // nil for none
	out          io.Writer     // of the line of each run

	runs    []*model.Document // of the plan, oldest first, also those that were kept before
	own     int               // runs of this loop, the last ones
	left    int               // older runs that are not looked at any more
	first   time.Time         // begin of this loop's first run
	found   []change
	kept    int
	outcome string // of the last run that was valid, or failed
	code    error  // of the first run that did not pass
}

// change is a finding that was told. The run that it began with may move by some as more runs come.
type change struct {
	what string
	run  int
}

// lastPost is how long the end of a loop waits for messages that nobody has taken yet.
const lastPost = 10 * time.Second

// Outcomes of a run.
const (
	passed      = "passed"
	limitFailed = "limit failed"
	notValid    = "not valid"
	noResult    = "error"
)

// news is what is posted.
type news struct {
	Format   string          `json:"format"`
	Time     time.Time       `json:"time"`
	Command  string          `json:"command"`
	Target   string          `json:"target"`
	Run      string          `json:"run,omitempty"` // "" if it is not kept
	Outcome  string          `json:"outcome"`
	Before   string          `json:"outcome_before,omitempty"`
	Text     string          `json:"text"`
	Findings []model.Finding `json:"changes"`
}

// newLoop checks the flags; nil: the plan runs once.
func (f *commonFlags) newLoop(c *cobra.Command, p model.Plan) (*loop, error) {
	l := &loop{commonFlags: f, c: c, plan: p, out: c.OutOrStdout(), outcome: passed}
	switch {
	case f.again.every != "":
	case f.again.lasts != "":
		return nil, usagef("--for: is for --every, the time from one run to the next, as 5m")
	case f.again.onChange != "":
		return nil, usagef("--on-change: is for --every, the time from one run to the next, as 5m")
	default:
		return nil, nil
	}
	for _, x := range []struct {
		flag  string
		given bool
	}{{"live", f.live}, {"web", f.web}, {"json-lines", f.lines != ""}, {"record", f.record != ""}} {
		if x.given {
			return nil, usagef("--%s: is for one run; leave --every out", x.flag)
		}
	}
	var err error
	if l.every, err = positive(f.again.every); err != nil {
		return nil, usagef("--every: %v", err)
	}
	if text, takes, _ := live.Estimate(spoken(), p); takes >= l.every.Seconds() {
		return nil, usagef("--every: a run takes %s; want more, or a shorter --time", text)
	}
	if f.again.lasts != "" {
		if l.lasts, err = positive(f.again.lasts); err != nil {
			return nil, usagef("--for: %v", err)
		}
		if l.lasts <= l.every {
			return nil, usagef("--for: want more than one --every of %s", unit.FormatDuration(l.every))
		}
	}
	if f.again.onChange != "" {
		if err := webhook.Check(f.again.onChange); err != nil {
			return nil, usagef("--on-change: %v", err)
		}
		if needsUserNamespace(p.Target) {
			return nil, usagef("--on-change: without root this lab has a network of its own, from which no " +
				"URL is reached")
		}
	}
	if slices.ContainsFunc(f.output.asked(), func(x output) bool { return x.path == "-" }) {
		l.out = c.ErrOrStderr()
	}
	return l, nil
}

// run runs the plan until the time is over or the user ends it, and reports.
func (l *loop) run() error {
	asked := l.c.Context()
	begun := context.WithoutCancel(asked) // a trial in hand ends first; a second Ctrl-C ends at once
	if l.again.onChange != "" {
		l.hook = webhook.New(l.again.onChange)
	}
	l.brief, l.told = true, map[string]bool{}
	l.first = time.Now()
	for n := 0; l.lasts == 0 || time.Duration(n)*l.every < l.lasts; {
		select {
		case <-asked.Done():
		case <-time.After(time.Until(l.first.Add(time.Duration(n) * l.every))):
		}
		if asked.Err() != nil {
			break
		}
		l.c.SetContext(begun)
		if err := l.once(asked, n); err != nil {
			_ = l.end(false)
			return err
		}
		next := n + 1
		took := int((time.Since(l.first) + l.every - 1) / l.every)
		if l.lasts > 0 {
			took = min(took, int((l.lasts+l.every-1)/l.every)) // all runs of the loop
		}
		if took > next {
			tellf(l.c, "pelt: the run took longer than --every; runs left out: %d", took-next)
			next = took
		}
		n = next
	}
	return l.end(asked.Err() != nil)
}

// once runs the plan for the n-th time, and tells of it. Its error is the user's to mend.
func (l *loop) once(asked context.Context, n int) error {
	p := l.plan
	p.Design.Seed += uint64(n)
	over := context.AfterFunc(asked, func() {
		tellf(l.c, "pelt: ends after this trial; Ctrl-C again ends at once")
	})
	defer over()
	doc, err := l.measure(l.c, p, nil, func(o run.Options) (model.Document, error) {
		o.Again, o.Stop = n > 0, asked.Done()
		return run.Execute(l.c.Context(), p, o)
	})
	switch {
	case n == 0 && isUsage(err):
		return err
	case err == nil && len(doc.Results) == 0: // the user ended it before the first trial
		return nil
	}
	if doc.Started.IsZero() { // it did not begin
		doc.Plan, doc.Started = p, time.Now().UTC()
	}
	outcome := l.judged(&doc, err)
	id := doc.ID
	if id == "" {
		id = time.Now().UTC().Format("20060102-1504")
	} else {
		l.kept++
	}
	width, _, _ := terminal(os.Stdout)
	lang := spoken() // of the terminal; what programs read is English
	line := sentence(lang, doc, outcome, err)
	if outcome != passed {
		line = lang.Sayf("%s: %s", lang.Say(outcome), line)
	}
	fmt.Fprintln(l.out, plain.Cut(plain.Text(fmt.Sprintf("%-17s  %s", id, line)), width))
	l.files(doc, err)
	changes := l.changes(doc)
	for _, f := range finding.Shown(changes) {
		say(l.out, "  "+f.In(lang).Text())
	}
	turned := outcome != l.outcome && outcome != notValid // which says nothing of the path
	if l.hook != nil && (turned || len(changes) > 0) {
		l.hook.Send(news{"pelt/news/1", time.Now().UTC().Truncate(time.Second), p.Command, p.Target, doc.ID, outcome,
			l.outcome, sentence(words.English, doc, outcome, err), finding.Stored(changes, true)})
	}
	if turned {
		l.outcome = outcome
	}
	if errors.Is(err, fleet.ErrWrongCode) { // tried again and again it looks like a guess
		return err
	}
	return nil
}

// judged says how a run went.
func (l *loop) judged(doc *model.Document, err error) (outcome string) {
	code := exitCode(exitError)
	if err == nil {
		code, _ = judge(doc)
	}
	if code != exitOK && l.code == nil {
		l.code = code
	}
	switch {
	case err != nil:
		return noResult
	case code == exitLimit:
		return limitFailed
	case code == exitInvalid:
		return notValid
	}
	return passed
}

// sentence says what a run showed.
func sentence(l words.Language, doc model.Document, outcome string, err error) string {
	if err != nil {
		return l.Line(err)
	}
	if outcome == notValid && len(doc.Results) == 1 {
		return finding.WhyIn(l, doc.Results[0].Why)
	}
	if found := finding.Of(finding.OfRun(in(l, doc)), finding.Answer); len(found) > 0 {
		return found[0].In(l).Parts()[0]
	}
	return ""
}

// files writes what the flags ask for of the newest run. A loop goes on without.
func (l *loop) files(doc model.Document, err error) {
	asked := l.output.asked()
	if len(doc.Results) == 0 { // a dashboard sees that the test failed
		asked = slices.DeleteFunc(asked, func(x output) bool { return x.flag != "prom" || err == nil })
	}
	for _, x := range asked {
		err := writeTo(l.c, x.path, func(w io.Writer) error { return x.write(w, ofRun(doc)) })
		if err != nil && !errors.Is(err, errNothingToDraw) {
			tellf(l.c, "pelt: --%s: %v", x.flag, spoken().Error(err))
		}
	}
}

// changes adds a run to those of its plan, and returns what was not told of them yet.
func (l *loop) changes(doc model.Document) (fresh []finding.Finding) {
	l.own++
	if len(doc.Results) == 0 && len(l.runs) == 0 { // the first one that reaches somebody finds it among those before
		return nil
	}
	if len(l.runs) == 0 {
		l.runs = l.before(doc)
	}
	l.runs = append(l.runs, run.Slim(doc))
	all := len(l.runs)
	l.runs = run.Newest(l.runs)
	l.left += all - len(l.runs)
	return l.fresh()
}

// before loads the runs of the plan that were kept before this loop. What they show is not told again.
func (l *loop) before(doc model.Document) []*model.Document {
	if l.noStore {
		return nil
	}
	st, err := store.Open("")
	var runs []*model.Document
	if err == nil {
		runs, err = run.History(st, doc, time.Time{})
	}
	if err != nil {
		tellf(l.c, "pelt: earlier runs cannot be read: %v", spoken().Error(err))
	}
	if l.runs = runs; len(runs) > 0 {
		l.fresh()
	}
	return l.runs
}

// sameChange is how far the begin of a change may move as more runs come, in runs.
const sameChange = 8

// fresh returns the findings of all runs that began at some run and were not told yet.
func (l *loop) fresh() (out []finding.Finding) {
	for _, f := range finding.OfRuns(l.runs) {
		if f.Words["since"] == "" || f.Code == "times.runs" {
			continue
		}
		words := maps.Clone(f.Words)
		delete(words, "why")
		delete(words, "place")
		one := change{}
		if cycle, moves := f.Number("cycles_count", "before"); moves {
			delete(words, "since")
			one.run = l.left + int(cycle)
		}
		one.what = fmt.Sprint(f.Code, words)
		if !slices.ContainsFunc(l.found, func(o change) bool {
			return o.what == one.what && max(o.run, one.run)-min(o.run, one.run) < sameChange
		}) {
			l.found, out = append(l.found, one), append(out, f)
		}
	}
	return out
}

func (l *loop) end(interrupted bool) error {
	if l.hook != nil {
		l.hook.Close(lastPost)
		if n, why := l.hook.Dropped(); n > 0 {
			tellf(l.c, "pelt: --on-change: %d messages were not delivered: %v", n, why)
		}
	}
	if runs := l.runs[max(0, len(l.runs)-l.own):]; len(runs) > 0 {
		since := fmt.Sprintf("pelt report %s --since '%s'", cmp.Or(runs[len(runs)-1].ID, "last"),
			l.first.Format("2006-01-02 15:04"))
		for _, d := range runs {
			d.Language = spoken()
		}
		fmt.Fprintln(l.out)
		if err := printPage(l.out, view.Runs(runs), l.output.all, l.output.more(since+" --all")); err != nil {
			return err
		}
		if l.kept > 0 {
			tellf(l.c, "%d runs are kept: %s --html out.html", l.kept, since)
		}
	}
	if interrupted {
		return exitCode(exitInterrupted)
	}
	return l.code
}
