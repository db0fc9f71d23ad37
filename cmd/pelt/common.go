package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/finding"
	"pelt/fleet"
	"pelt/internal/outfile"
	"pelt/live"
	fullscreen "pelt/live/screen"
	"pelt/model"
	"pelt/plan"
	"pelt/render"
	"pelt/render/draw"
	"pelt/run"
	"pelt/store"
	"pelt/table"
	"pelt/unit"
	"pelt/view"
)

type commonFlags struct {
	output        outputFlags
	hub           hubFlags // and the code, also of other hosts than a hub
	record, lines string
	yes, printOut bool
	noStore       bool
	web, live     bool
	uncalibrated  bool
	progress      time.Duration
	notes         []string // to print once the run begins
}

func (f *commonFlags) register(s *pflag.FlagSet) {
	f.output.register(s)
	s.StringVar(&f.record, "record", "", "write each packet of a UDP receiver to `FILE`")
	s.StringVar(&f.lines, "json-lines", "", "write each event of the run as a line of JSON to `FILE`, or -")
	f.hub.register(s)
	s.StringVar(&f.hub.code, "code", "", "`CODE` that pelt serve or hub printed; of several hosts NEAR,FAR,ROUTER (or $PELT_CODE)")
	s.StringVar(&f.hub.codeFile, "code-file", "", "read the code from `FILE`")
	s.BoolVar(&f.yes, "yes", false, "do not ask before a test of a public address, or of hours in many trials")
	s.BoolVar(&f.printOut, "print-plan", false, "print the plan as YAML, send nothing")
	s.BoolVar(&f.uncalibrated, "no-calibration", false, "lab: do not measure emulated links first")
	s.BoolVar(&f.live, "live", false, "show the test as a full screen in the terminal; q leaves it, s stops the test")
	s.DurationVar(&f.progress, "progress", 0, "`TIME` between lines of progress (default: one live line; without terminal none)")
	s.BoolVar(&f.noStore, "no-store", false, "do not keep this run")
	s.BoolVar(&f.web, "web", false, "show the test in a browser, too: prints an address of this host, which lasts as long as the test")
}

// codeOf is the code that a user gave, kept out of help texts and of every file; "" if none.
func codeOf(code, file string) (string, error) {
	switch {
	case code != "" && file != "":
		return "", usagef("--code-file: give it or --code, not both")
	case code != "":
		return code, nil
	case file == "":
		return os.Getenv("PELT_CODE"), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("--code-file: %v", err)
	}
	if code = strings.TrimSpace(string(b)); code == "" || strings.Contains(code, "\n") {
		return "", usagef("--code-file: %s: want one line with a code", file)
	}
	return code, nil
}

// toldCode is the code in front of a command that this program prints. Arguments of a command are seen by all users of
// its host, its variables are not. Where lines go to a file or a journal, a code that stands in a file is not repeated.
func toldCode(code, file string) (prefix, note string) {
	if file != "" && !isTerminal(os.Stdout) {
		return "", "It asks for the code, which stands in " + file + ".\n"
	}
	return "PELT_CODE=" + finding.ShellWord(code) + " ", ""
}

// seenCode warns of a code in the arguments of a command that goes on for long.
func seenCode(c *cobra.Command, inArguments bool) {
	if inArguments {
		fmt.Fprintln(c.ErrOrStderr(), "pelt: other users of this host can read --code; --code-file and $PELT_CODE hide it")
	}
}

// askCode asks for a code that nobody gave, if somebody is there. The answer is not shown.
func askCode(ctx context.Context) (string, error) {
	if !isTerminal(os.Stdin) || !isTerminal(os.Stderr) {
		return "", nil
	}
	fmt.Fprint(os.Stderr, "Code (it was printed there): ")
	defer fmt.Fprintln(os.Stderr)
	text, err := fullscreen.ReadHidden(ctx, os.Stdin)
	return strings.TrimSpace(text), err
}

// execute runs a plan as one command: checks first, then traffic, then reports.
func (f *commonFlags) execute(c *cobra.Command, p model.Plan) error {
	if f.printOut {
		return printPlan(c, p)
	}
	if err := p.Check(); err != nil {
		return err
	}
	if err := run.CheckLinks(p); err != nil {
		return err
	}
	if err := f.checkFiles(); err != nil {
		return err
	}
	if text := long(p); text != "" && isTerminal(os.Stdin) { // a script has asked for it, and is told at the start
		if err := agreed(c, f.yes, "This takes "+text); err != nil {
			return err
		}
	}
	return f.carryOut(c, p, nil, func(o run.Options) (model.Document, error) { return run.Execute(c.Context(), p, o) })
}

// carryOut runs a plan that the user agrees to, keeps it, in a new store if there is none yet, and reports.
func (f *commonFlags) carryOut(c *cobra.Command, p model.Plan, st *store.Store,
	execute func(run.Options) (model.Document, error)) error {
	if f.live && f.web {
		return usagef("--web: the full screen of --live leaves no place for its address; give one of them")
	}
	if err := f.consents(c, p); err != nil {
		return err
	}
	var err error
	if f.hub.code, err = f.code(c.Context(), p.Target); err != nil {
		return err
	}
	if f.web && needsUserNamespace(p.Target) {
		return usagef("--web: without root this lab has a network that no browser reaches; start the test from pelt web")
	}
	if done, err := viaUserNamespace(p.Target, c.ErrOrStderr()); done {
		return err
	}
	stop := stoppable(c)
	defer stop()
	s := f.newScreen(c, stop)
	s.Before = append(s.Before, f.notes...)
	if err := s.writeLines(c, f.lines); err != nil {
		return errors.Join(err, s.end(model.Document{}, err))
	}
	if st == nil {
		st = f.openStore(s)
	}
	defer f.serveWeb(c, s, stop)()
	doc, err := execute(f.options(s, st))
	err = errors.Join(err, s.end(doc, err))
	f.output.quiet = f.lines == "-"
	return f.output.finish(c, doc, err)
}

// code is what the hosts of a target want to hear.
func (f *commonFlags) code(ctx context.Context, target string) (string, error) {
	if strings.HasPrefix(target, model.FleetTarget) {
		return f.hub.settled(ctx)
	}
	code, err := codeOf(f.hub.code, f.hub.codeFile)
	if err == nil && code == "" && !strings.HasPrefix(target, "lab:") && !strings.Contains(target, "://") {
		code, err = askCode(ctx)
	}
	return code, err
}

// stoppable lets a function end a command as Ctrl-C does.
func stoppable(c *cobra.Command) (stop func()) {
	ctx, stop := context.WithCancel(c.Context())
	c.SetContext(ctx)
	return stop
}

func (f *commonFlags) options(s *screen, st *store.Store) run.Options {
	return run.Options{Version: version(), Arguments: keptArguments(os.Args[1:]), Code: f.hub.code, Hub: f.hub.Hub, Store: st,
		Uncalibrated: f.uncalibrated, Record: f.record, Events: s.Take, Live: s.full || f.web || f.lines != ""}
}

// secrets are flags whose values a run does not keep, and what stands in their place: a URL may have a password.
var secrets = map[string]string{"--code": "CODE", "--nats": "URLS"}

// keptArguments are those that a run stores: without secrets, and without where lines of its events went.
func keptArguments(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		word, secret := secrets[name]
		switch {
		case secret && joined:
			out = append(out, name+"="+word)
		case secret:
			out = append(out, name, word)
		case name != "--json-lines":
			out = append(out, args[i])
		}
		if !joined && (secret || name == "--json-lines") {
			i++ // its value
		}
	}
	return out
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
	if f.record == "-" {
		return usagef("--record: want a file: standard output takes results")
	}
	return f.output.check(output{flag: "record", path: f.record}, output{flag: "json-lines", path: f.lines})
}

func (f *commonFlags) openStore(s *screen) *store.Store {
	if f.noStore {
		return nil
	}
	st, err := store.Open("")
	if err != nil {
		s.Take(run.Event{Note: fmt.Sprintf("this run will not be kept: %v", err)})
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
	for _, host := range []string{p.Near, p.Target} {
		if host == "" {
			continue
		}
		if err := f.consent(c, host, family); err != nil {
			return err
		}
	}
	return nil
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
	if fleet.Private(addr) || benchmarking(addr) {
		return nil
	}
	return agreed(c, f.yes, said+" is a public address, and a test floods every network between; all must be yours")
}

// Whoever types a range or several lists may not see how many trials they make. So many, and so long, are asked for again.
const (
	manyTrials = 100
	longRun    = time.Hour
)

// long says how long a plan takes that its user may not have meant to take so long; "" for others.
func long(p model.Plan) string {
	text, seconds, trials := live.Estimate(p)
	if p.EverySeconds > 0 || trials <= manyTrials || seconds < longRun.Seconds() { // --for says how long
		return ""
	}
	return text
}

// agreed asks whether to go on; without a terminal it says how to agree.
func agreed(c *cobra.Command, yes bool, what string) error {
	if yes {
		return nil
	}
	if !isTerminal(os.Stdin) {
		return usagef("%s; if you agree, say --yes", what)
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s. Go on? [y/N] ", what)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // none is no
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return usagef("nothing was done")
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

type outputFlags struct {
	json, csv, html, chart string
	series                 string // of runs that are kept
	all                    bool   // the whole page in the terminal
	quiet                  bool   // standard output has something else
}

func (o *outputFlags) register(s *pflag.FlagSet) {
	s.StringVar(&o.json, "json", "", "write all as one JSON document to `FILE`, or -")
	s.StringVar(&o.csv, "csv", "", "write figures as a table to `FILE`, or -")
	s.StringVar(&o.html, "html", "", "write the report as a page to `FILE`, or -")
	s.StringVar(&o.chart, "chart", "", "write the charts to `FILE`.png or .svg")
	s.BoolVar(&o.all, "all", false, "print the whole report, not 12 lines")
}

// content is what a command has to show. Each part is made when it is asked for.
type content struct {
	page   func() view.Page
	json   func(io.Writer) error
	csv    func(io.Writer) error
	series func(io.Writer) error
	more   string // the command that prints the whole page
}

func ofRun(doc model.Document) content {
	more := "--all shows the rest"
	if doc.ID != "" {
		more = "pelt report " + doc.ID + " --all"
	}
	return content{
		page:   func() view.Page { return view.Run(&doc) },
		json:   func(w io.Writer) error { return run.WriteDocument(w, doc) },
		csv:    func(w io.Writer) error { return render.CSV(w, view.Figures(&doc)) },
		series: func(w io.Writer) error { return render.Records(w, view.SeriesLines(&doc)) },
		more:   more,
	}
}

// errNothingToDraw says that no trial made a figure: what the run showed says why.
var errNothingToDraw = errors.New("--chart: there is nothing to draw")

// chartWidth is that of an image of charts, in points; a PNG has twice as many pixels.
const chartWidth = 960

func (o *outputFlags) writeChart(w io.Writer, p view.Page) error {
	sheet, ok := draw.Sheet(p, chartWidth)
	if !ok {
		return errNothingToDraw
	}
	if strings.HasSuffix(strings.ToLower(o.chart), ".svg") {
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
		{"html", o.html, func(w io.Writer, c content) error { return render.HTML(w, c.page()) }},
		{"series", o.series, func(w io.Writer, c content) error { return c.series(w) }},
		{"chart", o.chart, func(w io.Writer, c content) error { return o.writeChart(w, c.page()) }},
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

// printPage prints a page, all of it or its beginning, which names the command that prints more.
func printPage(c *cobra.Command, p view.Page, all bool, more string) error {
	width, _, color := terminal(os.Stdout)
	return render.Text(c.OutOrStdout(), p, render.Terminal{Width: width, Color: color, All: all, More: more})
}

// show prints the page unless standard output has another output, and writes all files.
func (o *outputFlags) show(c *cobra.Command, what content) error {
	var errs []error
	if !o.quiet && !slices.ContainsFunc(o.asked(), func(x output) bool { return x.path == "-" }) {
		errs = append(errs, printPage(c, what.page(), o.all, what.more))
	}
	for _, x := range o.asked() {
		err := writeTo(c, x.path, func(w io.Writer) error { return x.write(w, what) })
		switch {
		case err == nil && x.path == "-":
		case err == nil:
			fmt.Fprintf(c.ErrOrStderr(), "wrote %s\n", x.path)
		case errors.Is(err, errNothingToDraw):
			fmt.Fprintf(c.ErrOrStderr(), "pelt: %v\n", err)
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// finish reports whatever was measured, also after an error, and decides the exit code.
func (o *outputFlags) finish(c *cobra.Command, doc model.Document, err error) error {
	if len(doc.Results) == 0 {
		return err
	}
	err = errors.Join(err, o.show(c, ofRun(doc)))
	if doc.ID != "" {
		fmt.Fprintf(c.ErrOrStderr(), "kept as run %s: pelt report %s --html out.html\n", doc.ID, doc.ID)
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
	if invalid, trials := view.Failed(&doc); invalid > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "pelt: %d of %d trials are not valid; the report says why\n", invalid, trials)
		return exitCode(exitInvalid)
	}
	if most := doc.Plan.Limits.MaxLossRatio; most != nil {
		if broken := finding.TooLossy(table.Unsearched(table.Rows(finding.Joined(&doc))), *most); len(broken) > 0 {
			var texts []string
			for _, f := range broken {
				texts = append(texts, f.Text())
			}
			say(c.ErrOrStderr(), "pelt: limit failed: "+strings.Join(texts, "; "))
			return exitCode(exitLimit)
		}
	}
	return nil
}

func positive(text string) (time.Duration, error) {
	d, err := unit.ParseDuration(text)
	if err == nil && d == 0 {
		return 0, usagef("must be more than 0")
	}
	return d, err
}
