package test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"pelt/finding"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// columns is how wide output is, so that lines that tests look for are not broken.
var columns = [2]string{"COLUMNS", "100"}

// invalid is pelt's exit code for a run in which the machine was too busy for some trials.
const invalid = 4

func TestMain(m *testing.M) {
	// Tests here wait most of their time: six run side by side, unless the command line says how many.
	_ = flag.Set("test.parallel", "6")
	_ = os.Setenv(columns[0], columns[1])
	os.Exit(peltproc.Main(m))
}

func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata/script")
}

func TestLabScripts(t *testing.T) {
	testenv.Root(t)
	t.Parallel()
	runScripts(t, "testdata/lab")
}

// TestClockScripts are those that want valid trials: a schedule that is kept, a ring of 256 frames that is read in
// time, an emulated link that is never late.
func TestClockScripts(t *testing.T) {
	testenv.Clock(t)
	testenv.Root(t)
	runScripts(t, "testdata/clock")
}

// runScripts runs each script of a directory. The first line of one may name the programs that it needs: "# needs ip
// sh".
func runScripts(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts in %s, %v", len(files), dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			testenv.Must(t, err)
			first, _, _ := strings.Cut(string(text), "\n")
			if needs, ok := strings.CutPrefix(first, "# needs "); ok {
				testenv.Tool(t, strings.Fields(needs)...)
			}
			testscript.Run(t, testscript.Params{
				Files:               []string{file},
				RequireExplicitExec: true,
				RequireUniqueNames:  true,
				Setup:               setUpScript,
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"contract": scriptContract,
					"measure":  scriptMeasure,
					"valid":    scriptValid,
					"waitport": scriptWaitPort,
					"status":   scriptStatus,
				},
			})
		})
	}
}

func setUpScript(e *testscript.Env) error {
	e.Setenv("PATH", filepath.Dir(peltproc.Binary)+string(os.PathListSeparator)+e.Getenv("PATH"))
	e.Setenv(columns[0], columns[1])
	e.Setenv("PELT_DATA", filepath.Join(e.WorkDir, "data"))
	// A script that fails half way must not leave its lab behind. Labs are known by
	// their names to all of a user's processes, so each script has one of its own.
	name := "scripted-" + strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
	e.Defer(func() { _ = exec.Command(peltproc.Binary, "lab", "down", name).Run() })
	port, err := testenv.FreePort()
	e.Setenv("PORT", fmt.Sprint(port))
	return err
}

// waitport ADDR waits until something listens there.
func scriptWaitPort(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: waitport ADDR")
	}
	ts.Check(waitPort(args[0]))
}

func waitPort(addr string) error {
	deadline := time.Now().Add(testenv.Patience)
	for {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// tries is how often a script runs a test whose trials the machine itself spoilt: a neighbour that takes the core for
// 20 ms is too much for a trial of half a second.
const tries = 5

// machines are the reasons of the machine's making. Any other one is pelt's own fault, or that of the path.
var machines = []string{model.SenderStarved, model.SenderStolen, model.SenderTimerLate, model.LinkBehind,
	model.HostBusy,
	model.TCPWindow} // a receiver without a core reads late

// measuring are the commands that keep their run.
var measuring = []string{"curve", "sweep", "cc"}

// valid ARG... runs pelt until all trials are valid and sent all that was planned, but no further than a trial that
// anything but the machine spoilt.
func scriptValid(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: valid ARG...")
	}
	var err error
	for range tries {
		if err = ts.Exec("pelt", args...); orInvalid(err) != nil || err == nil && !slices.Contains(measuring, args[0]) {
			break
		}
		last := exec.Command(peltproc.Binary, "report", "last", "--json", "-")
		last.Env = append(os.Environ(), "PELT_DATA="+ts.Getenv("PELT_DATA"))
		text, readErr := last.Output()
		ts.Check(readErr)
		doc, readErr := model.DecodeDocument(text, "last")
		ts.Check(readErr)
		late := false // a valid trial may have missed a few of its packets
		for _, r := range doc.Results {
			for _, f := range r.Flows {
				late = late || slices.ContainsFunc(f.Ledger.Pacing,
					func(l model.PacingLine) bool { return l.Cause == model.PacingLate })
			}
			for _, why := range r.Why {
				if r.State == model.Invalid && !slices.Contains(machines, why.Code) {
					ts.Fatalf("invalid by %s: %s", why.Code, finding.Why(r.Why))
				}
			}
		}
		if err == nil && !late {
			break
		}
		testenv.AwaitCalm(ts.Logf)
	}
	ts.Check(err)
}

// measure ARG... runs pelt, which must have measured. Whether the trials are valid is a matter of the clock: the
// scripts of TestClockScripts want it and say valid.
func scriptMeasure(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: measure ARG...")
	}
	ts.Check(orInvalid(ts.Exec("pelt", args...)))
}

// orInvalid takes the end of a pelt that measured for no error, as measure does.
func orInvalid(err error) error {
	if peltproc.ExitCode(err) == invalid {
		return nil
	}
	return err
}

// status CODE COMMAND... runs a command that must exit with that code, print
// exactly one line on stderr (for codes 1 and 2), and nothing on stdout.
func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: status CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code, stderr := peltproc.ExitCode(err), ts.ReadFile("stderr")
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("%q: exit code %d, want %s; stderr: %s", args[1:], code, args[0], stderr)
	}
	if args[0] != "1" && args[0] != "2" {
		return
	}
	if n := strings.Count(stderr, "\n"); n != 1 || strings.TrimSpace(stderr) == "" {
		ts.Fatalf("%q: %d lines on stderr, want one: %s", args[1:], n, stderr)
	}
	if stdout := ts.ReadFile("stdout"); stdout != "" {
		ts.Fatalf("%q: stdout is not empty: %s", args[1:], stdout)
	}
}
