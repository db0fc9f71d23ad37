package kernels

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inventory is what programs may leave behind in a machine, by what it is.
type inventory map[string]bool

func takeInventory() inventory {
	list := inventory{}
	for _, p := range processes() {
		list[fmt.Sprintf("process %d %s", p.pid, p.command)] = true
	}
	links, _ := os.ReadDir("/sys/class/net")
	for _, l := range links {
		list["link "+l.Name()] = true
	}
	b, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(b)) {
		list["mount "+strings.TrimSpace(line)] = true
	}
	for _, id := range BPFPrograms() {
		list[fmt.Sprintf("BPF program %d", id)] = true
	}
	return list
}

// settle lists what is there now and was not before, and ends the processes
// among it. The kernel takes devices and BPF programs away after their last
// user is gone, not at once: it gets two seconds.
func (before inventory) settle() (left []string) {
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		reap()
		left = nil
		for thing := range takeInventory() {
			if !before[thing] {
				left = append(left, thing)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, p := range processes() {
		if !before[fmt.Sprintf("process %d %s", p.pid, p.command)] {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
	}
	slices.Sort(left)
	return left
}

// reap collects orphans that have ended. No command is running, so none of
// them is one that os/exec waits for.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
	}
}

type process struct {
	pid     int
	command string
}

// processes lists those that run a program, but for this one.
func processes() (list []process) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Kernel threads have no command line, and neither have zombies.
		if b, _ := os.ReadFile(d + "/cmdline"); len(b) > 0 {
			list = append(list, process{pid, strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))})
		}
	}
	return list
}

// BPFPrograms lists the ids of all programs the kernel holds.
func BPFPrograms() (ids []uint32) {
	for attr := (struct{ start, next, flags uint32 }{}); ; attr.start = attr.next {
		_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_GET_NEXT_ID, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		if errno != 0 {
			return ids
		}
		ids = append(ids, attr.next)
	}
}
