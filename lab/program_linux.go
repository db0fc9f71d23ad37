package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
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
	before  map[uint32]netip.AddrPort // sockets that listened in the node before it, by inode
	putBack func() error              // the node's congestion control

	first   *exec.Cmd
	began   time.Time
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

// Start runs a command in the node, with this process's environment and working
// directory, no input, and /sys of the node and /proc of its own where the kernel
// lets them be mounted. The end of ctx is as Stop. The caller waits for the
// program's end before the lab is closed. It needs BeFirst in main.
func (n *Node) Start(ctx context.Context, o ProgramOptions) (*Program, error) {
	name, _, _ := strings.Cut(strings.TrimSpace(o.Command), " ")
	wrong := func(err error) error { return fmt.Errorf("start %s in node %s: %w", name, n.Name(), err) }
	if err := ctx.Err(); err != nil {
		return nil, wrong(err)
	}
	p := &Program{node: n, name: name, done: make(chan struct{})}
	err := n.Do(func() (err error) { p.before, err = listeners(); return err })
	if err != nil {
		return nil, wrong(err)
	}
	if p.putBack, err = n.giveControl(o.Control); err != nil {
		return nil, wrong(err)
	}
	started := make(chan error)
	// The end of this thread is the end of the process that it starts.
	go onOwnThread(func() {
		err := p.start(o.Command)
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
// namespace there, which starts the program.
func (p *Program) start(command string) error {
	own, err := enterForGood(p.node.ns)
	if err != nil {
		return explain("enter the node", err)
	}
	mounts := firstEnv + "=shared"
	if own {
		mounts = firstEnv + "=own"
	}
	var theirs *os.File
	if p.pipe, theirs, err = os.Pipe(); err != nil {
		return err
	}
	// A program without BeFirst has no use for that flag, and a test does nothing. A terminal's
	// signals and input are this process's, so it is another session.
	p.first = exec.Command("/proc/self/exe", "-test.run=^$", "sh", "-c", command)
	p.first.Args[0] = os.Args[0]
	p.first.Env = append(os.Environ(), mounts)
	p.first.Stdout, p.first.Stderr = &p.out[0], &p.out[1]
	p.first.ExtraFiles = []*os.File{theirs}
	p.first.WaitDelay = drainTime
	p.first.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL}
	p.reports, p.began = json.NewDecoder(p.pipe), time.Now()
	err = p.first.Start()
	_ = theirs.Close()
	if err != nil {
		return errors.Join(missingPIDs(err), p.pipe.Close())
	}
	var report programReport
	if err = p.reports.Decode(&report); err != nil {
		err = fmt.Errorf("the first process of a PID namespace ended without a word; does main call lab.BeFirst? %w", err)
	} else if report.Error != "" {
		err = errors.New(report.Error)
	}
	if err != nil {
		_ = p.first.Wait() // it has ended
		return errors.Join(err, p.pipe.Close())
	}
	return nil
}

// missingPIDs recognises what the kernel answers when it makes no PID namespace.
func missingPIDs(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return explain("make a PID namespace", err)
	case errors.Is(err, unix.EINVAL):
		return kernelLacks("PID namespace", "CONFIG_PID_NS", err)
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("no more PID namespaces; sysctl -w user.max_pid_namespaces=10000 allows them: %w", err)
	}
	return err
}

// wait sees the program and the first process to their ends.
func (p *Program) wait() {
	var report programReport
	if p.reports.Decode(&report) != nil { // somebody killed the first process
		report = programReport{Status: syscall.WaitStatus(unix.SIGKILL), Duration: time.Since(p.began)}
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

// Name is the command's first word.
func (p *Program) Name() string { return p.name }

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
		_ = p.first.Process.Signal(unix.SIGTERM) // it may just have ended, here and below
		select {
		case <-p.done:
		case <-time.After(childGrace):
			_ = p.first.Process.Kill()
		}
	})
	return p.Wait()
}
