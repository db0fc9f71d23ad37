package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pelt/internal/outfile"
	"pelt/model"
	"pelt/report"
	"pelt/unit"
)

func newExplain() *cobra.Command {
	var trial int
	var cells []string
	var all bool
	var asJSON, asHTML string
	c := &cobra.Command{
		Use:   "explain RUN",
		Short: "Say where each lost packet of a run ended, and what to change",
		Long: `explain shows the ledger of a run: what each setting lost, and then, for the worst
trial of each setting that lost anything, every line of loss in travel order with
its evidence (counters before and after), the identities between counters that
held or broke, how each host was observed, and what to change.

RUN is an id, a prefix of one, last, or a run document's file.`,
		Example: "  pelt explain last\n  pelt explain last --cell payload=64 --all\n  pelt explain last --html ledger.html",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			trialGiven := c.Flags().Changed("trial")
			if trialGiven && (len(cells) > 0 || all) {
				return usagef("give --trial, or --cell and --all, not both")
			}
			if trialGiven && trial < 1 {
				return usagef("--trial: want a number from 1 on, not %d", trial)
			}
			if empty := emptyFlag(c); empty != "" {
				return usagef("--%s: is empty; want a file, or - for standard output", empty)
			}
			if asJSON == "-" && asHTML == "-" || asJSON != "" && asJSON == asHTML {
				return usagef("--json and --html both write to %s", asJSON)
			}
			for flag, path := range map[string]string{"json": asJSON, "html": asHTML} {
				if path == "" || path == "-" {
					continue
				}
				if err := outfile.Check(path); err != nil {
					return fmt.Errorf("--%s: %w", flag, err)
				}
			}
			doc, err := loadRun(args[0])
			if err != nil {
				return err
			}
			ask := report.Ask{Trial: trial, All: all}
			if ask.Cell, err = parseCells(doc, cells); err != nil {
				return err
			}
			return askUsage(explain(c, doc, ask, asJSON, asHTML))
		},
	}
	c.Flags().IntVar(&trial, "trial", 0, "only this trial, by its number in the run, whatever it lost")
	c.Flags().StringArrayVar(&cells, "cell", nil, "only trials with this setting, as payload=64 or direction=up; may be given again")
	c.Flags().BoolVar(&all, "all", false, "every trial, not the worst of each setting")
	c.Flags().StringVar(&asJSON, "json", "", "write the account as one JSON document to FILE, or - for standard output")
	c.Flags().StringVar(&asHTML, "html", "", "write a page with a picture of the path and the ledgers to FILE, or -")
	return c
}

// explain writes what was asked for; the text only where standard output is not taken.
func explain(c *cobra.Command, doc model.Document, ask report.Ask, asJSON, asHTML string) error {
	if asJSON != "-" && asHTML != "-" {
		width, colour := terminal(os.Stdout)
		if err := report.Explain(c.OutOrStdout(), doc, ask, width, colour); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		path  string
		write func(io.Writer, model.Document, report.Ask) error
	}{{asJSON, report.ExplainJSON}, {asHTML, report.ExplainHTML}} {
		switch x.path {
		case "":
		case "-":
			if err := x.write(c.OutOrStdout(), doc, ask); err != nil {
				return err
			}
		default:
			if err := outfile.Write(x.path, func(w io.Writer) error { return x.write(w, doc, ask) }); err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "wrote %s\n", x.path)
		}
	}
	return nil
}

// askUsage makes a usage error of a wish that the run cannot fill.
func askUsage(err error) error {
	var ask *report.AskError
	if errors.As(err, &ask) {
		return usageError{err}
	}
	return err
}

// parseCells reads settings as "payload=64"; a knob may be called as its flag is.
func parseCells(doc model.Document, texts []string) (model.Cell, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	var known []string
	for _, r := range doc.Results {
		for k := range r.Cell {
			if !slices.Contains(known, k) {
				known = append(known, k)
			}
		}
	}
	slices.Sort(known)
	cell := model.Cell{}
	for _, text := range texts {
		for _, one := range strings.Split(text, ",") {
			name, value, ok := strings.Cut(strings.TrimSpace(one), "=")
			if !ok || name == "" || value == "" {
				return nil, usagef("--cell: want KNOB=VALUE as payload=64, not %q", one)
			}
			at := slices.IndexFunc(known, func(k string) bool { return k == name || flagOf(k) == name })
			if at < 0 {
				return nil, usagef("--cell: this run has no setting %q; it has %s", name, strings.Join(flagsOf(known), ", "))
			}
			v, err := parseLevel(known[at], value)
			if err != nil {
				return nil, usagef("--cell: %s: %v", name, err)
			}
			cell[known[at]] = v
		}
	}
	return cell, nil
}

// flagOf is how a knob is called on a command line: payload for payload_bytes.
func flagOf(knob string) string {
	for _, suffix := range []string{"_bytes", "_pps", "_ns", "_ratio"} {
		knob = strings.TrimSuffix(knob, suffix)
	}
	return knob
}

func flagsOf(knobs []string) []string {
	list := make([]string, len(knobs))
	for i, k := range knobs {
		list[i] = flagOf(k)
	}
	if len(list) == 0 {
		return []string{"one setting only"}
	}
	return list
}

// parseLevel reads a level as its flag does: 64, 150kpps, 5ms, up.
func parseLevel(knob, text string) (model.Value, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n-n == 0 { // finite
		return model.Number(n), nil
	}
	switch {
	case knob == "rate_pps" && text != "max":
		rate, err := unit.ParseRate(text)
		if err != nil || strings.Contains(strings.ToLower(text), "bit") {
			return model.Value{}, errors.Join(err, errors.New("want packets per second, as 150kpps"))
		}
		pps, _ := rate.PPS(1)
		return model.Number(pps), nil
	case knob == "interval_ns":
		d, err := unit.ParseDuration(text)
		return model.Number(float64(d)), err
	case strings.HasSuffix(knob, "_ratio"):
		r, err := unit.ParseRatio(text)
		return model.Number(r), err
	}
	return model.Word(text), nil
}
