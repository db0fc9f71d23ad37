package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pelt/analysis"
	"pelt/model"
	"pelt/plan"
	"pelt/report"
	"pelt/run"
	"pelt/store"
)

func newRun() *cobra.Command {
	var common commonFlags
	var resume string
	c := &cobra.Command{
		Use:   "run [PLAN.yaml]",
		Short: "Run a plan from a file, or go on with a run that was cut",
		Long: `run carries out a plan in YAML, as any command prints it with --print-plan.
With --resume it goes on with a stored run where Ctrl-C, kill or a power cut
ended it; every trial that was finished is kept.`,
		Example: "  pelt curve lab:router --print-plan > plan.yaml\n  pelt run plan.yaml\n  pelt run --resume last",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case resume != "" && len(args) == 0:
				return resumeRun(c, resume, &common)
			case resume == "" && len(args) == 1:
				p, err := readPlan(args[0], c.InOrStdin())
				if err != nil {
					return err
				}
				return common.execute(c, p)
			}
			return usagef("give a plan file or --resume RUN")
		},
	}
	common.register(c.Flags())
	for _, fixed := range []string{"link", "seed", "engine"} {
		_ = c.Flags().MarkHidden(fixed)
	}
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		for _, fixed := range []string{"link", "node-link", "seed", "engine"} {
			if c.Flags().Changed(fixed) {
				return usagef("--%s is part of the plan: change it there", fixed)
			}
		}
		return nil
	}
	c.Flags().StringVar(&resume, "resume", "", "go on with this stored run: an id, a prefix of one, or last")
	return c
}

func readPlan(path string, stdin io.Reader) (model.Plan, error) {
	var text []byte
	var err error
	if path == "-" {
		text, err = io.ReadAll(io.LimitReader(stdin, plan.MaxBytes+1))
	} else {
		text, err = readLimited(path, plan.MaxBytes+1)
	}
	if err != nil {
		return model.Plan{}, err
	}
	p, err := plan.Parse(text, path)
	if err != nil {
		return model.Plan{}, usageError{err}
	}
	return p, nil
}

func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit))
	return b, errors.Join(err, f.Close())
}

func resumeRun(c *cobra.Command, ref string, f *commonFlags) error {
	if f.noStore {
		return usagef("--no-store: a run that is gone on with is kept already")
	}
	if err := f.checkFiles(); err != nil {
		return err
	}
	st, err := store.Open("")
	if err != nil {
		return err
	}
	doc, err := st.Load(ref)
	if err != nil {
		return err
	}
	if f.printOut {
		return printPlan(c, doc.Plan)
	}
	if err := f.consents(c, doc.Plan); err != nil {
		return err
	}
	if code, done, err := viaUserNamespace(doc.Plan.Target, c.ErrOrStderr()); done {
		return ended(code, err)
	}
	s := newScreen(c.ErrOrStderr())
	doc, err = run.Resume(c.Context(), ref, run.Options{Version: version(), Code: f.secret(), Store: st, Uncalibrated: f.uncalibrated, Record: f.record, Events: s.event})
	s.done()
	return f.output.finish(c, doc, err)
}

func newList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the runs that are kept",
		Example: "  pelt list",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			st, err := store.Open("")
			if err != nil {
				return err
			}
			runs, err := st.List()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), runs)
			}
			if len(runs) == 0 {
				fmt.Fprintln(c.ErrOrStderr(), "no run is kept yet; pelt demo makes one")
				return nil
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "RUN\tSTARTED\tCOMMAND\tTARGET\tTRIALS\tSTATE\tRESULT")
			for _, r := range runs {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", r.ID, r.Started.Local().Format("2006-01-02 15:04"), r.Command, r.Target, r.Trials, r.State, r.Headline)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func loadRun(ref string) (model.Document, error) {
	st, err := store.Open("")
	if err != nil {
		return model.Document{}, err
	}
	return run.Load(st, ref)
}

func newShow() *cobra.Command {
	var asJSON bool
	var against string
	var table tableFlags
	c := &cobra.Command{
		Use:     "show RUN",
		Short:   "Show a run again: an id, a prefix of one, last, or a run document's file",
		Example: "  pelt show last\n  pelt show last --sort loss --ascending --all\n  pelt show last --against theirs.csv",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			doc, err := loadRun(args[0])
			if err != nil {
				return err
			}
			options, err := table.options(doc.Plan)
			if flag := table.given(c); flag != "" && !report.IsSweep(doc) {
				err = usagef("--%s is for the table of a sweep; this run is a %s", flag, doc.Plan.Command)
			}
			if flag := table.given(c); err == nil && flag != "" && asJSON {
				err = usagef("--%s is for the table; --json has every trial as it was measured", flag)
			}
			if err == nil && c.Flags().Changed("against") {
				doc.Findings, err = beside(doc, against)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return report.JSON(c.OutOrStdout(), doc)
			}
			width, colour := terminal(os.Stdout)
			return report.SweepText(c.OutOrStdout(), doc, width, colour, options)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON, as --json of the run wrote it")
	c.Flags().StringVar(&against, "against", "", "of a sweep: compare the order of its settings with a table of another measurement, FILE.csv with columns payload_bytes (or size_bytes), goodput_bps (or recv_kib_s) and interval_ms")
	table.register(c.Flags())
	return c
}

// beside adds to a sweep's findings how its order compares with that of a table.
func beside(doc model.Document, path string) ([]model.Finding, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usagef("--against: %v", err)
	}
	defer f.Close()
	table, err := analysis.ReadTable(filepath.Base(path), f)
	if err != nil {
		return nil, usagef("--against: %v", err)
	}
	finding, ok := analysis.Against(doc, table)
	if !ok {
		return nil, usagef("--against is for a sweep; this run is a %s", doc.Plan.Command)
	}
	return append(slices.Clip(doc.Findings), finding), nil
}

func newReport() *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:     "report RUN",
		Short:   "Make files of a run: HTML, chart, JSON, CSV",
		Example: "  pelt report last --html out.html --chart out.png\n  pelt report last --series seconds.csv",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(out.all()) == 0 {
				return usagef("say what to make: --html FILE, --chart FILE.png, --json FILE, --csv FILE or --series FILE")
			}
			if err := out.check(); err != nil {
				return err
			}
			doc, err := loadRun(args[0])
			if err != nil {
				return err
			}
			return out.write(c, doc)
		},
	}
	out.register(c.Flags())
	c.Flags().StringVar(&out.series, "series", "", "write a row for each second of each trial, with a column per series, to FILE, or -")
	return c
}
