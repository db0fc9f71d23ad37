package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"pelt/finding"
	"pelt/model"
	"pelt/plan"
	"pelt/render"
	"pelt/run"
	"pelt/store"
	"pelt/view"
	"pelt/words"
)

func newRun() *cobra.Command {
	var common commonFlags
	var resume string
	c := &cobra.Command{
		Use:   "run [PLAN.yaml]",
		Short: "Run a plan from a file, or go on with a run that was cut",
		Long: `run carries out a plan in YAML, as --print-plan prints it. --resume goes on with a run that
was cut; finished trials are kept.`,
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
	c.Flags().StringVar(&resume, "resume", "", "go on with this `RUN`: an id or its beginning, or last")
	return c
}

func readPlan(path string, stdin io.Reader) (model.Plan, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return model.Plan{}, usageError{err}
		}
		defer f.Close()
		stdin = f
	}
	text, err := io.ReadAll(io.LimitReader(stdin, plan.MaxBytes+1))
	if err != nil {
		return model.Plan{}, usageError{err}
	}
	p, err := plan.Parse(text, path)
	if err != nil {
		return model.Plan{}, usageError{err}
	}
	return p, nil
}

func resumeRun(c *cobra.Command, ref string, f *commonFlags) error {
	if f.again != (everyFlags{}) {
		return usagef("--every: is for new runs; leave --resume out")
	}
	if f.noStore {
		return usagef("--no-store: a resumed run is kept already")
	}
	if err := f.checkFiles(); err != nil {
		return err
	}
	st, err := store.Open("")
	if err != nil {
		return err
	}
	id, err := st.Find(ref)
	if err != nil {
		return err
	}
	doc, err := st.Load(id)
	if err != nil {
		return err
	}
	if f.printOut {
		return printPlan(c, doc.Plan)
	}
	return f.carryOut(c, doc.Plan, st, func(o run.Options) (model.Document,
		error) {
		return run.Resume(c.Context(), id, o)
	})
}

func loadRun(ref string) (model.Document, error) {
	st, err := store.Open("")
	if err != nil {
		return model.Document{}, err
	}
	return run.Load(st, ref)
}

func newReport() *cobra.Command {
	var out outputFlags
	var by, since, flent string
	c := &cobra.Command{
		Use:   "report [RUN]",
		Short: "Show a run again, in the terminal or as HTML, chart, JSON or CSV",
		Long: `report shows a stored run, and writes files of it.

RUN is an id or its beginning, last (default), or a file, also of iperf3 -J or flent. With
--since the report is of RUN and the runs of the same plan before it, as --every makes them,
and tells what changed.`,
		Example: `  pelt report last --all
  pelt report last --html out.html --chart out.png --series seconds.csv
  pelt report last --since 7d --html week.html`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(output{flag: "flent", path: flent}); err != nil {
				return err
			}
			doc, err := loadRun(runArg(args))
			if err != nil {
				return err
			}
			what := ofRun(doc)
			if since != "" {
				if doc.Tool.Name != "" {
					return usagef("--since: is for kept runs, not for a file of %s", doc.Tool.Name)
				}
				if what, err = ofRuns(doc, since); err != nil {
					return err
				}
				if by != "" || out.json+out.prom+out.series+flent != "" {
					return usagef("--since: of several runs there are --html, --chart and --csv")
				}
			}
			if by != "" {
				if _, err := view.Sorted(&doc, by); err != nil {
					return usagef("--sort: %v", err)
				}
				what.page = func(l words.Language) view.Page {
					page, _ := view.Sorted(in(l, doc), by) // as above
					return page
				}
			}
			if flent != "" {
				out.quiet = flent == "-"
				if err := writeFlent(c, flent, doc); err != nil {
					return err
				}
			}
			return out.show(c, what)
		},
	}
	out.registerRun(c.Flags())
	c.Flags().StringVar(&flent, "flent", "", "write a data file of flent to `FILE`, or -; packed if it ends with .gz")
	c.Flags().StringVar(&out.series, "series", "", "write a row a second of each trial to `FILE`, or -")
	c.Flags().StringVar(&since, "since", "", "with the runs of the same plan since `TIME`: 24h, 7d or 2026-11-21")
	c.Flags().StringVar(&by, "sort", "",
		"sort the table by `FIGURE`, the largest first: goodput, loss, delay or a column of --csv")
	return c
}

// ofRuns shows a run and the kept ones of its plan since a time.
func ofRuns(newest model.Document, since string) (content, error) {
	from, err := parseSince(since, time.Now())
	if err != nil {
		return content{}, err
	}
	st, err := store.Open("")
	if err != nil {
		return content{}, err
	}
	if newest.Started.Before(from) {
		return content{}, usagef("--since: no run of this plan is kept since %s", since)
	}
	runs, err := run.History(st, newest, from)
	if err != nil {
		return content{}, err
	}
	runs = append(runs, run.Slim(newest))
	return content{
		page: func(l words.Language) view.Page {
			for _, d := range runs {
				d.Language = l
			}
			return view.Runs(runs)
		},
		csv:  func(w io.Writer) error { return render.CSV(w, view.Figures(finding.JoinRuns(runs))) },
		more: fmt.Sprintf("pelt report %s --since '%s' --all", newest.ID, since),
	}, nil
}

// runArg is the run that a command is about: the last one unless it says another.
func runArg(args []string) string {
	if len(args) == 0 {
		return "last"
	}
	return args[0]
}
