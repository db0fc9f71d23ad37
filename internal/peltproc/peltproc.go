// Package peltproc runs pelt, the one that a user builds, for tests. Only tests import it.
package peltproc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"pelt/internal/testenv"
)

// BinaryEnv hands the built pelt to a test that runs its own program again.
const BinaryEnv = "PELT_TEST_BINARY"

// Binary is the path of pelt, once Main has built it.
var Binary = os.Getenv(BinaryEnv)

// Main builds pelt and runs a package's tests. It returns their exit code.
func Main(m *testing.M) int {
	if Binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "pelt-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	Binary = filepath.Join(dir, "pelt")
	build := exec.Command("go", "build", "-o", Binary, "pelt/cmd/pelt")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building pelt: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// Host is where a test runs pelt.
type Host struct {
	T    testing.TB
	In   interface{ Start(*exec.Cmd) error } // a node; nil: where the test is
	Dir  string                              // where pelt is started
	Data string                              // where it keeps its runs
	// Ahead are words before pelt, as of a program that runs it. Env is added to the environment.
	Ahead, Env []string
}

func (h Host) Command(args ...string) *exec.Cmd {
	words := append(append(h.Ahead[:len(h.Ahead):len(h.Ahead)], Binary), args...)
	return exec.Command(words[0], words[1:]...)
}

// Start starts pelt, which ends with the test.
func (h Host) Start(args ...string) *Process {
	h.T.Helper()
	return h.Launch(h.Command(args...))
}

// Run runs pelt to its end and returns what it printed.
func (h Host) Run(args ...string) (string, error) {
	h.T.Helper()
	p := h.Start(args...)
	err := p.Wait()
	return p.String(), err
}

// Process is a program that was started.
type Process struct {
	Cmd      *exec.Cmd
	Out, Err *Buffer // what it has printed
	Ended    chan struct{}
	t        testing.TB
	err      error // once it has ended
}

// Launch starts any program. At the end of the test it is asked to end.
func (h Host) Launch(c *exec.Cmd) *Process {
	h.T.Helper()
	c.Dir = h.Dir
	c.Env = append(append(c.Environ(), "PELT_DATA="+h.Data), h.Env...)
	p := &Process{Cmd: c, Out: &Buffer{}, Err: &Buffer{}, Ended: make(chan struct{}), t: h.T}
	if c.Stdout == nil {
		c.Stdout = p.Out
	}
	if c.Stderr == nil {
		c.Stderr = p.Err
	}
	start := c.Start
	if h.In != nil {
		start = func() error { return h.In.Start(c) }
	}
	testenv.Must(h.T, start())
	go func() {
		defer close(p.Ended)
		p.err = c.Wait()
	}()
	h.T.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.Ended:
		case <-time.After(testenv.Patience):
			p.Kill()
			h.T.Errorf("%v went on for %v after SIGTERM:\n%s", c.Args, testenv.Patience, p)
		}
	})
	return p
}

func (p *Process) String() string { return p.Out.String() + p.Err.String() }

// Kill ends the program at once, as kill -9 does.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // it may have ended
	<-p.Ended
}

// longest is how long a program of a test may take in all.
const longest = 4 * time.Minute

// Wait waits until the program has ended by itself.
func (p *Process) Wait() error {
	p.t.Helper()
	select {
	case <-p.Ended:
	case <-time.After(longest):
		p.Kill()
		p.t.Fatalf("%v had not ended after %v:\n%s", p.Cmd.Args, longest, p)
	}
	return p.err
}

// Code waits until the program has ended by itself, and returns its exit code.
func (p *Process) Code() int {
	p.t.Helper()
	return ExitCode(p.Wait())
}

// Await waits until the program has printed a text.
func (p *Process) Await(text string) {
	p.t.Helper()
	p.Match(regexp.MustCompile("(" + regexp.QuoteMeta(text) + ")"))
}

// HasEnded reports whether the program has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.Ended:
		return true
	default:
		return false
	}
}

// Match waits until the program has printed what an expression matches, and returns the first group.
func (p *Process) Match(text *regexp.Regexp) string {
	p.t.Helper()
	for limit := time.Now().Add(testenv.Patience); ; time.Sleep(5 * time.Millisecond) {
		ended := p.HasEnded()
		if found := text.FindStringSubmatch(p.String()); found != nil {
			return found[1]
		}
		if ended || time.Now().After(limit) {
			p.t.Fatalf("%v printed no %q; it has ended: %v\n%s", p.Cmd.Args, text, ended, p)
		}
	}
}

// ExitCode is the exit code of a program, -1 if it was killed or never ran.
func ExitCode(err error) int {
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// Buffer holds what a program prints, and may be read meanwhile.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
