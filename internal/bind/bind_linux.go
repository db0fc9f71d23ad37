package bind

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// FD binds a socket by its descriptor; see Conn.
func FD(fd int, name string) error {
	if name == "" {
		return nil
	}
	if err := unix.BindToDevice(fd, name); err != nil {
		return fmt.Errorf("bind to %s: %w", name, err)
	}
	return nil
}

// Conn binds a socket to an interface or a VRF before it connects. It does nothing without a name.
func Conn(raw syscall.RawConn, name string) (err error) {
	if name == "" {
		return nil
	}
	failed := raw.Control(func(fd uintptr) { err = FD(int(fd), name) })
	return errors.Join(failed, err)
}

// Check finds out whether a socket of the calling thread's namespace can be bound to an interface. The error is ENODEV
// if there is none of that name, and EPERM of an ordinary user before Linux 5.7.
func Check(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return FD(fd, name)
}
