package main

import (
	"github.com/spf13/pflag"

	"pelt/model"
	"pelt/view"
)

// sortFlags choose the order of a page's tables.
type sortFlags struct {
	by        string
	ascending bool
}

func (f *sortFlags) register(s *pflag.FlagSet) {
	s.StringVar(&f.by, "sort", "", "sort the table by `FIGURE`: goodput, loss, delay or a column of --csv")
	s.BoolVar(&f.ascending, "ascending", false, "the smallest first")
}

// page makes the page of a run, sorted.
func (f *sortFlags) page(doc *model.Document) (func() view.Page, error) {
	page := view.Run(doc)
	if f.by != "" {
		var err error
		if page, err = view.Sorted(doc, f.by, f.ascending); err != nil {
			return nil, usagef("--sort: %v", err)
		}
	}
	return func() view.Page { return page }, nil
}
