package netns_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/internal/testenv"
)

func open(t *testing.T) *netns.Handle {
	t.Helper()
	testenv.Root(t)
	h, err := netns.New()
	must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func inside(t *testing.T, h *netns.Handle) bool {
	t.Helper()
	now, err := netns.Current()
	must(t, err)
	defer now.Close()
	return same(t, h, now)
}

// same reports whether both handles hold one namespace.
func same(t *testing.T, a, b *netns.Handle) bool {
	t.Helper()
	inodeA, errA := a.Inode()
	inodeB, errB := b.Inode()
	must(t, errors.Join(errA, errB))
	return inodeA == inodeB
}

// allThreadsHome fails if any thread of the process is in h.
func allThreadsHome(t *testing.T, h *netns.Handle) {
	t.Helper()
	var held, at unix.Stat_t
	must(t, unix.Fstat(int(h.File().Fd()), &held))
	tasks, err := os.ReadDir("/proc/self/task")
	must(t, err)
	for _, task := range tasks {
		err := unix.Stat("/proc/self/task/"+task.Name()+"/ns/net", &at)
		if err == nil && at.Ino == held.Ino {
			t.Errorf("thread %s is still inside the namespace", task.Name())
		}
	}
}

func TestDoReturns(t *testing.T) {
	h := open(t)
	for _, want := range []error{nil, errors.New("broken")} {
		was := false
		got := h.Do(func() error { was = inside(t, h); return want })
		if !errors.Is(got, want) || !was {
			t.Errorf("Do: got %v, inside %v; want %v, true", got, was, want)
		}
		allThreadsHome(t, h)
	}
}

func TestGoexitReachesTheCaller(t *testing.T) {
	h := open(t)
	returned := true
	var wait sync.WaitGroup
	wait.Go(func() {
		_ = h.Do(func() error { returned = false; runtime.Goexit(); return nil })
		returned = true
	})
	wait.Wait()
	if returned {
		t.Error("Do returned after runtime.Goexit")
	}
	allThreadsHome(t, h)
}

func TestSocketStaysInside(t *testing.T) {
	h := open(t)
	var listener net.PacketConn
	// The namespace's loopback is down, so any port is free and nothing reaches it.
	err := h.Do(func() (err error) { listener, err = net.ListenPacket("udp4", "0.0.0.0:9"); return err })
	must(t, err)
	defer listener.Close()
	var names []net.Interface
	must(t, h.Do(func() (err error) { names, err = net.Interfaces(); return err }))
	if len(names) != 1 || names[0].Name != "lo" || names[0].Flags&net.FlagUp != 0 {
		t.Errorf("interfaces of a new namespace: %v, want one lo that is down", names)
	}
}

func TestManyAtOnce(t *testing.T) {
	a, b := open(t), open(t)
	if same(t, a, b) {
		t.Fatal("two namespaces are one")
	}
	var wait sync.WaitGroup
	for i := range 64 {
		wait.Go(func() {
			h, other := a, b
			if i%2 == 1 {
				h, other = b, a
			}
			_ = h.Do(func() error {
				if !inside(t, h) || inside(t, other) {
					t.Errorf("call %d ran in the wrong namespace", i)
				}
				return nil
			})
			if inside(t, a) || inside(t, b) {
				t.Errorf("call %d left its caller in a namespace", i)
			}
		})
	}
	wait.Wait()
	allThreadsHome(t, a)
	allThreadsHome(t, b)
}

func TestOpen(t *testing.T) {
	h := open(t)
	again, err := netns.Open(fmt.Sprintf("/proc/self/fd/%d", h.File().Fd()))
	must(t, err)
	defer again.Close()
	if !same(t, h, again) {
		t.Error("the descriptor's file holds another namespace")
	}
	other, err := os.Open("/proc/self/ns/uts")
	must(t, err)
	defer other.Close()
	if _, err := netns.FromFile(other); err == nil {
		t.Error("FromFile took a UTS namespace")
	} else if _, err := other.Stat(); err != nil {
		t.Errorf("FromFile closed a file that it did not take: %v", err)
	}
	for _, path := range []string{"/proc/self/ns/uts", "/dev/null", "/proc/self/fd/none"} {
		if _, err := netns.Open(path); err == nil {
			t.Errorf("Open took %s", path)
		}
	}
}

func TestClosedHandle(t *testing.T) {
	h := open(t)
	must(t, h.Close())
	if err := h.Do(func() error { t.Error("f ran"); return nil }); err == nil {
		t.Error("Do on a closed handle: no error")
	}
}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Find holds a namespace that this process, or another one, holds, and no other.
func TestFind(t *testing.T) {
	h := open(t)
	inode, err := h.Inode()
	must(t, err)
	wanted := map[uint64]bool{inode: true, 1: true} // no namespace has so low a number
	found := netns.Find(wanted)
	if len(found) != 1 || found[inode] == nil || !same(t, found[inode], h) {
		t.Fatalf("found %v, want %d", found, inode)
	}
	must(t, found[inode].Close())

	c := exec.Command("sleep", "60")
	must(t, h.Do(c.Start))
	defer func() { _, _ = c.Process.Kill(), c.Wait() }()
	must(t, h.Close())
	if found = netns.Find(wanted); len(found) != 1 || found[inode] == nil {
		t.Fatalf("of another process: found %v, want %d", found, inode)
	}
	must(t, found[inode].Close())
}
