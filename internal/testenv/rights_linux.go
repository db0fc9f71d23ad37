package testenv

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// WithoutRights is the Do of a thread that has no capabilities.
func WithoutRights(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its lack of rights
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		err := unix.Capset(&header, &none[0])
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}
