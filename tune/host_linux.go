package tune

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// kernelFile reports whether a path is one of the kernel's own files, which take a value
// in one write and cannot be replaced.
func kernelFile(path string) bool {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return false
	}
	return int64(s.Type) == unix.PROC_SUPER_MAGIC || int64(s.Type) == unix.SYSFS_MAGIC
}

// noDevice reports whether an error says that an interface is gone.
func noDevice(err error) bool { return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) }

// noSetting reports whether an error says that a driver lets something not be set.
func noSetting(err error) bool { return errors.Is(err, unix.EOPNOTSUPP) }

// lockFile keeps other processes out until the file is closed, as the kernel does when
// the process dies.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	}
	return err
}

// rights says what this process lacks to change a host's settings.
func rights() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil || data[0].Effective&(1<<unix.CAP_NET_ADMIN) == 0 ||
		os.Geteuid() != 0 || inUserNamespace() {
		return ErrRights
	}
	return nil
}

// inUserNamespace reports whether this process is root of a user namespace only, which may
// not write what holds for the host.
func inUserNamespace() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && oneSpaced(string(b)) != "0 0 4294967295"
}

// namespace identifies this process's network namespace, 0 if it is not known.
func namespace() uint64 {
	to, err := os.Readlink("/proc/self/ns/net")
	var n uint64
	if err == nil {
		_, _ = fmt.Sscanf(strings.TrimPrefix(to, "net:"), "[%d]", &n) // 0 stands for unknown
	}
	return n
}

// boot is the same until the host starts again, "" if it is not known.
func boot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
