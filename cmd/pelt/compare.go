package main

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pelt/finding"
	"pelt/model"
	"pelt/render"
	"pelt/table"
	"pelt/view"
	"pelt/words"
)

type compareFlags struct {
	by, base, metric string
	failIf           []string
	output           outputFlags
}

func newCompare() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare [RUN...]",
		Short: "Say what differs between runs, or variants in one run, and what may be chance",
		Long: spoken().Sayf(`compare tells what changed. Of several runs the first is the baseline. Of one run it
compares the variants, or the values of --by.

The chance of any false alarm is at most 5 %%. Each side needs three valid repeats.

--fail-if "METRIC < -5%%" is relative to the baseline; for shares in points. Metrics:
%s.

RUN is an id or its beginning, last (default), or a file, also of iperf3 -J or flent.`,
			strings.Join(table.Words(), ", ")),
		Example: `  pelt compare before.json after.json --fail-if 'goodput < -5%'
  pelt compare last --by control --metric goodput,delay`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"last"}
			}
			q, err := f.question(args)
			if err != nil {
				return err
			}
			if err := f.output.check(); err != nil {
				return err
			}
			for _, ref := range args {
				doc, err := loadRun(ref)
				if err != nil {
					return err
				}
				q.Docs = append(q.Docs, &doc)
			}
			result, err := finding.Compare(q)
			if err != nil {
				return refused(c, err)
			}
			page := func(l words.Language) view.Page {
				said, _ := finding.Compare(q.In(l)) // as above
				return view.Compare(said)
			}
			err = f.output.show(c, content{
				page: page,
				json: func(w io.Writer) error { return encodeJSON(w, result.Document(model.Tool{Version: version()})) },
				csv:  func(w io.Writer) error { return render.CSV(w, view.CompareFigures(result)) },
				more: whole(c, args...),
			})
			if err != nil {
				return err
			}
			said, _ := finding.Compare(q.In(spoken())) // as above
			return judged(c, said)
		},
	}
	s := c.Flags()
	s.StringVar(&f.by, "by", "", "of one run: compare the values of this `SETTING` (default variant)")
	s.StringVar(&f.base, "base", "", "of one run: compare with this `VALUE` (default the first)")
	s.StringVar(&f.metric, "metric", finding.DefaultMetrics, "`METRIC`s to compare; the fewer, the surer each answer")
	s.StringArrayVar(&f.failIf, "fail-if", nil,
		"exit code 3 if a change is beyond this `LIMIT`, and not by chance: 'loss > 1%' (repeatable)")
	f.output.register(s)
	return c
}

// question reads the flags; its errors are the user's to mend.
func (f *compareFlags) question(args []string) (q finding.Question, err error) {
	q.Key, q.Base = f.by, f.base
	for _, k := range model.Knobs() {
		if k.Varies && k.Flag != "" && k.Flag == f.by { // as its flag is called
			q.Key = k.Name
		}
	}
	if q.Metrics, err = finding.Metrics(f.metric); err != nil {
		return q, usagef("--metric: %v", err)
	}
	for _, text := range f.failIf {
		l, err := table.ParseBound(text)
		if err != nil {
			return q, usagef("--fail-if: %v", err)
		}
		q.Limits = append(q.Limits, l)
	}
	if len(args) > 1 && (f.by != "" || f.base != "") {
		return q, usagef("--by and --base are for one run; of several, the first is what the others are compared with")
	}
	return q, nil
}

// refused gives a refusal its exit code: a question that cannot be asked is a usage error,
// runs without anything usable are invalid.
func refused(c *cobra.Command, err error) error {
	var refusal *finding.Refusal
	switch {
	case !errors.As(err, &refusal):
		return err
	case refusal.Ask:
		return usageError{refusal}
	}
	tellf(c, "pelt: %s", spoken().Error(refusal))
	return exitCode(exitInvalid)
}

// judged is the exit code of the limits: 3 if one failed, 4 if one cannot be decided or was not measured.
func judged(c *cobra.Command, result finding.Comparison) error {
	for _, l := range result.Limits {
		if l.Outcome != table.Passed {
			tellf(c, "pelt: %s", l.In(spoken()).Text())
		}
	}
	switch outcome := result.Outcome(); {
	case outcome == table.Failed:
		return exitCode(exitLimit)
	case outcome == table.NotMeasured, outcome == table.Undecided:
		return exitCode(exitInvalid)
	case result.TooFew():
		tellf(c, "pelt: nothing can be compared: each side needs three valid repeats")
		return exitCode(exitInvalid)
	}
	return nil
}
