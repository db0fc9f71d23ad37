package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/finding"
	fullscreen "pelt/live/screen"
	"pelt/model"
	"pelt/plan"
	"pelt/run"
	"pelt/store"
	"pelt/unit"
	"pelt/words"
)

type commonFlags struct {
	output        outputFlags
	hub           hubFlags // and the code, also of other hosts than a hub
	record, lines string
	yes, printOut bool
	noStore       bool
	web, live     bool
	brief         bool // no line of its own for each trial
	again         everyFlags
	told          map[string]bool // of a command with many runs: what lines told already
	progress      time.Duration
	notes         []string // to print once the run begins
}

func (f *commonFlags) register(s *pflag.FlagSet) {
	f.output.registerRun(s)
	f.again.register(s)
	s.StringVar(&f.record, "record", "", "write each packet of a UDP receiver to `FILE`")
	s.StringVar(&f.lines, "json-lines", "", "write each event of the run as a line of JSON to `FILE`, or -")
	f.hub.register(s, "`CODE` that pelt serve or hub printed (or $PELT_CODE); for several hosts: NEAR,FAR,ROUTER")
	s.BoolVar(&f.yes, "yes", false, "do not ask before a test of a public address, or of hours in many trials")
	s.BoolVar(&f.printOut, "print-plan", false, "print the plan as YAML, send nothing")
	s.BoolVar(&f.live, "live", false, "show the test as a full screen in the terminal; q leaves it, s stops the test")
	s.DurationVar(&f.progress, "progress", 0,
		"`TIME` between lines of progress (default: one live line; without terminal none)")
	s.BoolVar(&f.noStore, "no-store", false, "do not keep this run")
	s.BoolVar(&f.web, "web", false,
		"show the test in a browser, too: prints an address of this host, which lasts as long as the test")
}

// longestCode is the most that a file with a code may have, in bytes.
const longestCode = 4096

// codeFlags are a code, or the file that has it.
type codeFlags struct{ code, codeFile string }

func (f *codeFlags) register(s *pflag.FlagSet, help string) {
	s.StringVar(&f.code, "code", "", help)
	s.StringVar(&f.codeFile, "code-file", "", "read the code from `FILE`")
}

// read returns the code that a user gave, kept out of help texts and of every file; "" if none.
func (f codeFlags) read() (string, error) {
	switch {
	case f.code != "" && f.codeFile != "":
		return "", usagef("--code-file: give it or --code, not both")
	case f.code != "":
		return f.code, nil
	case f.codeFile == "":
		return os.Getenv("PELT_CODE"), nil
	}
	file, err := os.Open(f.codeFile)
	if err != nil {
		return "", usagef("--code-file: %v", err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, longestCode+1))
	if err != nil {
		return "", usagef("--code-file: %v", err)
	}
	code := strings.TrimSpace(string(b))
	if code == "" || len(b) > longestCode || strings.ContainsFunc(code, unicode.IsControl) {
		return "", usagef("--code-file: %s: want one line with a code", f.codeFile)
	}
	return code, nil
}

// toldCode is the code in front of a command that this program prints. Arguments of a command are seen by all users of
// its host, its variables are not. Where lines go to a file or a journal, a code that stands in a file is not repeated.
func toldCode(code, file string) (prefix, note string) {
	if file != "" && !isTerminal(os.Stdout) {
		return "", spoken().Sayf("pelt asks for the code, which is in %s.\n", file)
	}
	return "PELT_CODE=" + finding.ShellWord(code) + " ", ""
}

// seenCode warns of a code in the arguments of a command that goes on for long.
func seenCode(c *cobra.Command, inArguments bool) {
	if inArguments {
		tellf(c, "pelt: other users of this host can read --code; --code-file and $PELT_CODE hide it")
	}
}

// askCode asks for a code that nobody gave, if somebody is there. The answer is not shown.
func askCode(ctx context.Context) (string, error) {
	if !canAsk() {
		return "", nil
	}
	fmt.Fprint(os.Stderr, spoken().Say("Code (it was printed there): "))
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
	if text := long(p); text != "" && canAsk() { // a script has asked for it, and is told at the start
		if err := agreed(c, f.yes, spoken().Sayf("This takes %s", text)); err != nil {
			return err
		}
	}
	l, err := f.newLoop(c, p)
	if err != nil {
		return err
	}
	if l == nil {
		return f.carryOut(c, p, nil,
			func(o run.Options) (model.Document, error) { return run.Execute(c.Context(), p, o) })
	}
	if done, err := f.prepare(c, p); done || err != nil {
		return err
	}
	return l.run()
}

// prepare asks whatever is to be known before the first packet. done: another process carried out the command.
func (f *commonFlags) prepare(c *cobra.Command, p model.Plan) (done bool, err error) {
	if f.progress < 0 {
		return false, usagef("--%s: want a time as 5s, not %q", "progress", f.progress.String())
	}
	if f.live && f.web {
		return false, usagef("--web: the full screen of --live leaves no place for its address; give one of them")
	}
	if err := f.consents(c, p); err != nil {
		return false, err
	}
	if f.hub.code, err = f.code(c.Context(), p.Target); err != nil {
		return false, err
	}
	if f.web && needsUserNamespace(p.Target) {
		return false, usagef("--web: without root this lab has a network that no browser reaches; " +
			"start the test from pelt web")
	}
	return viaUserNamespace(p.Target, c.ErrOrStderr())
}

// carryOut runs a plan that the user agrees to, keeps it, in a new store if there is none yet, and reports.
func (f *commonFlags) carryOut(c *cobra.Command, p model.Plan, st *store.Store,
	execute func(run.Options) (model.Document, error)) error {
	if done, err := f.prepare(c, p); done || err != nil {
		return err
	}
	doc, err := f.measure(c, p, st, execute)
	f.output.quiet = f.lines == "-"
	return f.output.finish(c, doc, err)
}

// measure runs a plan once, while readers are told how it goes.
func (f *commonFlags) measure(c *cobra.Command, p model.Plan, st *store.Store,
	execute func(run.Options) (model.Document, error)) (model.Document, error) {
	stop := stoppable(c)
	defer stop()
	s := f.newScreen(c, stop)
	s.Before = append(s.Before, f.notes...)
	if err := s.writeLines(c, f.lines); err != nil {
		return model.Document{}, errors.Join(err, s.end(model.Document{}, err))
	}
	if st == nil {
		st = f.openStore(s)
	}
	defer f.serveWeb(c, s, stop)()
	doc, err := execute(f.options(s, st))
	if doc.Plan.Target == "" { // the run did not begin
		doc.Plan.Target = p.Target
	}
	return doc, errors.Join(err, s.end(doc, err))
}

// code is what the hosts of a target want to hear.
func (f *commonFlags) code(ctx context.Context, target string) (string, error) {
	if strings.HasPrefix(target, model.FleetTarget) {
		return f.hub.settled(ctx)
	}
	code, err := f.hub.read()
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
	return run.Options{Version: version(), Arguments: keptArguments(os.Args[1:]), Code: f.hub.code, Hub: f.hub.Hub,
		Store:  st,
		Record: f.record, Events: s.Take, Live: s.full || f.web || f.lines != ""}
}

// secrets are flags whose values a run does not keep, and what stands in their place: a URL may have a password.
var secrets = map[string]string{"--code": "CODE", "--nats": "URLS", "--on-change": "URL"}

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
		s.Take(run.Event{Note: words.Errorf("this run is not stored: %w", err)})
		return nil
	}
	return st
}

func positive(text string) (time.Duration, error) {
	d, err := unit.ParseDuration(text)
	if err == nil && d == 0 {
		return 0, usagef("must be more than 0")
	}
	return d, err
}
