package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pelt/foreign"
	"pelt/model"
	"pelt/view"
)

// writeFlent writes a data file of flent for each trial that has one: of several the names of files are numbered.
func writeFlent(c *cobra.Command, path string, doc model.Document) error {
	tests := foreign.FlentTests(&doc)
	var trials []int
	for i, test := range tests {
		if test != "" {
			trials = append(trials, i)
		}
	}
	switch {
	case len(trials) == 0:
		return usagef("--flent: no valid trial fits a test of flent, which needs received rates or round " +
			"trips over time")
	case len(trials) > 1 && path == "-":
		return usagef("--flent: this run makes %d files: want a name, not -", len(trials))
	}
	for i, n := range trials {
		name := path
		if len(trials) > 1 {
			name = numbered(path, i+1)
		}
		err := writeTo(c, name, func(w io.Writer) error {
			title := view.TrialTitle(&doc, n)
			if !strings.HasSuffix(name, ".gz") {
				return foreign.WriteFlent(w, &doc, &doc.Results[n], title)
			}
			packed := gzip.NewWriter(w)
			if err := foreign.WriteFlent(packed, &doc, &doc.Results[n], title); err != nil {
				return err
			}
			return packed.Close()
		})
		if err != nil {
			return err
		}
		if name != "-" {
			tellf(c, "wrote %s", name)
		}
	}
	return nil
}

// numbered puts a number before the endings of a file's name: soak-2.flent.gz.
func numbered(path string, n int) string {
	stem, packed := strings.CutSuffix(path, ".gz")
	ending := filepath.Ext(stem)
	name := fmt.Sprintf("%s-%d%s", strings.TrimSuffix(stem, ending), n, ending)
	if packed {
		name += ".gz"
	}
	return name
}
