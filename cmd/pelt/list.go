package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pelt/run"
	"pelt/store"
)

func newList() *cobra.Command {
	var asJSON jsonFlag
	var since string
	var f run.Filter
	c := &cobra.Command{
		Use:     "list [TEXT...]",
		Short:   "List the runs that are kept",
		Long:    `list shows the stored runs that have each TEXT anywhere in their line, oldest first.`,
		Example: "  pelt list --since 7d curve lab:router",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if f.Since, err = parseSince(since, time.Now()); err != nil {
				return err
			}
			f.Words = args
			st, err := store.Open("")
			if err != nil {
				return err
			}
			all, err := st.List()
			if err != nil {
				return err
			}
			runs := slices.DeleteFunc(slices.Clone(all), func(r store.Summary) bool { return !f.Matches(r) })
			var rows [][]string
			for i, r := range runs {
				if rows = append(rows, run.Columns(r)); r.Headline != nil {
					runs[i].Headline.Text = run.Headline(r)
				}
			}
			return asJSON.print(c, runs, func(w io.Writer) error {
				switch {
				case len(all) == 0:
					fmt.Fprintln(c.ErrOrStderr(), "no run is kept yet; pelt demo makes one")
					return nil
				case len(runs) == 0:
					fmt.Fprintf(c.ErrOrStderr(), "none of the %d runs that are kept matches\n", len(all))
					return nil
				}
				const called = 6
				heads := []string{"RUN", "STARTED", "COMMAND", "TARGET", "TRIALS", "STATE", "NAME", "RESULT"}
				if !slices.ContainsFunc(rows, func(row []string) bool { return row[called] != "" }) {
					heads = slices.Delete(heads, called, called+1)
					for i := range rows {
						rows[i] = slices.Delete(rows[i], called, called+1)
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
				fmt.Fprintln(c.OutOrStdout(), "removed "+id)
			}
			return err
		},
	}
}
