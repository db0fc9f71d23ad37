package outfile

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/internal/testenv"
)

// mounted mounts a file over itself, for this test's thread alone.
func mounted(t *testing.T, path string) {
	t.Helper()
	testenv.Root(t)
	runtime.LockOSThread() // never unlocked: the mount ends with the thread
	err := netns.OwnMounts()
	if err == nil {
		err = unix.Mount(path, path, "", unix.MS_BIND, "")
	}
	must(t, err)
	t.Cleanup(func() {
		if err := unix.Unmount(path, 0); err != nil {
			t.Error(err)
		}
	})
}
