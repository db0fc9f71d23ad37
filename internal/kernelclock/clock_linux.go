// Package kernelclock reads the clock of programs in the kernel, which knows of no
// time namespaces.
package kernelclock

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Now is what bpf_ktime_get_ns would return, in ns. It is safe for concurrent use.
func Now() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // the clock exists on every Linux
	return uint64(t.Nano() - Ahead())
}

// Ahead is what this process's CLOCK_MONOTONIC is ahead of the kernel's in ns: the
// offset of its time namespace, time_namespaces(7). It does not change while the
// process lives.
func Ahead() int64 { return ahead() }

var ahead = sync.OnceValue(func() int64 {
	text, _ := os.ReadFile("/proc/self/timens_offsets") // not there before Linux 5.6
	return offsetOf(string(text))
})

func offsetOf(text string) int64 {
	for line := range strings.Lines(text) {
		var seconds, nanos int64
		if n, _ := fmt.Sscanf(line, "monotonic %d %d", &seconds, &nanos); n == 2 {
			return seconds*1e9 + nanos
		}
	}
	return 0
}
