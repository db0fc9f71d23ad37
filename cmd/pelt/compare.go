package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"pelt/analysis/compare"
	"pelt/internal/outfile"
	"pelt/model"
	"pelt/report"
)

// compareFlags are what pelt compare takes.
type compareFlags struct {
	by, base, metric string
	failIf           []string
	json, csv, html  string
}

func newCompare() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare RUN [RUN...]",
		Short: "Say what differs between runs, or between variants in one, and what may be noise",
		Long: `compare tells what changed: before and after, or one variant against another. With
several runs the first is the baseline, and settings that stand in both are
compared. With one run the levels of its variants are compared, or of the knob that
--by names; the first is the baseline, or --base.

Nothing is called a difference that may be noise: among all comparisons made at once
the chance of any false alarm is at most 5 %. What cannot be told apart is listed with
how large a change could hide, and how many repeats would show 5 %. At least three
valid repeats of a setting are needed on both sides.

--fail-if METRIC < or > PERCENT makes the exit code 3 if a change that is beyond
doubt goes that far: of rates and delays relative to the baseline, of loss, cpu and
softirq in points. Metrics: goodput, pps, loss, delay_p50, delay_p99, cpu, softirq,
goodput_per_cpu.

RUN is an id, a prefix of one, last, or a run document's file.`,
		Example: "  pelt compare last\n  pelt compare before.json after.json --fail-if 'goodput < -5%' --html compare.html\n  pelt compare last --by control --metric goodput,delay",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			metrics, limits, err := f.parse(args)
			if err != nil {
				return err
			}
			if empty := emptyFlag(c); empty != "" {
				return usagef("--%s is empty; leave it out, or give it a value", empty)
			}
			if err := f.check(); err != nil {
				return err
			}
			result, err := f.compare(args, metrics)
			if err != nil {
				return compareError(c, err)
			}
			result.Tool = model.Tool{Version: version()}
			result.Limits = compare.Judge(result, limits)
			if err := f.write(c, result); err != nil {
				return err
			}
			return judged(c, result.Limits)
		},
	}
	s := c.Flags()
	s.StringVar(&f.by, "by", "", "of one run: compare the levels of this knob (default variant)")
	s.StringVar(&f.base, "base", "", "of one run: the level that the others are compared with (default the plan's first)")
	s.StringVar(&f.metric, "metric", compare.DefaultMetrics, "what to compare; fewer tell more, because all share the chance of a false alarm")
	s.StringArrayVar(&f.failIf, "fail-if", nil, "exit code 3 if this holds beyond doubt, as 'goodput < -5%' or 'loss > 1%'; may be given again")
	s.StringVar(&f.json, "json", "", "write the comparison as one JSON document to FILE, or - for standard output")
	s.StringVar(&f.csv, "csv", "", "write a row per setting and metric to FILE, or -")
	s.StringVar(&f.html, "html", "", "write a page with the sides beside each other to FILE, or -")
	return c
}

// parse reads the words of the flags; its errors are the user's to mend.
func (f *compareFlags) parse(args []string) (compare.Metrics, []compare.Limit, error) {
	metrics, err := compare.ParseMetrics(f.metric)
	if err != nil {
		return nil, nil, usagef("--metric: %v", err)
	}
	var limits []compare.Limit
	for _, text := range f.failIf {
		l, err := compare.ParseLimit(text)
		if err != nil {
			return nil, nil, usagef("--fail-if: %v", err)
		}
		if !l.Of(metrics) {
			return nil, nil, usagef("--fail-if: %q speaks of %s, which --metric %s leaves out", text, l.Word(), f.metric)
		}
		limits = append(limits, l)
	}
	if len(args) > 1 && (f.by != "" || f.base != "") {
		return nil, nil, usagef("--by and --base are for one run; of several, the first is what the others are compared with")
	}
	return metrics, limits, nil
}

func (f *compareFlags) outputs() []compareOutput {
	var set []compareOutput
	for _, x := range []compareOutput{{"json", f.json, report.CompareJSON}, {"csv", f.csv, report.CompareCSV}, {"html", f.html, report.CompareHTML}} {
		if x.path != "" {
			set = append(set, x)
		}
	}
	return set
}

type compareOutput struct {
	flag, path string
	write      func(io.Writer, model.Comparison) error
}

// check finds out before anything is read whether every asked file can be written.
func (f *compareFlags) check() error {
	seen := map[string]string{}
	for _, x := range f.outputs() {
		if other, ok := seen[x.path]; ok {
			return usagef("--%s and --%s both write to %s", other, x.flag, x.path)
		}
		seen[x.path] = x.flag
		if x.path == "-" {
			continue
		}
		if err := outfile.Check(x.path); err != nil {
			return fmt.Errorf("--%s: %w", x.flag, err)
		}
	}
	return nil
}

func (f *compareFlags) compare(args []string, metrics compare.Metrics) (model.Comparison, error) {
	var docs []model.Document
	for _, ref := range args {
		doc, err := loadRun(ref)
		if err != nil {
			return model.Comparison{}, err
		}
		docs = append(docs, doc)
	}
	if len(docs) > 1 {
		return compare.Runs(docs, metrics)
	}
	by := f.by
	if by == "" {
		if by = compare.Knob(docs[0]); by == "" {
			return model.Comparison{}, usagef("run %s has no variants to compare; give a second run, or --by KNOB: %s", docs[0].ID, compare.Varied(docs[0]))
		}
	}
	return compare.Levels(docs[0], by, f.base, metrics)
}

// compareError gives a refusal its exit code.
func compareError(c *cobra.Command, err error) error {
	var ask *compare.AskError
	var nothing *compare.NothingError
	switch {
	case errors.As(err, &ask):
		return usagef("%s", report.OneLine(err.Error()))
	case errors.As(err, &nothing):
		fmt.Fprintf(c.ErrOrStderr(), "pelt: %s\n", report.OneLine(err.Error()))
		return exitCode(exitInvalid)
	}
	return err
}

func (f *compareFlags) write(c *cobra.Command, result model.Comparison) error {
	var errs []error
	toStdout := false
	for _, x := range f.outputs() {
		toStdout = toStdout || x.path == "-"
	}
	if !toStdout {
		width, colour := terminal(os.Stdout)
		errs = append(errs, report.CompareText(c.OutOrStdout(), result, width, colour))
	}
	for _, x := range f.outputs() {
		if x.path == "-" {
			errs = append(errs, x.write(c.OutOrStdout(), result))
			continue
		}
		err := outfile.Write(x.path, func(w io.Writer) error { return x.write(w, result) })
		if err == nil {
			fmt.Fprintf(c.ErrOrStderr(), "wrote %s\n", x.path)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// judged is the exit code of the limits: a failed one is 3, one on what was not
// measured is 4, and one that cannot be told is said and passes.
func judged(c *cobra.Command, limits []model.JudgedLimit) error {
	code := exitOK
	for _, l := range limits {
		text := report.OneLine(l.Text)
		switch l.State {
		case model.LimitFailed:
			fmt.Fprintf(c.ErrOrStderr(), "pelt: %s: %s\n", l.Limit, text)
			code = exitLimit
		case model.LimitUntold:
			fmt.Fprintf(c.ErrOrStderr(), "pelt: %s cannot be told: %s\n", l.Limit, text)
		case model.LimitMissing:
			fmt.Fprintf(c.ErrOrStderr(), "pelt: %s cannot be judged: %s\n", l.Limit, text)
			if code == exitOK {
				code = exitInvalid
			}
		}
	}
	if code == exitOK {
		return nil
	}
	return exitCode(code)
}
