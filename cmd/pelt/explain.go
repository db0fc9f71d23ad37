package main

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pelt/finding"
	"pelt/model"
	"pelt/render"
	"pelt/run"
	"pelt/view"
	"pelt/words"
)

func newExplain() *cobra.Command {
	var ask finding.Ask
	var cells []string
	var out outputFlags
	c := &cobra.Command{
		Use:   "explain [RUN]",
		Short: "Say where each lost packet of a run ended, and what to change",
		Long: `explain shows where the packets of each setting were lost, and why. --all shows every loss
of the worst trials: evidence, checks, how hosts were watched, and what to change.

RUN is an id or its beginning, last (default), or a file.`,
		Example: "  pelt explain last --cell payload=64 --html ledger.html",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case ask.Trial != 0 && (len(cells) > 0 || ask.All):
				return usagef("give --trial, or --cell and --every-trial, not both")
			case c.Flags().Changed("trial") && ask.Trial < 1:
				return usagef("--trial: want a number from 1 on, not %d", ask.Trial)
			}
			if err := out.check(); err != nil {
				return err
			}
			doc, err := loadRun(runArg(args))
			if err != nil {
				return err
			}
			if ask.Cell, err = parseCells(doc, cells); err != nil {
				return err
			}
			trials, err := ask.Trials(&doc)
			if err != nil {
				return refused(c, err)
			}
			return out.show(c, content{
				page: func(l words.Language) view.Page { return view.Explain(in(l, doc), ask, trials) },
				json: func(w io.Writer) error { return run.WriteDocument(w, doc) },
				csv:  func(w io.Writer) error { return render.CSV(w, view.LedgerFigures(&doc)) },
				more: whole(c, runArg(args)),
			})
		},
	}
	c.Flags().IntVar(&ask.Trial, "trial", 0, "only trial `N`")
	c.Flags().StringArrayVar(&cells, "cell", nil, "only trials with this `SETTING`: payload=64 (repeatable)")
	c.Flags().BoolVar(&ask.All, "every-trial", false, "every trial, not the worst of each setting")
	out.register(c.Flags())
	return c
}

// parseCells reads settings as "payload=64"; a knob may be called as its flag is.
func parseCells(doc model.Document, texts []string) (model.Cell, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	names := map[string]string{} // of knobs, by themselves and by flags
	flags := map[string]bool{}
	for _, r := range doc.Results {
		for k := range r.Cell {
			names[flagOf(k)], names[k], flags[flagOf(k)] = k, k, true
		}
	}
	cell := model.Cell{}
	var ones []string
	for _, text := range texts {
		for i, one := range strings.Split(text, ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(one), "=")
			if _, known := names[name]; i > 0 && !known { // of a level with commas, as on=10ms,off=5ms
				ones[len(ones)-1] += "," + one
				continue
			}
			ones = append(ones, one)
		}
	}
	for _, one := range ones {
		name, value, ok := strings.Cut(strings.TrimSpace(one), "=")
		if !ok || name == "" || value == "" {
			return nil, usagef("--cell: want SETTING=VALUE as payload=64, not %q", one)
		}
		knob, known := names[name]
		if !known {
			list := cmp.Or(strings.Join(slices.Sorted(maps.Keys(flags)), ", "), spoken().Say("one setting only"))
			return nil, usagef("--cell: this run has no setting %q; it has %s", name, list)
		}
		v, err := parseLevel(knob, value)
		if err != nil {
			return nil, usagef("--cell: %s: %v", name, err)
		}
		cell[knob] = v
	}
	return cell, nil
}

// flagOf is how a knob is called on a command line: payload for payload_bytes.
func flagOf(name string) string {
	k, _ := model.FindKnob(name)
	return cmp.Or(k.Flag, name)
}

// parseLevel reads a level as its flag does: 64, 150kpps, 5ms, up.
func parseLevel(knob, text string) (model.Value, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n-n == 0 { // finite
		return model.Number(n), nil
	}
	k, ok := model.FindKnob(knob)
	if !ok {
		return model.Word(text), nil
	}
	levels, err := k.Parse(text)
	switch {
	case err != nil:
		return model.Value{}, err
	case len(levels) != 1:
		return model.Value{}, errors.New("want one value")
	case knob == "rate_pps" && levels[0].Text != "" && text != "max":
		return model.Value{}, errors.New("want packets per second, as 150kpps")
	}
	return levels[0], nil
}
