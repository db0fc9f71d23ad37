package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/finding"
	"pelt/internal/outfile"
	"pelt/model"
	"pelt/render"
	"pelt/render/draw"
	"pelt/run"
	"pelt/table"
	"pelt/view"
	"pelt/words"
)

type outputFlags struct {
	json, csv, html, chart, prom string
	series                       string // of runs that are kept
	all                          bool   // the whole page in the terminal
	quiet                        bool   // standard output has something else
}

func (o *outputFlags) register(s *pflag.FlagSet) {
	s.StringVar(&o.json, "json", "", "write all as one JSON document to `FILE`, or -")
	s.StringVar(&o.csv, "csv", "", "write figures as a table to `FILE`, or -")
	s.StringVar(&o.html, "html", "", "write the report as a page to `FILE`, or -")
	s.StringVar(&o.chart, "chart", "", "write the charts to `FILE`.png or .svg")
	s.BoolVar(&o.all, "all", false, "print the whole report, not 12 lines")
}

// registerRun adds the outputs that only runs have, too.
func (o *outputFlags) registerRun(s *pflag.FlagSet) {
	o.register(s)
	s.StringVar(&o.prom, "prom", "", "write figures for Prometheus (text format 0.0.4) to `FILE`, or -")
}

// content is what a command has to show. Each part is made when it is asked for.
type content struct {
	page   func(words.Language) view.Page
	json   func(io.Writer) error
	csv    func(io.Writer) error
	prom   func(io.Writer) error // of runs
	series func(io.Writer) error
	more   string // the command that prints the whole page
}

// in is a run whose page is to be in a language. What programs read is made of the run as it is, in English.
func in(l words.Language, doc model.Document) *model.Document {
	doc.Language = l
	return &doc
}

func ofRun(doc model.Document) content {
	more := allShows
	if doc.ID != "" {
		more = "pelt report " + finding.ShellWord(doc.ID) + " --all"
	}
	return content{
		page:   func(l words.Language) view.Page { return view.Run(in(l, doc)) },
		json:   func(w io.Writer) error { return run.WriteDocument(w, doc) },
		csv:    func(w io.Writer) error { return render.CSV(w, view.Figures(&doc)) },
		prom:   func(w io.Writer) error { return render.Prometheus(w, view.Gauges(&doc)) },
		series: func(w io.Writer) error { return render.Records(w, view.SeriesLines(&doc)) },
		more:   more,
	}
}

// errNothingToDraw says that no trial made a figure: what the run showed says why.
var errNothingToDraw = errors.New("--chart: there is nothing to draw")

// chartWidth is that of an image of charts, in points; a PNG has twice as many pixels.
const chartWidth = 960

// writeChart draws the charts. The fonts of a PNG have no Chinese characters, so its words are English.
func (o *outputFlags) writeChart(w io.Writer, page func(words.Language) view.Page) error {
	vector, l := strings.HasSuffix(strings.ToLower(o.chart), ".svg"), words.English
	if vector {
		l = spoken()
	}
	sheet, ok := draw.Sheet(page(l), chartWidth)
	if !ok {
		return errNothingToDraw
	}
	if vector {
		return render.SVG(w, sheet)
	}
	return render.PNG(w, sheet, 2)
}

type output struct {
	flag, path string
	write      func(io.Writer, content) error
}

func (o *outputFlags) asked() []output {
	list := []output{
		{"json", o.json, func(w io.Writer, c content) error { return c.json(w) }},
		{"csv", o.csv, func(w io.Writer, c content) error { return c.csv(w) }},
		{"html", o.html, func(w io.Writer, c content) error { return render.HTML(w, c.page(spoken())) }},
		{"series", o.series, func(w io.Writer, c content) error { return c.series(w) }},
		{"prom", o.prom, func(w io.Writer, c content) error { return c.prom(w) }},
		{"chart", o.chart, func(w io.Writer, c content) error { return o.writeChart(w, c.page) }},
	}
	return slices.DeleteFunc(list, func(x output) bool { return x.path == "" })
}

// check finds out before the test whether every asked file can be written.
func (o *outputFlags) check(others ...output) error {
	seen := map[string]string{}
	for _, x := range append(o.asked(), others...) {
		if x.path == "" {
			continue
		}
		if other, ok := seen[x.path]; ok {
			return usagef("--%s and --%s both write to %s", other, x.flag, x.path)
		}
		seen[x.path] = x.flag
		ending := strings.ToLower(filepath.Ext(x.path))
		if x.flag == "chart" && ending != ".png" && ending != ".svg" {
			return usagef("--chart: want a file that ends with .png or .svg, not %q", x.path)
		}
		if x.path == "-" {
			continue
		}
		if err := outfile.Check(x.path); err != nil {
			return fmt.Errorf("--%s: %w", x.flag, err)
		}
	}
	return nil
}

// printPage prints a page, all of it or its beginning, and names what has more.
func printPage(w io.Writer, p view.Page, all bool, more string) error {
	width, _, color := terminal(os.Stdout)
	return render.Text(w, p, render.Terminal{Width: width, Color: color, All: all, More: more})
}

// allShows is what has the rest where no command is known that prints it.
const allShows = "--all shows the rest"

// whole is what prints the whole page of a command about some runs. Other flags may say what the page is of.
func whole(c *cobra.Command, runs ...string) string {
	if c.Flags().NFlag() > 0 {
		return allShows
	}
	command := c.CommandPath()
	for _, ref := range runs {
		command += " " + finding.ShellWord(ref)
	}
	return command + " --all"
}

// more is what has the rest of a page of which a command prints all.
func (o *outputFlags) more(command string) string {
	if o.all {
		return "--html and --csv have all"
	}
	return command
}

// show prints the page unless standard output has another output, and writes all files.
func (o *outputFlags) show(c *cobra.Command, what content) error {
	var errs []error
	if !o.quiet && !slices.ContainsFunc(o.asked(), func(x output) bool { return x.path == "-" }) {
		errs = append(errs, printPage(c.OutOrStdout(), what.page(spoken()), o.all, o.more(what.more)))
	}
	for _, x := range o.asked() {
		err := writeTo(c, x.path, func(w io.Writer) error { return x.write(w, what) })
		switch {
		case err == nil && x.path == "-":
		case err == nil:
			tellf(c, "wrote %s", x.path)
		case errors.Is(err, errNothingToDraw):
			tellf(c, "pelt: %s", spoken().Error(err))
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// finish reports whatever was measured, also after an error, and decides the exit code.
func (o *outputFlags) finish(c *cobra.Command, doc model.Document, err error) error {
	if len(doc.Results) == 0 {
		if o.prom != "" && err != nil && !errors.Is(err, context.Canceled) && !isUsage(err) {
			err = errors.Join(err, writeTo(c, o.prom, ofRun(doc).prom)) // a dashboard sees that the test failed
		}
		return err
	}
	err = errors.Join(err, o.show(c, ofRun(doc)))
	if doc.ID != "" {
		tellf(c, "kept as run %s: pelt report %s --html out.html", doc.ID, doc.ID)
	}
	switch {
	case errors.Is(err, context.Canceled):
		for _, e := range besides(err) {
			_ = exitFor(e, c.ErrOrStderr()) // its code is not this command's
		}
		tellf(c, "pelt: interrupted; what was measured is above")
		if doc.ID != "" {
			tellf(c, "go on with: pelt run --resume %s", doc.ID)
		}
		return exitCode(exitInterrupted)
	case err != nil:
		return err
	}
	return verdict(c, in(spoken(), doc))
}

// besides lists what went wrong in a run that was interrupted, too.
func besides(err error) (list []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && errors.Is(err, context.Canceled) {
		for _, e := range joined.Unwrap() {
			list = append(list, besides(e)...)
		}
		return list
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return []error{err}
}

// verdict tells why a run that went to its end did not pass, and returns its exit code.
func verdict(c *cobra.Command, doc *model.Document) error {
	code, why := judge(doc)
	if code == exitOK {
		return nil
	}
	say(c.ErrOrStderr(), why)
	return code
}

// judge returns the exit code of a run that went to its end, and the reason.
func judge(doc *model.Document) (code exitCode, why string) {
	rows, l := table.Rows(doc), doc.Language
	if finding.Blocked(rows) {
		text := "pelt: nothing came through; the report says why"
		if len(table.Usable(rows)) > 0 {
			text = "pelt: nothing came through in a part of the test; the report says why"
		}
		return exitLimit, l.Say(text)
	}
	if invalid, trials := finding.Failed(doc); invalid > 0 {
		return exitInvalid, l.Sayf("pelt: invalid trials: %d of %d; the report says why", invalid, trials)
	}
	if most := doc.Plan.MaxLossRatio; most != nil {
		if broken := finding.TooLossy(table.Unsearched(table.Rows(finding.Joined(doc))), *most); len(broken) > 0 {
			var texts []string
			for _, f := range broken {
				texts = append(texts, f.Text())
			}
			return exitLimit, l.Sayf("pelt: limit failed: %s", strings.Join(texts, l.Say("; ")))
		}
	}
	return exitOK, ""
}
