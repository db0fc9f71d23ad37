package kernels

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
)

// machine reads what programs may leave behind in a guest, but namespaces, which their processes hold. What cannot be
// read fails the command that ran.
func machine() []string {
	all, err := testenv.Traces("process", "link", "mount", "program")
	if err != nil {
		return []string{fmt.Sprint(time.Now(), ": ", err)} // new each time
	}
	return all
}

// settle lists what is there now and was not before, and ends the processes
// among it. The kernel takes devices and BPF programs away after their last
// user is gone, not at once: it gets two seconds.
func settle(before []string) (left []string) {
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		reap()
		if left = testenv.Left(before, machine()); len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, l := range left {
		if pid := 0; strings.HasPrefix(l, "process ") {
			if _, err := fmt.Sscanf(l, "process %d", &pid); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
	return left
}

// reap collects orphans that have ended. No command is running, so none of
// them is one that os/exec waits for.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
	}
}
