package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/analysis"
	"pelt/fleet"
	"pelt/internal/outfile"
	"pelt/model"
	"pelt/plan"
	"pelt/report"
	"pelt/report/chart"
	"pelt/run"
	"pelt/store"
)

// commonFlags are what every test command takes.
type commonFlags struct {
	output        outputFlags
	link, nodes   []string
	seed          uint64
	engine, code  string
	record        string
	yes, printOut bool
	noStore       bool
	uncalibrated  bool
}

func (f *commonFlags) register(s *pflag.FlagSet) {
	f.output.register(s)
	s.StringArrayVar(&f.link, "link", nil, "lab: what every link does, as rate=1gbit,queue=100,delay=20ms,loss=1%; --link-NODE for one node's link")
	s.StringArrayVar(&f.nodes, "node-link", nil, "")
	_ = s.MarkHidden("node-link")
	s.Uint64Var(&f.seed, "seed", 1, "of everything random: the order of trials")
	s.StringVar(&f.engine, "engine", "auto", "auto, udp, xdp, or SENDER:RECEIVER as in xdp:udp")
	s.StringVar(&f.record, "record", "", "take down every packet that a UDP receiver sees in FILE, for pelt record")
	s.StringVar(&f.code, "code", "", "the code that pelt serve printed; of several in the order NEAR,FAR,ROUTER, as tiger-42-amber,otter-17-blue (or environment PELT_CODE)")
	s.BoolVar(&f.yes, "yes", false, "do not ask before sending to a public address")
	s.BoolVar(&f.printOut, "print-plan", false, "print the plan as YAML and send nothing")
	s.BoolVar(&f.uncalibrated, "no-calibration", false, "lab: do not measure emulated links before the test")
	s.BoolVar(&f.noStore, "no-store", false, "do not keep this run for pelt list and show")
}

func (f *commonFlags) apply(o *plan.CurveOptions) {
	o.Seed, o.Engine = f.seed, f.engine
}

// secret is the code of the far host, kept out of the help text and of every file.
func (f *commonFlags) secret() string {
	if f.code != "" {
		return f.code
	}
	return os.Getenv("PELT_CODE")
}

func (f *commonFlags) links() ([]model.Link, error) { return parseLinks(f.link, f.nodes) }

// execute runs a plan as one command: checks first, then traffic, then reports.
func (f *commonFlags) execute(c *cobra.Command, p model.Plan) error {
	if f.printOut {
		return printPlan(c, p)
	}
	if err := p.Check(); err != nil {
		return err
	}
	if err := f.checkFiles(); err != nil {
		return err
	}
	if err := f.consents(c, p); err != nil {
		return err
	}
	if code, done, err := viaUserNamespace(p.Target, c.ErrOrStderr()); done {
		return ended(code, err)
	}
	s := newScreen(c.ErrOrStderr())
	doc, err := run.Execute(c.Context(), p, run.Options{Version: version(), Code: f.secret(), Store: f.openStore(s), Uncalibrated: f.uncalibrated, Record: f.record, Events: s.event})
	s.done()
	return f.output.finish(c, doc, err)
}

func printPlan(c *cobra.Command, p model.Plan) error {
	text, err := plan.Print(p)
	if err != nil {
		return err
	}
	_, err = c.OutOrStdout().Write(text)
	return err
}

// checkFiles finds out before the test whether every asked file can be written.
func (f *commonFlags) checkFiles() error {
	if err := f.output.check(); err != nil || f.record == "" {
		return err
	}
	if f.record == "-" {
		return usagef("--record: want a file: standard output takes results")
	}
	for _, x := range f.output.all() {
		if x.path == f.record {
			return usagef("--%s and --record both write to %s", x.flag, x.path)
		}
	}
	if err := outfile.Check(f.record); err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	return nil
}

func (f *commonFlags) openStore(s *screen) *store.Store {
	if f.noStore {
		return nil
	}
	st, err := store.Open("")
	if err != nil {
		s.event(run.Event{Note: fmt.Sprintf("this run will not be kept: %v", err)})
		return nil
	}
	return st
}

// consents asks for both ends that are other hosts.
func (f *commonFlags) consents(c *cobra.Command, p model.Plan) error {
	family := 0
	if len(p.Flows) > 0 {
		family = p.Flows[0].Family
	}
	if p.Near != "" {
		if err := f.consent(c, p.Near, family); err != nil {
			return err
		}
	}
	return f.consent(c, p.Target, family)
}

// resolve is what a run asks, too.
var resolve = fleet.Resolve

// consent asks before traffic goes to an address that is not a private one:
// RFC 6815 keeps such tests to isolated networks.
func (f *commonFlags) consent(c *cobra.Command, target string, family int) error {
	if strings.HasPrefix(target, "lab:") || strings.HasPrefix(target, "fleet:") {
		return nil
	}
	host, _, err := model.HostPort(target)
	if err != nil {
		return err
	}
	said := host
	addr, err := netip.ParseAddr(host)
	if err != nil {
		if addr, err = resolve(c.Context(), host, family); err != nil {
			return nil // the run says what is wrong with the name, and sends nothing
		}
		said = fmt.Sprintf("%s of %s", addr, host)
	}
	switch {
	case addr.IsMulticast(), addr.IsUnspecified(), addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return usagef("target: %s is not the address of one host", said)
	case addr.Is6() && addr.IsLinkLocalUnicast() && addr.Zone() == "":
		return usagef("target: %s is link-local, so say on which interface: %s%%eth0", addr, addr)
	}
	if f.yes || addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || benchmarking(addr) {
		return nil
	}
	if !isTerminal(os.Stdin) {
		return usagef("%s is a public address, and a test floods every network between; if all of them are yours to load, say --yes", said)
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s is a public address, and a test floods every network between. Are they all yours to load? [y/N] ", said)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return usagef("nothing was sent")
	}
	return nil
}

// benchmarking reports whether an address is set aside for tests: RFC 2544
// appendix C.2.2, RFC 5180 section 8, and RFC 6598 for carrier-side NAT.
func benchmarking(a netip.Addr) bool {
	for _, p := range []string{"198.18.0.0/15", "2001:2::/48", "100.64.0.0/10"} {
		if netip.MustParsePrefix(p).Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

// outputFlags say where results go.
type outputFlags struct {
	json, csv, html, chart string
	series                 string              // asked by pelt report alone
	table                  report.SweepOptions // of a sweep's text
}

func (o *outputFlags) register(s *pflag.FlagSet) {
	s.StringVar(&o.json, "json", "", "write the whole run as one JSON document to FILE, or - for standard output")
	s.StringVar(&o.csv, "csv", "", "write a row per flow of each trial to FILE, or -")
	s.StringVar(&o.html, "html", "", "write a report that is one file and works offline to FILE, or -")
	s.StringVar(&o.chart, "chart", "", "write a chart to FILE.png, FILE.jpeg or FILE.svg")
}

type output struct {
	flag, path string
	write      func(io.Writer, model.Document) error
}

func (o *outputFlags) all() []output {
	list := []output{
		{"json", o.json, report.JSON}, {"csv", o.csv, report.CSV}, {"html", o.html, report.HTML}, {"series", o.series, report.SeriesCSV},
		{"chart", o.chart, func(w io.Writer, d model.Document) error {
			format, err := chart.Format(o.chart)
			if err != nil {
				return err
			}
			return chart.Write(w, d, format)
		}},
	}
	var set []output
	for _, x := range list {
		if x.path != "" {
			set = append(set, x)
		}
	}
	return set
}

// check finds out before the test whether every asked file can be written.
func (o *outputFlags) check() error {
	seen := map[string]string{}
	for _, x := range o.all() {
		if other, ok := seen[x.path]; ok {
			return usagef("--%s and --%s both write to %s", other, x.flag, x.path)
		}
		seen[x.path] = x.flag
		if x.flag == "chart" {
			if _, err := chart.Format(x.path); err != nil {
				return usagef("--chart: %v", err)
			}
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

func (o *outputFlags) toStdout() bool {
	return o.json == "-" || o.csv == "-" || o.html == "-" || o.series == "-"
}

// write makes all asked outputs, and says on stderr which files there are now.
func (o *outputFlags) write(c *cobra.Command, doc model.Document) error {
	var errs []error
	for _, x := range o.all() {
		if x.path == "-" {
			errs = append(errs, x.write(c.OutOrStdout(), doc))
			continue
		}
		err := outfile.Write(x.path, func(w io.Writer) error { return x.write(w, doc) })
		if err == nil {
			fmt.Fprintf(c.ErrOrStderr(), "wrote %s\n", x.path)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// finish reports whatever was measured, also after an error, and decides the exit code.
func (o *outputFlags) finish(c *cobra.Command, doc model.Document, err error) error {
	if len(doc.Results) == 0 {
		return err
	}
	if !o.toStdout() {
		width, colour := terminal(os.Stdout)
		if e := report.SweepText(c.OutOrStdout(), doc, width, colour, o.table); e != nil {
			err = errors.Join(err, e)
		}
	}
	err = errors.Join(err, o.write(c, doc))
	if doc.ID != "" {
		fmt.Fprintf(c.ErrOrStderr(), "kept as run %s: pelt show %s; pelt report %s --html out.html\n", doc.ID, doc.ID, doc.ID)
	}
	switch {
	case errors.Is(err, context.Canceled):
		for _, e := range besides(err) {
			_ = exitFor(e, c.ErrOrStderr()) // its code is not this command's
		}
		fmt.Fprintln(c.ErrOrStderr(), "pelt: interrupted; what was measured is above")
		if doc.ID != "" {
			fmt.Fprintf(c.ErrOrStderr(), "go on with: pelt run --resume %s\n", doc.ID)
		}
		return exitCode(exitInterrupted)
	case err != nil:
		return err
	}
	return verdict(c, doc)
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

// verdict is the exit code of a run that went to its end.
func verdict(c *cobra.Command, doc model.Document) error {
	if invalid, trials := doc.Failed(); invalid > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "pelt: not every trial is valid: %d of %d are not, and the report says why\n", invalid, trials)
		return exitCode(exitInvalid)
	}
	passed, broken := analysis.Passed(doc)
	if !passed {
		fmt.Fprintf(c.ErrOrStderr(), "pelt: limit failed: %s\n", strings.Join(broken, "; "))
		return exitCode(exitLimit)
	}
	return nil
}
