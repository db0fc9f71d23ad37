package kernelclock

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Thread reads the times of the thread that opened it, which must make all calls.
type Thread struct{ schedstat *os.File }

// OpenThread never fails: where the kernel has no schedstat, Read has no answer.
func OpenThread() Thread {
	f, _ := os.Open("/proc/thread-self/schedstat")
	return Thread{f}
}

// Read returns how long the thread has run, and how long it was ready to run without
// a core, in nanoseconds. It takes about 2 us.
func (t Thread) Read() (run, wait int64, ok bool) {
	if t.schedstat == nil {
		return 0, 0, false
	}
	var room [96]byte
	n, err := unix.Pread(int(t.schedstat.Fd()), room[:], 0)
	numbers := bytes.Fields(room[:max(n, 0)])
	var used unix.Timespec // schedstat has it only up to the last tick
	if err != nil || len(numbers) < 2 || unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used) != nil {
		return 0, 0, false
	}
	wait, err = strconv.ParseInt(string(numbers[1]), 10, 64) // run_delay, fs/proc/base.c
	return used.Nano(), wait, err == nil
}

func (t Thread) Close() {
	if t.schedstat != nil {
		t.schedstat.Close()
	}
}
