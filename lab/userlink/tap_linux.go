package userlink

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offloads that a TAP's reader takes, include/uapi/linux/if_tun.h.
const (
	offloads    = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN
	offloadsUDP = unix.TUN_F_USO4 | unix.TUN_F_USO6 // Linux 6.2
)

// openTAP makes an interface in the calling thread's network namespace, down and
// without a name in any other.
func openTAP(name string) (fd int, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun (CONFIG_TUN): %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads|offloadsUDP)
		if errors.Is(err, unix.EINVAL) {
			err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads)
		}
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("make TAP interface %s: %w", name, err), unix.Close(fd))
	}
	return fd, nil
}

// read and write move one frame without waiting. They do not leave the thread to
// others: the calls are short.
func read(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

func write(fd int, b []byte) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return errno
}

// waiter waits for frames and for a point in time, to the nanosecond.
type waiter struct {
	epoll  int
	wake   int // an eventfd
	events []unix.EpollEvent
	until  struct{ seconds, nanos int64 } // the kernel's timespec, of 64 bits on every machine
	old    bool                           // no epoll_pwait2, Linux 5.11
}

func newWaiter() (*waiter, error) {
	e, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	w := &waiter{epoll: e, wake: -1, events: make([]unix.EpollEvent, 256)}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = w.add(w.wake, -1)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// add watches a descriptor under a number of the caller's.
func (w *waiter) add(fd, number int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(number)}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// forget no longer watches a descriptor.
func (w *waiter) forget(fd int) { _ = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, fd, nil) }

// wait returns when a descriptor is readable, or after some ns; negative is for ever.
func (w *waiter) wait(nanos int64) []unix.EpollEvent {
	at := unsafe.Pointer(nil)
	if nanos >= 0 {
		w.until.seconds, w.until.nanos = nanos/1e9, nanos%1e9
		at = unsafe.Pointer(&w.until)
	}
	var n uintptr
	var errno unix.Errno
	switch {
	case w.old:
	case nanos == 0: // too short to let others have the thread's place
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(w.epoll), uintptr(unsafe.Pointer(&w.events[0])),
			uintptr(len(w.events)), uintptr(at), 0, 0)
	default:
		n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(w.epoll), uintptr(unsafe.Pointer(&w.events[0])),
			uintptr(len(w.events)), uintptr(at), 0, 0)
	}
	w.old = w.old || errno == unix.ENOSYS
	if w.old {
		var until *unix.Timespec
		if nanos >= 0 {
			t := unix.NsecToTimespec(nanos)
			until = &t
		}
		// what is ready comes next
		_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(w.epoll), Events: unix.POLLIN}}, until, nil)
		k, err := unix.EpollWait(w.epoll, w.events, 0)
		if err != nil {
			return nil
		}
		return w.events[:k]
	}
	if errno != 0 { // EINTR
		return nil
	}
	return w.events[:n]
}

// sleep returns after some ns, whatever becomes readable.
func (w *waiter) sleep(nanos int64) {
	until := unix.NsecToTimespec(nanos)
	_, _ = unix.Ppoll(nil, &until, nil) // EINTR only shortens it
}

// ring lets wait return, from any thread.
func (w *waiter) ring() { _, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (w *waiter) answer() {
	var b [8]byte
	_, _ = unix.Read(w.wake, b[:])
}

func (w *waiter) close() error {
	var errs []error
	for _, fd := range []int{w.epoll, w.wake} {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}
