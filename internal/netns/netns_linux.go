package netns

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// New makes a network namespace with nothing in it but a loopback interface
// that is down. It needs CAP_SYS_ADMIN; without it the error is unix.EPERM.
func New() (*Handle, error) {
	var h *Handle
	err := onThread(func() error {
		old, err := Current()
		if err != nil {
			return err
		}
		defer old.Close()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			return opError("make a network namespace", err)
		}
		h, err = Current()
		if back := old.Enter(); back != nil {
			return errors.Join(err, back) // the thread stays locked and ends
		}
		runtime.UnlockOSThread()
		return err
	})
	if err != nil && h != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, err
}

// Current holds the namespace of the calling thread. A goroutine that is not
// locked to its thread gets the namespace of the process.
func Current() (*Handle, error) {
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, opError("open the current network namespace", err)
	}
	return &Handle{os.NewFile(uintptr(fd), "netns")}, nil
}

// Open holds the namespace of a file of /proc, as another process's descriptor of one. The
// error says so if the file is anything else.
func Open(path string) (*Handle, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, opError("open "+path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	h, err := FromFile(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return h, nil
}

// FromFile holds the namespace of an open file, which then belongs to the handle. The error says so if
// the file is anything else; then it stays the caller's.
func FromFile(f *os.File) (*Handle, error) {
	kind, err := unix.IoctlRetInt(int(f.Fd()), unix.NS_GET_NSTYPE)
	if err == nil && kind != unix.CLONE_NEWNET {
		err = unix.EINVAL
	}
	if err != nil {
		return nil, opError(f.Name()+" is no network namespace", err)
	}
	return &Handle{f}, nil
}

// Inode identifies the namespace on this machine while it lives, as in the
// link /proc/PID/ns/net.
func (h *Handle) Inode() (uint64, error) {
	info, err := h.file.Stat()
	if err != nil {
		return 0, opError("identify the network namespace", err)
	}
	return uint64(info.Sys().(*syscall.Stat_t).Ino), nil
}

// within runs f inside h on the calling locked thread and unlocks the thread
// only when it is back where it was.
func within(h *Handle, f func() error) error {
	old, err := Current()
	if err != nil {
		return err
	}
	defer old.Close()
	if err := h.Enter(); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { // also after runtime.Goexit
		if old.Enter() == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

// Enter moves the calling thread into the namespace and leaves it there. The caller's
// goroutine must be locked to its thread. Going through SyscallConn keeps the descriptor open
// during the call even if Close runs beside it.
func (h *Handle) Enter() (err error) {
	conn, err := h.file.SyscallConn()
	if err == nil {
		var entered error
		err = conn.Control(func(fd uintptr) { entered = unix.Setns(int(fd), unix.CLONE_NEWNET) })
		err = errors.Join(err, entered)
	}
	if err != nil {
		return opError("enter a network namespace", err)
	}
	return nil
}

// OnOwnThread runs f on a thread that ends with it, so that f may change whatever belongs to
// the thread. The main thread does not end with its goroutine, but would stay as f left it, so
// it is kept busy and another one taken.
func OnOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			OnOwnThread(f)
			return
		}
		f() // still locked: the thread ends with the goroutine
	}()
	<-done
}

// OwnMounts gives the calling thread mounts of its own: nothing mounted from here on reaches another one.
func OwnMounts() error {
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	return err
}

// OwnSys gives the calling thread mounts of its own, whose /sys shows the interfaces of the namespace that it is in.
func OwnSys() error {
	err := OwnMounts()
	if err == nil {
		err = unix.Mount("sysfs", "/sys", "sysfs", 0, "")
	}
	return err
}

// DoWithSys runs f on a thread that ends with it, inside the namespace, whose interfaces it sees in /sys.
func (h *Handle) DoWithSys(f func() error) (err error) {
	OnOwnThread(func() {
		if err = h.Enter(); err == nil {
			err = OwnSys()
		}
		if err == nil {
			err = f()
		}
	})
	return err
}

// SetAttribute writes a file of an interface of the namespace in /sys.
func (h *Handle) SetAttribute(iface, name, value string) error {
	return h.DoWithSys(func() error { return os.WriteFile("/sys/class/net/"+iface+"/"+name, []byte(value), 0) })
}

// Privileged reports whether this process may make namespaces and set up networks.
func Privileged() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	const need = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
	return data[0].Effective&need == need
}
