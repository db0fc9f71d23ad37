package lab

import (
	"context"
	"encoding/json"
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
	heard   map[uint64]bool // sockets that listened in the node before it
	putBack func() error    // the node's congestion control

	first   *os.Process
	orders  *os.File
	reports *json.Decoder // of programReport
	out     [2]tail       // stdout, stderr
	reading sync.WaitGroup
	close   func() // what of the pipes is this process's

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
	onOwnThread(func() {
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

// start moves the calling thread into the node, and starts the first process of a PID
// namespace there, which starts the program. The end of that thread is that process's end.
func (p *Program) start(path string, args []string) (err error) {
	own, err := enterForGood(p.node.ns)
	if err != nil {
		return explain("enter the node", err)
	}
	var ours, theirs []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	p.close = func() { closeAll(ours) }
	defer func() {
		closeAll(theirs)
		if err != nil {
			p.close()
		}
	}()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	theirs = append(theirs, null)
	for i := range 4 { // stdout, stderr, reports, orders
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		if i == 3 {
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	p.reports, p.orders = json.NewDecoder(ours[2]), ours[3]
	mounts := firstEnv + "=shared"
	if own {
		mounts = firstEnv + "=own"
	}
	// A program without BeFirst has no use for that flag, and a test does nothing. A terminal's
	// signals and input are this process's, so it is another session.
	p.first, err = os.StartProcess("/proc/self/exe", append([]string{os.Args[0], "-test.run=^$", path}, args...), &os.ProcAttr{
		Env: append(os.Environ(), mounts), Files: theirs,
		Sys: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL},
	})
	if err != nil {
		return missingPIDs(err)
	}
	_ = ours[2].SetReadDeadline(time.Now().Add(firstTime))
	var report programReport
	err = p.reports.Decode(&report)
	_ = ours[2].SetReadDeadline(time.Time{})
	if errors.Is(err, io.EOF) {
		err = errors.New("it ended without a word; does main call lab.BeFirst?")
	}
	if err != nil {
		err = fmt.Errorf("start the first process of a PID namespace: %w", err)
	} else if report.Error != "" {
		err = errors.New(report.Error)
	}
	if err != nil {
		_ = p.first.Kill() // it may have ended
		_, _ = p.first.Wait()
		return err
	}
	for i, r := range ours[:2] {
		p.reading.Go(func() { _, _ = io.Copy(&p.out[i], r) }) // ends with the program, or with the deadline
	}
	p.close = func() {
		for _, r := range ours[:2] {
			_ = r.SetReadDeadline(time.Now().Add(drainTime)) // others may hold the pipe, if it was handed out
		}
		p.reading.Wait()
		closeAll(ours)
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
	_, err := p.first.Wait()
	p.close()
	if err != nil {
		err = fmt.Errorf("wait for %s: %w", p.name, err)
	}
	p.err = errors.Join(err, p.putBack())
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
		_, _ = p.orders.Write([]byte{orderTerminate}) // it may just have ended, here and below
		select {
		case <-p.done:
		case <-time.After(childGrace):
			_, _ = p.orders.Write([]byte{orderKill})
		}
	})
	return p.Wait()
}
