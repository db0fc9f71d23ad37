package observe

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleepFor sleeps the calling thread itself: time.Sleep would measure Go's
// scheduler, and the engine's pacing does not use it.
func sleepFor(d time.Duration) {
	left := unix.NsecToTimespec(d.Nanoseconds())
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &left, &left) == unix.EINTR {
	}
}

// quietSpan is how long other work is watched; /proc/stat counts in 10 ms.
const quietSpan = 300 * time.Millisecond

func examineSystem(s *survey) {
	s.readSettings(hostRoot)
	s.admin = hasCapability(unix.CAP_NET_ADMIN) && hasCapability(unix.CAP_SYS_ADMIN)
	s.userNamespace = reason(tryUserNamespace())
	s.bpf = reason(tryXDP())
	var kernel Kernel
	s.drops = reason(errors.Join(kernel.Ready(), kernel.Close()))
	before, err := readLoad()
	if err != nil {
		return
	}
	time.Sleep(quietSpan)
	if after, err := readLoad(); err == nil {
		var spent share
		spent, s.busyKnown = after.all.since(before.all)
		s.busy = spent.busy
	}
}

func (s *survey) readSettings(root files) {
	s.kernel = root.text("proc/sys/kernel/osrelease")
	s.receiveMax, _ = root.number("proc/sys/net/core/rmem_max")
	s.sendMax, _ = root.number("proc/sys/net/core/wmem_max")
	s.clockSource = root.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
	s.otherClocks = root.text("sys/devices/system/clocksource/clocksource0/available_clocksource")
	s.governor = root.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	s.virtual = root.processor().virtual
	_, err := os.Stat(string(root) + "/sys/kernel/btf/vmlinux")
	s.btf = err == nil
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// tryUserNamespace has the kernel make a user namespace with a network
// namespace inside, which needs full rights in the new one: some systems grant
// the first and deny the second. The child has no program to run, so it ends
// before it does anything: "no such file" is the sign of success.
func tryUserNamespace() error {
	pid, err := syscall.ForkExec("", nil, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET},
	})
	switch {
	case err == nil: // cannot be: "" is no program
		_, err = syscall.Wait4(pid, nil, 0, nil)
		return err
	case errors.Is(err, syscall.ENOENT):
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("make a user namespace: none are allowed (user.max_user_namespaces): %w", err)
	case errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("make a user namespace: the kernel has none (CONFIG_USER_NS, CONFIG_NET_NS): %w", err)
	}
	return fmt.Errorf("make a user namespace: %w", err)
}

// tryXDP loads "return XDP_PASS", attaches it nowhere, and closes it.
func tryXDP() error {
	// Two instructions of struct bpf_insn, include/uapi/linux/bpf.h, in native
	// byte order: r0 = XDP_PASS (2); exit. The register byte is 0 in both orders.
	const movImmediate, exit = 0xb7, 0x95
	program := [2]struct {
		code, registers uint8
		offset          int16
		immediate       int32
	}{{code: movImmediate, immediate: 2}, {code: exit}}
	license := [...]byte{'G', 'P', 'L', 0}
	attributes := struct { // the head of union bpf_attr for BPF_PROG_LOAD
		programType, instructionCount uint32
		instructions, license         uint64
		logLevel, logSize             uint32
		log                           uint64
		kernelVersion, flags          uint32
	}{
		programType:      unix.BPF_PROG_TYPE_XDP,
		instructionCount: uint32(len(program)),
		instructions:     uint64(uintptr(unsafe.Pointer(&program))),
		license:          uint64(uintptr(unsafe.Pointer(&license))),
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&program)
	pins.Pin(&license)
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
	runtime.KeepAlive(&program)
	runtime.KeepAlive(&license)
	switch errno {
	case 0:
		return unix.Close(int(fd))
	case unix.ENOSYS:
		return fmt.Errorf("load a BPF program: the kernel has no bpf system call: %w", errno)
	case unix.EPERM:
		return fmt.Errorf("load a BPF program: needs CAP_BPF and CAP_NET_ADMIN, or a sandbox forbids it: %w", errno)
	}
	return fmt.Errorf("load a BPF program: %w", errno)
}
