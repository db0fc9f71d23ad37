package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Program is a program of the user's that runs in a node. Its methods may be
// called concurrently.
//
// It has a PID namespace of its own, whose first process is pelt's, so that
// whatever it started ends with it, and all of it when this process dies. A server
// must stay in the foreground.
type Program struct {
	node    *Node
	name    string
	heard   map[uint64]bool // sockets that listened in the node before it
	putBack func() error    // the node's congestion control

	first   *exec.Cmd
	reports *json.Decoder // of programReport
	pipe    *os.File      // that they come by
	out     [2]tail       // stdout, stderr

	stopping sync.Once
	stopped  atomic.Bool
	done     chan struct{} // closed when all below is known
	ending   Ending
	err      error
}

// drainTime is how long what a program wrote may take to be read after its end.
const drainTime = time.Second

// Start runs a program in the node, with this process's environment and working
// directory, no input, and /sys of the node and /proc of its own where the kernel
// lets them be mounted. The end of ctx is as Stop. The caller waits for the
// program's end before the lab is closed. It needs BeFirst in main.
func (n *Node) Start(ctx context.Context, o ProgramOptions) (*Program, error) {
	if len(o.Args) == 0 {
		return nil, &UsageError{"no program named to run in node " + n.Name()}
	}
	wrong := func(err error) error {
		return fmt.Errorf("start %s in node %s: %w", o.Args[0], n.Name(), err)
	}
	path, err := exec.LookPath(o.Args[0])
	if err != nil {
		return nil, wrong(err)
	}
	if err := ctx.Err(); err != nil {
		return nil, wrong(err)
	}
	p := &Program{node: n, name: o.Args[0], done: make(chan struct{})}
	if p.heard, err = n.listeners(); err != nil {
		return nil, wrong(err)
	}
	if p.putBack, err = n.giveControl(o.Control); err != nil {
		return nil, wrong(err)
	}
	started := make(chan error)
	go onOwnThread(func() {
		err := p.start(path, o.Args)
		started <- err
		if err == nil {
			p.wait()
		}
	})
	if err := <-started; err != nil {
		return nil, wrong(errors.Join(err, p.putBack()))
	}
	forget := context.AfterFunc(ctx, func() { _, _ = p.Stop() }) // its error is Wait's too
	go func() {
		<-p.done
		forget()
	}()
	return p, nil
}

// start moves the calling thread into the node, and starts the first process of a PID
// namespace there, which starts the program. The end of that thread is that process's end.
func (p *Program) start(path string, args []string) error {
	own, err := enterForGood(p.node.ns)
	if err != nil {
		return explain("enter the node", err)
	}
	mounts := firstEnv + "=shared"
	if own {
		mounts = firstEnv + "=own"
	}
	reports, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	// A program without BeFirst has no use for that flag, and a test does nothing. A terminal's
	// signals and input are this process's, so it is another session.
	p.first = exec.Command("/proc/self/exe", append([]string{"-test.run=^$", path}, args...)...)
	p.first.Args[0] = os.Args[0]
	p.first.Env = append(os.Environ(), mounts)
	p.first.Stdout, p.first.Stderr = &p.out[0], &p.out[1]
	p.first.ExtraFiles = []*os.File{theirs}
	p.first.WaitDelay = drainTime
	p.first.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL}
	p.reports, p.pipe = json.NewDecoder(reports), reports
	err = p.first.Start()
	_ = theirs.Close()
	if err != nil {
		return errors.Join(missingPIDs(err), reports.Close())
	}
	_ = reports.SetReadDeadline(time.Now().Add(firstTime))
	var report programReport
	err = p.reports.Decode(&report)
	_ = reports.SetReadDeadline(time.Time{})
	switch {
	case errors.Is(err, io.EOF):
		err = errors.New("the first process of a PID namespace ended without a word; does main call lab.BeFirst?")
	case err == nil && report.Error != "":
		err = errors.New(report.Error)
	}
	if err != nil {
		_ = p.first.Process.Kill() // it may have ended
		_ = p.first.Wait()
		return errors.Join(err, reports.Close())
	}
	return nil
}

// wait sees the program and the first process to their ends.
func (p *Program) wait() {
	var report programReport
	if p.reports.Decode(&report) != nil { // somebody killed the first process
		report.Status = syscall.WaitStatus(unix.SIGKILL)
	}
	p.ending = report.ending(p.stopped.Load())
	err := p.first.Wait()
	if errors.As(err, new(*exec.ExitError)) || errors.Is(err, exec.ErrWaitDelay) { // others may hold the pipes, if they were handed out
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("wait for %s: %w", p.name, err)
	}
	p.err = errors.Join(err, p.pipe.Close(), p.putBack())
	close(p.done)
}

func (r programReport) ending(stopped bool) Ending {
	e := Ending{ExitCode: r.Status.ExitStatus(), Stopped: stopped, Duration: r.Duration, User: r.User, System: r.System, MaxRSSBytes: r.MaxRSSBytes}
	if r.Status.Signaled() {
		e.ExitCode, e.Signal = 128+int(r.Status.Signal()), unix.SignalName(r.Status.Signal())
	}
	return e
}

// Done is closed when the program and everything it started are gone.
func (p *Program) Done() <-chan struct{} { return p.done }

// Wait waits for that and returns how the program ended. The error is not the
// program's, but of what had to be done around it.
func (p *Program) Wait() (Ending, error) {
	<-p.done
	return p.ending, p.err
}

// Tail is the end of what the program said: the last lines of its stderr, or of
// its stdout if it said nothing there, made safe to print.
func (p *Program) Tail() []string {
	if list := p.out[1].lines(); len(list) > 0 {
		return list
	}
	return p.out[0].lines()
}

// Stop ends the program and everything it started and waits until they are gone.
// All of them get SIGTERM, as systemd sends it. When the program has ended, or two
// seconds later, SIGKILL ends what is left.
func (p *Program) Stop() (Ending, error) {
	p.stopping.Do(func() {
		select {
		case <-p.done:
			return
		default:
		}
		p.stopped.Store(true)
		_ = p.first.Process.Signal(orderTerminate) // it may just have ended, here and below
		select {
		case <-p.done:
		case <-time.After(childGrace):
			_ = p.first.Process.Signal(orderKill)
		}
	})
	return p.Wait()
}
