package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/model"
	"pelt/report"
)

// tableFlags choose what a sweep's table shows.
type tableFlags struct {
	sort                string
	ascending, all, kib bool
}

func (t *tableFlags) register(f *pflag.FlagSet) {
	f.StringVar(&t.sort, "sort", "", "column that a sweep's table is sorted by: "+strings.Join(report.SweepColumns(), ", ")+" (default receive)")
	f.BoolVar(&t.ascending, "ascending", false, "the smallest first")
	f.BoolVar(&t.all, "all", false, "every combination in the table, not the first 32")
	f.BoolVar(&t.kib, "kib", false, "speeds as payload KiB/s")
}

// given names a flag that was given, "" if none was.
func (t *tableFlags) given(c *cobra.Command) string {
	for _, name := range []string{"sort", "ascending", "all", "kib"} {
		if c.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// options are the choice for a plan's table.
func (t *tableFlags) options(p model.Plan) (report.SweepOptions, error) {
	known := report.SweepColumns()
	for _, f := range p.Factors {
		known = append(known, f.Knob)
	}
	if t.sort != "" && !slices.Contains(known, t.sort) {
		return report.SweepOptions{}, usagef("--sort: no column %q; want one of %s", t.sort, strings.Join(known, ", "))
	}
	o := report.SweepOptions{Sort: t.sort, Ascending: t.ascending, All: t.all}
	if t.kib {
		o.Unit = report.KiBPerSecond
	}
	return o, nil
}
