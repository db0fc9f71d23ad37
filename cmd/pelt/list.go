package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pelt/render/plain"
	"pelt/run"
	"pelt/store"
	"pelt/words"
)

func newList() *cobra.Command {
	var asJSON jsonFlag
	var since string
	var f run.Filter
	c := &cobra.Command{
		Use:     "list [TEXT...]",
		Short:   "List the runs that are kept",
		Long:    `list shows the stored runs, newest first; with TEXT, those whose line contains each TEXT.`,
		Example: "  pelt list --since 7d curve lab:router",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if f.Since, err = parseSince(since, time.Now()); err != nil {
				return err
			}
			f.Words, f.Language = args, spoken()
			all, err := kept()
			if err != nil {
				return err
			}
			runs := slices.DeleteFunc(slices.Clone(all), func(r store.Summary) bool { return !f.Matches(r) })
			var rows [][]string
			for i, r := range runs {
				if rows = append(rows, run.Columns(f.Language, r)); r.Headline != nil {
					said := *r.Headline
					said.Text, said.WordsZH = run.Headline(words.English, r), nil
					runs[i].Headline = &said
				}
			}
			return asJSON.print(c, runs, func(w io.Writer) error {
				switch {
				case len(all) == 0:
					tellf(c, "no run is kept yet; pelt demo makes one")
					return nil
				case len(runs) == 0:
					tellf(c, "no kept run matches, of %d", len(all))
					return nil
				}
				width, _, _ := terminal(os.Stdout)
				heads := []string{"RUN", "STARTED", "COMMAND", "TARGET", "TRIALS", "STATE", "NAME", "RESULT"}
				heads, rows = fitRuns(heads, rows, width)
				if i := slices.Index(heads, "STATE"); i >= 0 {
					for _, row := range rows {
						row[i] = spoken().Say(row[i])
					}
				}
				return printColumns(w, strings.Join(heads, "\t"), rows)
			})
		},
	}
	c.Flags().StringVar(&since, "since", "", "runs since `TIME`: 24h, 7d or 2026-11-21")
	asJSON.register(c.Flags())
	return c
}

// kept returns the runs of this user, newest first.
func kept() ([]store.Summary, error) {
	st, err := store.Open("")
	if err != nil {
		return nil, err
	}
	all, err := st.List()
	slices.Reverse(all)
	return all, err
}

// Columns of a list of runs: a result has so many at least, a target so many at most.
const (
	leastResult = 36
	mostTarget  = 24
)

// fitRuns leaves columns out where the result, the last one, would have too little room, and cuts it to its room. The
// beginning of a run's id says when it was started.
func fitRuns(heads []string, rows [][]string, width int) ([]string, [][]string) {
	all := append([][]string{slices.Clone(heads)}, rows...)
	leave := func(name string) {
		i := slices.Index(all[0], name)
		for k := range all {
			all[k] = slices.Delete(slices.Clone(all[k]), i, i+1)
		}
	}
	room := func() int {
		left, last := width, len(all[0])-1
		for i := range last {
			widest := plain.Width(spoken().Say(all[0][i]))
			for _, row := range all[1:] {
				widest = max(widest, plain.Width(row[i]))
			}
			left -= widest + 2
		}
		return left
	}
	for _, row := range all {
		if i := slices.Index(all[0], "TARGET"); len(row[i]) > mostTarget {
			row[i] = plain.Cut(row[i], mostTarget)
		}
	}
	if name := slices.Index(heads, "NAME"); !slices.ContainsFunc(rows,
		func(row []string) bool { return row[name] != "" }) {
		leave("NAME")
	}
	for _, name := range []string{"STARTED", "TRIALS", "STATE", "TARGET", "COMMAND"} {
		if room() >= leastResult {
			continue
		}
		if i, last := slices.Index(all[0], name), len(all[0])-1; name == "STATE" {
			for _, row := range all[1:] {
				if row[i] != store.Complete {
					row[last] = strings.Join(slices.DeleteFunc([]string{spoken().Say(row[i]), row[last]},
						func(text string) bool { return text == "" }), spoken().Say(". "))
				}
			}
		}
		leave(name)
	}
	last := len(all[0]) - 1
	for _, row := range all {
		row[last] = plain.Cut(row[last], max(room(), 1))
	}
	return all[0], all[1:]
}

// parseSince reads a time before now, as 90m or 7d, or a date of this host's calendar.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	ago, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		if n, err = strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if err != nil || ago < 0 {
		return time.Time{}, usagef("--since: want a time as 24h or 7d, or a date as 2026-11-21, not %q", text)
	}
	return now.Add(-ago), nil
}

func newRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "rm RUN...",
		Short: "Delete runs that are kept",
		Long: `rm deletes runs without asking: all, or none if one is missing or being written. RUN is an
id or its beginning, or last.`,
		Example: "  pelt rm 20261121-0741-k3f",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			st, err := store.Open("")
			if err != nil {
				return err
			}
			removed, err := st.Remove(args...)
			for _, id := range removed {
				fmt.Fprintln(c.OutOrStdout(), spoken().Sayf("removed %s", id))
			}
			return err
		},
	}
}
