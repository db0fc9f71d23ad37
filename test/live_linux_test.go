package test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
)

// terminal is a pseudo terminal, and what a program wrote to it.
type terminal struct {
	*os.File          // the user's side
	program  *os.File // the program's side

	mu      sync.Mutex
	written bytes.Buffer
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	user, program := testenv.Terminal(t)
	x := &terminal{File: user, program: program}
	x.resize(80, 24)
	go func() {
		b := make([]byte, 1<<14)
		for {
			n, err := user.Read(b)
			x.mu.Lock()
			x.written.Write(b[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return x
}

func (x *terminal) resize(columns, rows uint16) {
	_ = unix.IoctlSetWinsize(int(x.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.written.String()
}

// waitFor waits until a text has come, behind another one.
func (x *terminal) waitFor(t *testing.T, behind, text string) (after string) {
	t.Helper()
	for deadline := time.Now().Add(testenv.Patience); ; time.Sleep(10 * time.Millisecond) {
		if _, after, _ = strings.Cut(x.text(), behind); strings.Contains(after, text) {
			return after
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %q in %q", text, x.text())
		}
	}
}

func (x *terminal) modes(t *testing.T) unix.Termios {
	t.Helper()
	modes, err := unix.IoctlGetTermios(int(x.program.Fd()), unix.TCGETS)
	testenv.Must(t, err)
	return *modes
}

const enters, leaves = "\x1b[?1049h", "\x1b[?1049l" // xterm's alternate screen

// shows starts a program on the terminal, and waits until it draws a screen.
func (x *terminal) shows(t *testing.T, p *exec.Cmd, report io.Writer, before unix.Termios) {
	t.Helper()
	p.Env = append(os.Environ(), "TERM=xterm-256color")
	p.Stdin, p.Stdout, p.Stderr = x.program, report, x.program
	if p.SysProcAttr == nil {
		p.SysProcAttr = &syscall.SysProcAttr{}
	}
	p.SysProcAttr.Setsid, p.SysProcAttr.Setctty = true, true
	testenv.Must(t, p.Start())
	x.waitFor(t, enters, "Trial 1/1")
	if x.modes(t) == before {
		t.Error("the terminal's modes are not those of a screen")
	}
}

// A lab of a usual user is the work of a child, which draws the screen.
func TestLiveScreenOfKilledChild(t *testing.T) {
	testenv.Root(t) // to become a usual user
	t.Parallel()
	testenv.Must(t, os.Chmod(filepath.Dir(peltproc.Binary), 0o711))
	x := newTerminal(t)
	before := x.modes(t)
	p := exec.Command(peltproc.Binary, "soak", "lab:direct", "--rate", "1kpps", "--time", "60s", "--no-store", "--live")
	p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	x.shows(t, p, io.Discard, before)
	for _, child := range childrenOf(p.Process.Pid) {
		if err := unix.Kill(child, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if code := peltproc.ExitCode(orInvalid(p.Wait())); code != 137 {
		t.Errorf("exit code %d, want that of a killed program", code)
	}
	x.waitFor(t, enters, leaves)
	if x.modes(t) != before {
		t.Error("the terminal's modes are not what they were")
	}
}

// Whatever ends the screen, the terminal is as it was, and the report follows.
func TestLiveScreen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seconds string
		end     func(*terminal, *os.Process)
		code    int
		told    string // on the terminal, after the screen
	}{
		"end":  {"0.5s", func(*terminal, *os.Process) {}, 0, "soak lab:loopback"},
		"s":    {"60s", func(x *terminal, _ *os.Process) { io.WriteString(x, "s") }, 130, "interrupted"},
		"term": {"60s", func(_ *terminal, p *os.Process) { _ = p.Signal(syscall.SIGTERM) }, 130, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t)
			before := x.modes(t)
			var report bytes.Buffer
			p := exec.Command(peltproc.Binary, "soak", "lab:loopback", "--rate", "1kpps", "--time", c.seconds,
				"--no-store", "--live")
			x.shows(t, p, &report, before)
			c.end(x, p.Process)
			if code := peltproc.ExitCode(orInvalid(p.Wait())); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if after := x.waitFor(t, leaves, c.told); strings.Contains(after, enters) {
				t.Errorf("after the screen: %q", after)
			}
			if x.modes(t) != before {
				t.Error("the terminal's modes are not what they were")
			}
			if c.code == 0 && report.Len() == 0 {
				t.Error("no report")
			}
		})
	}
}
