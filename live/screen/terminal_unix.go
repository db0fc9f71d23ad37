//go:build unix

package screen

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ready waits until something can be read, or for a while. Not all systems let a terminal be polled.
func ready(fd uintptr, within time.Duration) bool {
	var set unix.FdSet
	set.Set(int(fd))
	timeout := unix.NsecToTimeval(within.Nanoseconds())
	n, err := unix.Select(int(fd)+1, &set, nil, nil, &timeout)
	if err != nil && err != unix.EINTR {
		time.Sleep(within)
	}
	return err == nil && n > 0
}

// understand does nothing: terminals take sequences.
func understand(*os.File) {}
