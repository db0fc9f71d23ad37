package lab

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The first process of a PID namespace is this program again. It starts the user's
// program, takes in orphans, and ends all when the program has ended. The kernel ends it, and
// so all, with the thread that started it. The user's program is not the first one itself:
// a process that gives up its rights loses its parent-death signal (commit_creds,
// kernel/cred.c), and the first one gets no signals that it does not handle.
const (
	firstEnv    = "PELT_LAB_FIRST" // own: its mounts are nobody else's; shared
	firstReport = 3                // descriptor that it writes a programReport to when the program has started, and one at the end
)

// programReport is what a first process says of the program.
type programReport struct {
	Error        string // why it did not start; "" if it did
	Status       syscall.WaitStatus
	Duration     time.Duration
	User, System time.Duration // of all that ran in the namespace
	MaxRSSBytes  uint64        // as in Ending
}

// BeFirst does not return if this process is such a first process. A program that
// starts others in a lab's nodes calls it before anything else.
func BeFirst() {
	mounts := os.Getenv(firstEnv)
	if mounts == "" {
		return
	}
	_ = os.Unsetenv(firstEnv)
	signal.Notify(make(chan os.Signal, 1)) // whatever the program sends to it ends nothing
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM)
	if mounts == "own" {
		// Where the kernel does not let it, the programs see the host's.
		_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	unix.CloseOnExec(firstReport)
	report := json.NewEncoder(os.NewFile(firstReport, "report"))
	began := time.Now()
	pid, err := syscall.ForkExec("/bin/sh", os.Args[2:],
		&syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		_ = report.Encode(programReport{Error: err.Error()})
		os.Exit(1)
	}
	go func() {
		for range stop {
			_ = unix.Kill(-1, unix.SIGTERM) // nobody may be there
		}
	}()
	if report.Encode(programReport{}) == nil { // else nobody is there any more
		_ = report.Encode(awaitAll(pid, began))
	}
	os.Exit(0)
}

// awaitAll waits for the program, ends what it left behind, and sums up.
func awaitAll(pid int, began time.Time) (r programReport) {
	for {
		var status syscall.WaitStatus
		one, err := syscall.Wait4(-1, &status, 0, nil)
		if one == pid {
			r.Status, r.Duration = status, time.Since(began)
			_ = unix.Kill(-1, unix.SIGKILL)
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			break // all are gone
		}
	}
	var own, theirs unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &own) != nil || unix.Getrusage(unix.RUSAGE_CHILDREN, &theirs) != nil {
		return r
	}
	r.User, r.System = time.Duration(theirs.Utime.Nano()), time.Duration(theirs.Stime.Nano())
	// A new process shares its parent's memory until it executes, and the kernel
	// counts that as its own (exec_mmap, fs/exec.c).
	if theirs.Maxrss > own.Maxrss {
		r.MaxRSSBytes = uint64(theirs.Maxrss) << 10
	}
	return r
}
