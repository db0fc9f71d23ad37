package outfile

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
)

// mounted mounts a file over itself, for this test's thread alone.
func mounted(t *testing.T, path string) {
	t.Helper()
	testenv.Root(t)
	runtime.LockOSThread() // never unlocked: the mount ends with the thread
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "")
	}
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
