package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstEnv  = "PELT_LAB_FIRST"
	firstWord = "ready\n"
	firstTime = 10 * time.Second // to start in
)

// firstProcess is the first process of a PID namespace: this program again. The
// kernel ends all others when it ends, which it does with the thread that started
// it and with the pipe that this process holds open. The user's program is not the
// first one itself, for a process that gives up its rights loses its parent-death
// signal (commit_creds, kernel/cred.c), and the first one gets no signals that it
// does not handle.
type firstProcess struct {
	process *os.Process
	life    *os.File
	space   uint64 // inode of the namespace; 0 unknown
}

// BeFirst does not return if this process is such a first process. A program that
// starts others in a lab's nodes calls it before anything else.
func BeFirst() {
	mounts := os.Getenv(firstEnv)
	if mounts == "" {
		return
	}
	signal.Ignore() // whatever the program sends to all
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go reap(children)
	if mounts == "own" {
		// Where the kernel does not let it, the programs see the host's.
		_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	ready := os.NewFile(3, "ready")
	_, err := ready.WriteString(firstWord)
	if err == nil {
		_ = ready.Close()
		_, _ = os.NewFile(4, "life").Read(make([]byte, 1)) // until the other end is closed
	}
	os.Exit(0)
}

// reap takes in orphans, so that their processor time is this process's children's.
func reap(children <-chan os.Signal) {
	for range children {
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
}

// startFirst makes a PID namespace for what the calling thread, which must never
// be unlocked, starts from then on. ownMounts says that the thread's mounts are
// nobody else's.
func startFirst(ownMounts bool) (f *firstProcess, err error) {
	ready, readyTo, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	lifeFrom, life, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, readyTo.Close())
	}
	env := firstEnv + "=shared"
	if ownMounts {
		env = firstEnv + "=own"
	}
	// A program without BeFirst has no use for that flag, and a test does nothing.
	process, err := os.StartProcess("/proc/self/exe", []string{os.Args[0], "-test.run=^$"}, &os.ProcAttr{
		Env: []string{env, "GOMAXPROCS=1"}, Files: []*os.File{nil, nil, nil, readyTo, lifeFrom},
		Sys: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL},
	})
	_, _ = readyTo.Close(), lifeFrom.Close()
	if err != nil {
		return nil, errors.Join(missingPIDs(err), life.Close())
	}
	f = &firstProcess{process: process, life: life}
	if err := f.join(ready); err != nil {
		return nil, errors.Join(fmt.Errorf("start the first process of a PID namespace: %w", err), f.end())
	}
	return f, nil
}

// join has what the calling thread starts be in the namespace, once it is ready.
func (f *firstProcess) join(ready *os.File) error {
	// The calling thread's /proc is no longer the one that has the process.
	var space *os.File
	err := elsewhere(func() (err error) {
		space, err = os.Open(fmt.Sprintf("/proc/%d/ns/pid", f.process.Pid))
		return err
	})
	if err != nil {
		return err
	}
	defer space.Close()
	if info, err := space.Stat(); err == nil {
		f.space = info.Sys().(*syscall.Stat_t).Ino
	}
	if err := ready.SetReadDeadline(time.Now().Add(firstTime)); err != nil {
		return err
	}
	line, err := bufio.NewReader(ready).ReadString('\n')
	if errors.Is(err, io.EOF) {
		return errors.New("it ended without a word; does main call lab.BeFirst?")
	}
	if err == nil && line != firstWord {
		err = fmt.Errorf("it said %q", line)
	}
	if err != nil {
		return err
	}
	return unix.Setns(int(space.Fd()), unix.CLONE_NEWPID)
}

// elsewhere runs f on another thread than the calling one, which is locked.
func elsewhere(f func() error) error {
	done := make(chan error)
	go func() { done <- f() }()
	return <-done
}

// end ends all that is in the namespace and waits until it is gone.
func (f *firstProcess) end() error {
	_ = f.life.Close()
	_ = f.process.Kill() // it may have ended
	_, err := f.process.Wait()
	return err
}

// missingPIDs recognises what the kernel answers when it makes no PID namespace.
func missingPIDs(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return explain("make a PID namespace", err)
	case errors.Is(err, unix.EINVAL):
		return &KernelError{Facility: "PID namespace", Config: "CONFIG_PID_NS", Err: err}
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("no more PID namespaces; sysctl -w user.max_pid_namespaces=10000 allows them: %w", err)
	}
	return err
}

// pidSpace identifies the PID namespace that a process is in; 0 if it is not told.
func pidSpace(pid int) uint64 {
	info, err := os.Stat(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return 0 // it has ended, or /proc is another's
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// others are the processes in the namespace beside the first; none if /proc does
// not tell. They are to be released.
func (f *firstProcess) others() (list []*os.Process) {
	_ = elsewhere(func() error {
		list = membersOf(f.space, f.process.Pid)
		return nil
	})
	return list
}

func membersOf(space uint64, but int) (list []*os.Process) {
	entries, err := os.ReadDir("/proc")
	if err != nil || space == 0 {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == but || pidSpace(pid) != space {
			continue
		}
		one, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		// The number may have been another's when it was looked at.
		if pidSpace(pid) == space {
			list = append(list, one)
		} else {
			_ = one.Release()
		}
	}
	return list
}

// timeOfOthers is the processor time, user and system, of all in the namespace but
// the first process, and of the orphans that it took in.
func (f *firstProcess) timeOfOthers() (sum [2]time.Duration) {
	_ = elsewhere(func() error {
		list := membersOf(f.space, 0)
		for _, one := range list {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", one.Pid))
			if err == nil {
				own, waited := processTimes(string(b))
				for i := range sum {
					if one.Pid != f.process.Pid {
						sum[i] += own[i]
					}
					sum[i] += waited[i]
				}
			}
			_ = one.Release()
		}
		return nil
	})
	return sum
}

// processTimes are the user and system time in a line of /proc/PID/stat: a process's
// own, and that of children that it waited for (proc(5), fields 14 to 17; USER_HZ is 100).
func processTimes(stat string) (own, waited [2]time.Duration) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // from the third on
	if len(fields) < 15 {
		return own, waited
	}
	for i := range 4 {
		ticks, err := strconv.ParseInt(fields[11+i], 10, 64)
		if err != nil {
			continue
		}
		if i < 2 {
			own[i] = time.Duration(ticks) * (time.Second / 100)
		} else {
			waited[i-2] = time.Duration(ticks) * (time.Second / 100)
		}
	}
	return own, waited
}
