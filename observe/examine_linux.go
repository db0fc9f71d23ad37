package observe

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"pelt/model"
)

// quietSpan is how long other work is watched; /proc/stat counts in 10 ms.
const quietSpan = 300 * time.Millisecond

func examineSystem(s *survey, unwatched func(error) string) {
	s.otherClocks = text(clockSources + "available_clocksource")
	_, err := os.Stat("/sys/kernel/btf/vmlinux")
	s.btf = err == nil
	s.version, _ = features.LinuxVersionCode() // 0 stands for unknown
	s.bpf = reason(tryXDP())
	var kernel Kernel
	err = kernel.Ready()
	s.noReasons = err == nil && !kernel.Reasons()
	if err = errors.Join(err, kernel.Close()); err != nil {
		s.drops = unwatched(err)
	}
	before, err := readLoad()
	if err != nil {
		return
	}
	time.Sleep(quietSpan)
	if after, err := readLoad(); err == nil {
		var spent model.CPUSplit
		spent, s.busyKnown = after.All.Since(before.All, -1)
		s.busy = spent.Busy()
	}
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// mayConfigure reports whether the calling thread may configure its network.
func mayConfigure() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_NET_ADMIN) != 0
}

// tryXDP loads "return XDP_PASS", attaches it nowhere, and closes it.
func tryXDP() error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	switch {
	case err == nil:
		return program.Close()
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("load a BPF program: the kernel has no bpf system call: %w", unix.ENOSYS)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("load a BPF program: needs CAP_BPF and CAP_NET_ADMIN, or a sandbox forbids it: %w",
			unix.EPERM)
	}
	return fmt.Errorf("load a BPF program: %w", err)
}
