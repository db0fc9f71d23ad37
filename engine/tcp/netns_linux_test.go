package tcp

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
)

// namespace is a network namespace that only this descriptor holds.
type namespace struct{ file *os.File }

func ownNamespace() (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
}

// newNamespace makes a namespace whose loopback is up; it ends with the test.
func newNamespace(t *testing.T) *namespace {
	t.Helper()
	testenv.Root(t)
	made := make(chan any, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- err
			return
		}
		if err := loopbackUp(); err != nil {
			made <- err
			return
		}
		file, err := ownNamespace()
		if err != nil {
			made <- err
			return
		}
		made <- file
	}()
	switch m := (<-made).(type) {
	case error:
		t.Fatalf("make a namespace: %v", m)
	case *os.File:
		t.Cleanup(func() { m.Close() })
		return &namespace{m}
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(request))); errno != 0 {
		return errno
	}
	return nil
}

func (n *namespace) Do(f func() error) error {
	runtime.LockOSThread()
	home, err := ownNamespace()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	failed := f()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		return err // the thread stays locked and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return failed
}

// Both ends' sockets are in the namespace and nowhere else: the machine itself
// finds nobody on the port.
func TestFlowInNamespace(t *testing.T) {
	n := newNamespace(t)
	for _, address := range []string{"127.0.0.1", "::1"} {
		t.Run(address, func(t *testing.T) {
			leakCheck(t)
			p, s, r := calm(func() *pair {
				p := newPair(t, n, address, false, flow(4, 64<<10, true), timing(50*time.Millisecond, 300*time.Millisecond, time.Second))
				listening := 0
				n.Do(func() error { listening = listeners(t, p.receiver.Ports()[0]); return nil })
				if listening != 1 {
					t.Errorf("%d sockets listen on port %d in the namespace, want 1", listening, p.receiver.Ports()[0])
				}
				return p
			})
			checkBulk(t, p, 4, s, r)
		})
	}
}

// listeners counts listening sockets of a port in the calling thread's namespace.
func listeners(t *testing.T, port uint16) (n int) {
	t.Helper()
	for _, name := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/net/%s", unix.Gettid(), name))
		if err != nil {
			t.Fatal(err)
		}
		n += countListeners(string(b), port)
	}
	return n
}
