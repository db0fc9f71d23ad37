package dut

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// Start begins a shell on a router. ctx bounds the beginning only; Close of the
// Shell ends it. It may be called again when a shell has ended.
type Start func(ctx context.Context) (*Shell, error)

// Shell is a process that reads shell commands.
type Shell struct {
	In  io.WriteCloser // its standard input; closing it ends an orderly shell
	Out io.Reader      // its standard output; ends when the process does
	// Complaint returns the last lines of its standard error; may be called at any
	// time.
	Complaint func() string
	Ended     <-chan struct{} // closed when the process has ended
	Status    func() string   // how it ended, as "exit status 255"; after Ended
	Kill      func()          // ends the process at once; may be called at any time
	// Patience is how long its first answer may take: a person may have to type a
	// password.
	Patience time.Duration
	// MomentPatience is how long an answer about a moment may take; 0 is the usual time.
	MomentPatience time.Duration
	// HostDevices says that /sys shows another host's network interfaces.
	HostDevices bool
}

// closeGrace is how long a process may take to end when its input does.
const closeGrace = time.Second

func (s *Shell) ends(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-s.Ended:
		return true
	default:
	}
	select {
	case <-s.Ended:
		return true
	case <-t.C:
		return false
	}
}

// Close ends the process and waits for it, but never for long.
func (s *Shell) Close() error {
	err := s.In.Close()
	if !s.ends(closeGrace) {
		if s.Kill(); !s.ends(closeGrace) {
			return errors.New("the shell does not end, not even killed")
		}
	}
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return err
}

// shellPatience is for a key exchange on a slow router, which takes some seconds there, or a machine whose cores are
// all taken.
const (
	shellPatience  = 30 * time.Second
	personPatience = 2 * time.Minute
)

// Start runs the ssh of this host. It may ask for a password once, if a person is
// there to answer.
func (t Target) Start() Start {
	var before atomic.Bool
	return func(context.Context) (*Shell, error) { return t.run(before.Swap(true)) }
}

func (t Target) run(again bool) (*Shell, error) {
	batch := again || !terminal(os.Stdin)
	if _, err := exec.LookPath("ssh"); err != nil {
		return nil, errNoSSH
	}
	s, wait, err := begin(exec.Command("ssh", t.arguments(batch)...))
	if err != nil {
		return nil, err
	}
	go wait()
	s.Patience = shellPatience
	if !batch {
		s.Patience = personPatience
	}
	return s, nil
}

// Local starts /bin/sh on this host, where do runs functions: inside the network
// namespace of a lab's node. The kernel ends it if this process dies.
func Local(do func(func() error) error) Start { return local(do, true, "/bin/sh") }

// Here starts /bin/sh on this host as Local does, where this process is: its network
// interfaces are the host's own.
func Here() Start { return local(func(f func() error) error { return f() }, false, "/bin/sh") }

func local(do func(func() error) error, hostDevices bool, shell string, args ...string) Start {
	return func(context.Context) (*Shell, error) {
		type begun struct {
			shell *Shell
			err   error
		}
		started := make(chan begun, 1)
		go func() {
			// f keeps the thread until the child has ended: the child's life hangs on
			// the thread that started it.
			err := do(func() error {
				cmd := exec.Command(shell, args...)
				diesWithThread(cmd)
				s, wait, err := begin(cmd)
				if err != nil {
					return err
				}
				s.Patience, s.HostDevices = shellPatience, hostDevices
				started <- begun{s, nil}
				wait()
				return nil
			})
			if err != nil {
				started <- begun{nil, err}
			}
		}()
		b := <-started
		return b.shell, b.err
	}
}

// begin starts a process as a Shell; wait must run once and returns when it has
// ended.
func begin(cmd *exec.Cmd) (s *Shell, wait func(), err error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		_ = in.Close() // nothing was started
		return nil, nil, err
	}
	complaints := &tail{}
	cmd.Stdout, cmd.Stderr = childOut, complaints
	cmd.WaitDelay = closeGrace // what it leaves behind may hold its standard error
	err = cmd.Start()
	_ = childOut.Close() // the child's own now
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, nil, err
	}
	ended := make(chan struct{})
	s = &Shell{
		In: in, Out: out, Complaint: complaints.String, Ended: ended,
		Status: func() string { return cmd.ProcessState.String() },
		Kill:   func() { _ = cmd.Process.Kill() }, // it may just have ended
	}
	return s, func() {
		_ = cmd.Wait() // Status tells
		close(ended)
		// What was printed can still be read; what it left behind may hold the pipe.
		time.AfterFunc(closeGrace, func() { _ = out.Close() })
	}, nil
}

// tail keeps the end of what is written. Its methods may be called concurrently.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b[max(0, len(b)-tailSize):]...)
	t.kept = t.kept[max(0, len(t.kept)-tailSize):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

// clean makes a router's words fit for a report: no control characters but line
// feeds and tabs, no broken UTF-8, at most size bytes.
func clean(text string, size int) string {
	text = strings.ToValidUTF8(text[:min(len(text), size)], "")
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
	return strings.TrimSpace(text)
}

// maxWords is how much of a router's words is quoted in a line.
const maxWords = 200

// lastLine is the last line that says anything, fit to be quoted.
func lastLine(text string) string {
	text = clean(text, tailSize)
	return clean(text[strings.LastIndexByte(text, '\n')+1:], maxWords)
}

func firstLine(text string) string {
	text, _, _ = strings.Cut(clean(text, tailSize), "\n")
	return clean(text, maxWords)
}
