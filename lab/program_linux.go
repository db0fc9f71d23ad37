package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
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
	path    string
	args    []string
	heard   map[uint64]bool // sockets that listened in the node before it
	putBack func() error    // the node's congestion control

	first   *firstProcess
	process *os.Process
	began   time.Time
	out     [2]tail // stdout, stderr
	reading sync.WaitGroup

	stopping sync.Once
	stopped  atomic.Bool
	exited   chan struct{}
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
	p := &Program{node: n, name: o.Args[0], path: path, args: o.Args, exited: make(chan struct{}), done: make(chan struct{})}
	if p.heard, err = n.listeners(); err != nil {
		return nil, wrong(err)
	}
	if p.putBack, err = n.giveControl(o.Control); err != nil {
		return nil, wrong(err)
	}
	started := make(chan error)
	onOwnThread(func() { p.live(started) })
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

// onOwnThread starts f on a thread that ends with it. The main thread does not end
// with its goroutine, but would stay where f went, so it is not used.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return // still locked
		}
		defer runtime.UnlockOSThread()
		taken := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(taken)
			f()
		}()
		<-taken
	}()
}

// live is the thread that starts the program and lives as long, for the end of that
// thread is the end of the PID namespace's first process.
func (p *Program) live(started chan<- error) {
	var ends [2]*os.File
	err := p.enter()
	if err == nil {
		if err = p.begin(&ends); err != nil {
			_ = p.first.end()
		}
	}
	started <- err
	if err != nil {
		return
	}
	state, err := p.process.Wait()
	duration := time.Since(p.began)
	close(p.exited)
	left := p.first.timeOfOthers()
	gone := p.first.end()
	for _, r := range ends {
		_ = r.SetReadDeadline(time.Now().Add(drainTime)) // others may hold the pipe, if it was handed out
	}
	p.reading.Wait()
	if err != nil {
		err = fmt.Errorf("wait for %s: %w", p.name, err)
	} else {
		p.ending = p.account(state, duration, left)
	}
	p.err = errors.Join(err, gone, p.putBack())
	close(p.done)
}

// enter moves the calling thread into the node, and what it starts into a new PID
// namespace.
func (p *Program) enter() error {
	own, err := enterForGood(p.node.ns)
	if err != nil {
		return explain("enter the node", err)
	}
	p.first, err = startFirst(own)
	return err
}

// begin starts the process from the calling thread.
func (p *Program) begin(ends *[2]*os.File) (err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	files := []*os.File{null}
	defer func() {
		for _, w := range files[1:] {
			_ = w.Close()
		}
		for _, r := range ends {
			if err != nil && r != nil {
				_ = r.Close()
			}
		}
	}()
	for i := range ends {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		ends[i], files = r, append(files, w)
	}
	p.began = time.Now()
	// A terminal's signals and input are this process's, so it is another session.
	p.process, err = os.StartProcess(p.path, p.args, &os.ProcAttr{Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return err
	}
	for i, r := range ends {
		p.reading.Go(func() {
			_, _ = io.Copy(&p.out[i], r) // ends with the program, or with the deadline
			_ = r.Close()
		})
	}
	return nil
}

// account sums up; left is the time of processes that the program did not wait for.
func (p *Program) account(state *os.ProcessState, duration time.Duration, left [2]time.Duration) Ending {
	e := Ending{Duration: duration, Stopped: p.stopped.Load(), User: state.UserTime() + left[0], System: state.SystemTime() + left[1]}
	status := state.Sys().(syscall.WaitStatus)
	e.ExitCode = status.ExitStatus()
	if status.Signaled() {
		e.ExitCode, e.Signal = 128+int(status.Signal()), unix.SignalName(status.Signal())
	}
	// A new process shares its parent's memory until it executes, and the kernel
	// counts that as its own (exec_mmap, fs/exec.c).
	var own unix.Rusage
	theirs := state.SysUsage().(*syscall.Rusage).Maxrss
	if unix.Getrusage(unix.RUSAGE_SELF, &own) == nil && theirs > own.Maxrss {
		e.MaxRSSBytes = uint64(theirs) << 10
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
		case <-p.exited:
			return
		default:
		}
		p.stopped.Store(true)
		_ = p.process.Signal(unix.SIGTERM) // it may just have ended, here and below
		for _, one := range p.first.others() {
			if one.Pid != p.process.Pid {
				_ = one.Signal(unix.SIGTERM)
			}
			_ = one.Release()
		}
		select {
		case <-p.exited:
		case <-time.After(childGrace):
			_ = p.process.Kill()
		}
	})
	return p.Wait()
}
