package testenv

import (
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/netns"
)

// OnTinyDisk runs f with a file system of 64 KiB at dir, which only this thread sees and which ends with it.
func OnTinyDisk(t testing.TB, dir string, f func() error) (err error) {
	t.Helper()
	Root(t)
	netns.OnOwnThread(func() {
		if err = netns.OwnMounts(); err == nil {
			err = unix.Mount("tiny", dir, "tmpfs", 0, "size=64k")
		}
		if err == nil {
			err = f()
		}
	})
	return err
}
