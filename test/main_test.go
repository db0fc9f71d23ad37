package test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// binaryEnv hands the built binary to a test that runs this program again.
const binaryEnv = "PELT_TEST_BINARY"

// binary is the pelt that every test here runs: the one a user builds.
var binary string

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	if binary = os.Getenv(binaryEnv); binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "pelt-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "pelt")
	if out, err := exec.Command("go", "build", "-o", binary, "pelt/cmd/pelt").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building pelt: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// needRoot is for tests that build labs. On CI root is there, so its lack is a failure.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 && runtime.GOOS == "linux" {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("needs root on Linux, and CI has it")
	}
	t.Skip("needs root on Linux")
}

func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

func TestLabScripts(t *testing.T) {
	needRoot(t)
	runScripts(t, "testdata/lab")
}

// TestPacedScripts is apart from them: a sender that keeps a schedule misses it
// beside one that sends as fast as it can.
func TestPacedScripts(t *testing.T) {
	needRoot(t)
	runScripts(t, "testdata/paced")
}

// TestFrameScripts is apart from the others, which run side by side: it needs
// a core for the sender.
func TestFrameScripts(t *testing.T) {
	needRoot(t)
	runScripts(t, "testdata/frames")
}

// TestRouterScripts is apart, too: what it compares shall not be others' work.
func TestRouterScripts(t *testing.T) {
	needRoot(t)
	runScripts(t, "testdata/routers")
}

// TestLinkScripts is apart, too: an emulated link that is late makes its trial invalid.
func TestLinkScripts(t *testing.T) {
	needRoot(t)
	runScripts(t, "testdata/links")
}

func runScripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("PELT_DATA", filepath.Join(e.WorkDir, "data"))
			// A script that fails half way must not leave its lab behind. Labs are known by
			// their names to all of a user's processes, so each script has one of its own.
			name := "scripted-" + strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
			e.Defer(func() { _ = exec.Command(binary, "lab", "down", name).Run() })
			port, err := freePort()
			e.Setenv("PORT", fmt.Sprint(port))
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"contract": scriptContract,
			"measure":  scriptMeasure,
			"waitport": scriptWaitPort,
			"status":   scriptStatus,
		},
	})
}

// freePort finds a port that is free together with the one above it, for
// control and data. Another process may take it before it is used; tests of
// one package run one after the other, so that is not another test.
func freePort() (int, error) {
	for range 100 {
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		above, err := net.Listen("tcp", fmt.Sprintf(":%d", port+1))
		_ = l.Close()
		if err == nil {
			_ = above.Close()
			return port, nil
		}
	}
	return 0, fmt.Errorf("no two neighbouring ports are free")
}

// waitport ADDR waits until something listens there.
func scriptWaitPort(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: waitport ADDR")
	}
	ts.Check(waitPort(args[0]))
}

func waitPort(addr string) error {
	deadline := time.Now().Add(10 * time.Second)
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

// measure ARG... runs pelt, which must succeed. A trial that pelt itself calls
// invalid (exit code 4), because this machine was busy, is tried again twice.
func scriptMeasure(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: measure ARG...")
	}
	for try := 1; ; try++ {
		err := ts.Exec("pelt", args...)
		var exit *exec.ExitError
		if try < 3 && errors.As(err, &exit) && exit.ExitCode() == 4 {
			continue
		}
		ts.Check(err)
		return
	}
}

// status CODE COMMAND... runs a command that must exit with that code, print
// exactly one line on stderr (for codes 1 and 2), and nothing on stdout.
func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: status CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	stderr := ts.ReadFile("stderr")
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
