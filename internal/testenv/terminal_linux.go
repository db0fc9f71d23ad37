package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/netns"
)

// Terminal opens a pseudo terminal: the side of who sits there, and the side of a program. With the rights of root
// it needs no /dev/ptmx.
func Terminal(t testing.TB) (user, program *os.File) {
	t.Helper()
	devices := "/dev"
	if netns.Privileged() {
		devices = t.TempDir()
	}
	var err error
	netns.OnOwnThread(func() { // the mount ends with the thread
		err = func() (err error) {
			if devices != "/dev" {
				if err := mountTerminals(devices); err != nil {
					return err
				}
			}
			user, err = os.OpenFile(filepath.Join(devices, "ptmx"), os.O_RDWR|unix.O_NOCTTY, 0)
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = user.Close() })
			if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
				return err
			}
			fd, _, errno := unix.Syscall(unix.SYS_IOCTL, user.Fd(), unix.TIOCGPTPEER,
				unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
			if errno != 0 {
				return errno
			}
			program = os.NewFile(fd, "terminal")
			t.Cleanup(func() { _ = program.Close() })
			return nil
		}()
	})
	if err != nil {
		Lacks(t, "a pseudo terminal: %v", err)
	}
	return user, program
}

// mountTerminals mounts a file system of pseudo terminals that only the calling thread sees.
func mountTerminals(at string) error {
	err := netns.OwnMounts()
	if err == nil {
		err = unix.Mount("devpts", at, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0600")
	}
	if err != nil {
		return fmt.Errorf("mount a file system of terminals: %w", err)
	}
	return nil
}
