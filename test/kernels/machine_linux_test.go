package kernels

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// session is all that was heard of a guest.
type session struct {
	up       Up
	commands []done
	console  string // the kernel's log
	seconds  float64
}

// done is a command of the guest that ended.
type done struct {
	name   string
	output []byte
	exit   Exit
}

// patience is how long a guest may say nothing beyond what its command may take.
// A kernel that hangs says so on its console well before.
const patience = time.Minute

var errSilent = errors.New("the guest fell silent")

// bootFor starts QEMU with two processors and 1 GiB, and follows the guest to its
// end. The error is errSilent if neither a record came in time nor the end.
func bootFor(dir, image, initrd string) (s session, err error) {
	console := filepath.Join(dir, "console.log")
	// Software only (TCG): that runs everywhere, and a bug of an accelerator is not ours. A thread for each processor:
	// with one for both, they take turns of up to 0.1 s, and threads of the highest priority stood still for 0.1 to
	// 0.9 s, where with two it is 0.02 s. The time stamp counters agree, but the kernel cannot know and would fall
	// back to a clock 10 times as slow: tsc=reliable. Tests of a transport side by side need more than 512 MiB.
	cmd := exec.Command("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
		"-smp", "2", "-m", "1024",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-serial", "file:"+console, "-serial", "stdio", // COM1 the kernel's, COM2 the records
		"-kernel", image, "-initrd", initrd,
		"-append", "console=ttyS0 quiet loglevel=5 panic=-1 oops=panic random.trust_cpu=on mitigations=off tsc=reliable hung_task_panic=1 softlockup_panic=1 rdinit=/init")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	// Killed with this thread, thus with this process, however that ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return s, err
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	end, err := s.follow(bufio.NewReader(out), func(within time.Duration) { timer.Reset(within + patience) })
	if err != nil {
		_ = cmd.Process.Kill()
	}
	err = errors.Join(err, cmd.Wait())
	s.seconds = time.Since(began).Seconds()
	log, readErr := os.ReadFile(console)
	s.console = string(log)
	switch {
	case !timer.Stop():
		return s, fmt.Errorf("%w after %s, having begun %s", errSilent, patience, s.last())
	case err != nil:
		return s, fmt.Errorf("qemu: %w %s", err, lastLine(stderr.String()))
	case end == nil:
		return s, errors.New("guest ended without its last record")
	case *end != "":
		return s, fmt.Errorf("guest: %s", *end)
	}
	return s, readErr
}

// stalls are what a kernel says whose processor stands still.
var stalls = regexp.MustCompile(`stall|soft ?lockup`)

// patched is how a kernel dies of QEMU before 8.1, which may run the breakpoint that stood
// in code while another processor changed it: github.com/multipath-tcp/mptcp_net-next/issues/471.
var patched = regexp.MustCompile(`(?m)^.*\bint3: 0000 \[#1\]`)

// stood reports whether the emulator, not what it runs, may have come to a stop: it
// said nothing any more, its host gave it no time, or its processors did not agree about
// code. A kernel that hangs or dies of itself does so again.
func (s session) stood(err error) bool {
	if err == nil {
		return false
	}
	if at := patched.FindStringIndex(s.console); at != nil {
		return len(kernelTrouble(s.console[:at[0]])) == 0
	}
	trouble := kernelTrouble(s.console)
	if len(trouble) == 0 {
		return errors.Is(err, errSilent)
	}
	return !slices.ContainsFunc(trouble, func(line string) bool { return !stalls.MatchString(line) })
}

// last names the command that began last.
func (s *session) last() string {
	if len(s.commands) == 0 {
		return "nothing"
	}
	return s.commands[len(s.commands)-1].name
}

// follow reads records until the line is closed; end is what the last said. It
// tells wait within what time the next one may be expected.
func (s *session) follow(r *bufio.Reader, wait func(time.Duration)) (end *string, err error) {
	var within time.Duration
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return end, nil // closed: QEMU is gone
		}
		var rec Record
		if err := json.Unmarshal(line, &rec); err != nil {
			return end, fmt.Errorf("not a record: %q: %w", line, err)
		}
		var last *done
		if n := len(s.commands); n > 0 {
			last = &s.commands[n-1]
		}
		switch {
		case rec.Up != nil:
			s.up = *rec.Up
		case rec.Start != nil:
			within = 0
			for _, c := range commands("") {
				if c.Name == rec.Start.Name {
					within = time.Duration(c.TimeoutS * float64(time.Second))
				}
			}
			s.commands = append(s.commands, done{name: rec.Start.Name, exit: Exit{Code: -1, Why: "never ended"}})
		case rec.Output != nil && last != nil:
			last.output = append(last.output, rec.Output...)
		case rec.Exit != nil && last != nil:
			within = 0
			last.exit = *rec.Exit
		case rec.End != nil:
			end = rec.End
		}
		wait(within)
	}
}

// trouble matches lines of a kernel's log that no test may cause.
var trouble = regexp.MustCompile(`(?m)^.*(\bBUG\b|\bOops\b|Kernel panic|WARNING: |general protection|soft lockup|rcu.*stall|Out of memory).*$`)

func kernelTrouble(console string) []string {
	return trouble.FindAllString(strings.ReplaceAll(console, "\r", ""), -1)
}

// TestStood: only a guest whose emulator may have come to a stop runs again, so that no fault of a kernel is passed over.
func TestStood(t *testing.T) {
	const (
		stuck = "[ 9.2] watchdog: BUG: soft lockup - CPU#1 stuck for 45s!\n"
		int3  = "[ 9.3] int3: 0000 [#1] PREEMPT SMP NOPTI\n"
		dies  = "[ 9.4] Kernel panic - not syncing: "
	)
	cut := errors.New("guest ended without its last record")
	for _, c := range []struct {
		console string
		err     error
		want    bool
	}{
		{"[ 1.0] debugging on\n", nil, false},
		{"[ 1.0] debugging on\n", errSilent, true},
		{"[ 1.0] debugging on\n", cut, false},
		{"[ 9.1] rcu: INFO: rcu_preempt self-detected stall on CPU\n" + stuck + dies + "softlockup: hung tasks\n", cut, true},
		{"[ 9.0] BUG: kernel NULL pointer dereference\n" + stuck, cut, false},
		{"[ 9.0] WARNING: CPU: 0 PID: 1 at net/core/dev.c\n", errSilent, false},
		{int3 + dies + "Fatal exception in interrupt\n", cut, true},
		{"[ 9.0] WARNING: CPU: 0 PID: 1 at net/core/dev.c\n" + int3, cut, false},
		{"[ 9.0] general protection fault: 0000 [#1] PREEMPT SMP\n" + strings.Replace(int3, "#1", "#2", 1), cut, false},
	} {
		if got := (session{console: c.console}).stood(c.err); got != c.want {
			t.Errorf("%q, %v: %v; its trouble is %q", c.console, c.err, got, kernelTrouble(c.console))
		}
	}
}

// TestFollow: a command that ran as its guest died has not passed, whatever it printed.
func TestFollow(t *testing.T) {
	var s session
	end, err := s.follow(bufio.NewReader(strings.NewReader(`{"Start":{"Name":"a"}}
{"Output":"aGVs"}
{"Output":"bG8="}
{"Exit":{"Code":3}}
{"Start":{"Name":"b"}}
{"Output":"eyJFbmQiOiIifQo="}
`)), func(time.Duration) {}) // the last is {"End":""}
	if err != nil || end != nil || len(s.commands) != 2 || string(s.commands[0].output) != "hello" ||
		s.commands[0].exit.Code != 3 || s.commands[1].exit.Why != "never ended" {
		t.Errorf("end %v, error %v, %+v", end, err, s)
	}
	if _, err := s.follow(bufio.NewReader(strings.NewReader("Segmentation fault\n")), func(time.Duration) {}); err == nil {
		t.Error("a line that is no record: no error")
	}
}
