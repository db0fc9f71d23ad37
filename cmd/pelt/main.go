// Command pelt fires small packets down a network path and accounts for every one of them. Each file of this
// package is one command: flags in, a plan or a question to a stored run out; nothing else is decided here.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/finding"
	"pelt/lab"
	"pelt/model"
	"pelt/store"
	"pelt/tune"
	"pelt/unit"
	"pelt/words"
)

// Exit codes, the same for every command.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitLimit       = 3
	exitInvalid     = 4
	exitInterrupted = 130
)

// usageError is the user's to mend: nothing was done.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{words.Errorf(format, args...)} }

// exitCode is an outcome that is told already.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// spareProcessors is how many goroutines may run beside those that fill the cores. A paced sender spins between its
// packets and never gives its Go scheduler slot away; with one slot a core, two of them keep every other thread of
// this process waiting for up to 10 ms, each other included. The kernel's scheduler shares cores far more finely.
const spareProcessors = 32

// sameSignal is how long after the first a signal is the same one still.
const sameSignal = 200 * time.Millisecond

// ended is the outcome of a command that another process carried out: its own
// words are on stderr already, unless it could not be run at all.
func ended(code int, err error) error {
	if err != nil {
		return err
	}
	return exitCode(code)
}

func main() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.NumCPU() + spareProcessors)
	}
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup asks
		signals = append(signals, syscall.SIGHUP) // the terminal is gone, and what was changed goes back all the same
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	// A second Ctrl-C ends at once: the first one has handed the signal back, but not before a signal that comes
	// twice has come: timeout(1) sends it to the process and to its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })
	if l, ok := langOf(args); ok { // before flags are read: errors and children of this process speak it, too
		before, was := os.LookupEnv(words.Variable)
		defer func() {
			if os.Unsetenv(words.Variable); was {
				os.Setenv(words.Variable, before)
			}
		}()
		os.Setenv(words.Variable, l)
		if _, err := words.Parse(l); err != nil && !completes(args) {
			return exitFor(usagef("--lang: %v", err), stderr)
		}
	}
	root := newRoot(stdout, stderr)
	if l := spoken(); l != words.English {
		root.InitDefaultHelpCmd() // before cobra makes them
		root.InitDefaultCompletionCmd(args...)
		speak(root, l)
	}
	fill(root, helpWidth())
	args, all := helpArgs(args)
	groupHelp(root, all)
	if !small && completes(args) {
		complete(root)
	}
	root.SetArgs(nodeLinkArgs(args))
	return exitFor(root.ExecuteContext(ctx), stderr)
}

// completes reports whether a shell asks how a command line may go on.
func completes(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
}

// langOf is the value of --lang on a command line.
func langOf(args []string) (value string, ok bool) {
	for i, a := range args {
		if v, joined := strings.CutPrefix(a, "--lang="); joined {
			return v, true
		} else if a == "--lang" && i+1 < len(args) {
			return args[i+1], true
		} else if a == "--" {
			break
		}
	}
	return "", false
}

// exitFor prints an error as one line and returns the exit code it stands for.
func exitFor(err error, stderr io.Writer) int {
	var code exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, spoken().Say("pelt: interrupted"))
		return exitInterrupted
	}
	l := spoken()
	say(stderr, l.Sayf("pelt: %s", l.Line(err)))
	if isUsage(err) {
		return exitUsage
	}
	return exitError
}

func isUsage(err error) bool {
	var usage usageError
	var field *model.FieldError
	var syntax *unit.SyntaxError
	var labUsage *lab.UsageError
	var tuneUsage *tune.UsageError
	var file *model.FileError
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrAmbiguous) {
		return true
	}
	return errors.As(err, &usage) || errors.As(err, &field) || errors.As(err, &syntax) || errors.As(err, &labUsage) ||
		errors.As(err, &tuneUsage) || errors.As(err, &file)
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "pelt",
		Short: "Find out what a network path does to small packets, and why",
		Long: `pelt sends small packets down a path and accounts for every one: how many the path
carries at each packet size, and where the others were lost.

Start here: pelt demo, or pelt help start`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSubcommand,
	}
	asked := root.Flags().BoolP("version", "v", false, "version for pelt")
	root.RunE = func(c *cobra.Command, args []string) error {
		if *asked {
			return printVersion(c.OutOrStdout())
		}
		return showHelp(c, args)
	}
	root.PersistentFlags().String("lang", "", "`LANGUAGE` of all that pelt says: en or zh (default: as PELT_LANG or "+
		"the locale says)")
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newJoin(), newDrops(), newDoctor(), newVersion())
	if small {
		root.Long = `This small build of pelt is for routers with little flash: join makes this host one of a fleet,
drops (amd64, arm64) watches what it drops, and doctor says what it can do. Another host's pelt starts tests.`
	} else {
		root.AddCommand(newDemo(), newServe(), newHub(), newHosts(), newRun(), newWeb(), newList(), newRemove(),
			newExplain(), newCompare(), newReport(), newRecord(), newTune(), newLab())
		for _, k := range finding.Kinds() {
			root.AddCommand(newTest(k))
		}
		root.SetHelpCommand(newHelp())
	}
	for _, c := range root.Commands() {
		checkUsage(c)
	}
	return root
}

// checkUsage makes a wrong number of arguments a usage error that shows the right form, and
// refuses flags that are empty, as an unset variable of a shell is.
func checkUsage(c *cobra.Command) {
	for _, sub := range c.Commands() {
		checkUsage(sub)
	}
	c.DisableFlagsInUseLine = true
	check := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if check == nil {
			check = cobra.NoArgs
		}
		err := check(c, args)
		switch {
		case err == nil || isUsage(err):
		case len(args) > 0 && c.Use == c.Name():
			return noArgument(c, args[0])
		default:
			return usagef("wrong number of arguments; want: %s", c.UseLine())
		}
		if empty := emptyFlag(c.Flags()); err == nil && empty != "" {
			err = usagef("--%s: is empty; leave it out, or give it a value", empty)
		}
		return err
	}
}

// noArgument is of a command that takes none: perhaps it was meant for a flag that may stand without a value.
func noArgument(c *cobra.Command, arg string) (err error) {
	err = usagef("%q: %s takes no arguments", arg, c.CommandPath())
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.NoOptDefVal != "" && f.Value.Type() != "bool" && f.Value.String() == f.NoOptDefVal {
			err = usagef("%q: %s takes no arguments; want --%s=%s", arg, c.CommandPath(), f.Name, arg)
		}
	})
	return err
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

// noSubcommand is for commands that only group others.
func noSubcommand(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		c.SuggestionsMinimumDistance = 2
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return usagef("unknown command %q; did you mean %s?", args[0], strings.Join(near, spoken().Say(" or ")))
		}
		if small && !c.HasParent() {
			return usagef("%q is not in this small pelt, which has doctor, drops (amd64, arm64), join and version",
				args[0])
		}
		return usagef("unknown command %q; %s --help lists them", args[0], c.CommandPath())
	}
	return nil
}
