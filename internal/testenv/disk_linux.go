package testenv

import (
	"runtime"
	"syscall"
	"testing"
)

// OnTinyDisk runs f with a file system of 64 KiB at dir, which only this thread sees and which ends with it.
func OnTinyDisk(t testing.TB, dir string, f func() error) error {
	t.Helper()
	Root(t)
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread dies, its mounts with it
		done <- func() error {
			if err := syscall.Unshare(syscall.CLONE_NEWNS | syscall.CLONE_FS); err != nil {
				return err
			}
			if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := syscall.Mount("tiny", dir, "tmpfs", 0, "size=64k"); err != nil {
				return err
			}
			return f()
		}()
	}()
	return <-done
}
