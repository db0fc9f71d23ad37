//go:build amd64 || arm64

package xdp

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// unable says why no program can run here, "" if there is no sign of it.
func unable() string {
	if _, err := btf.LoadKernelSpec(); err != nil {
		if errors.Is(err, os.ErrPermission) {
			return "the kernel's type information may not be read"
		}
		return "this kernel has no type information (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)"
	}
	return ""
}

// reason makes one line of why a program was not taken; "" for what is an
// error rather than a reason.
func reason(err error) string {
	var v *ebpf.VerifierError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &v):
		last := ""
		if n := len(v.Log); n > 0 {
			last = ": " + strings.TrimSpace(v.Log[max(n-2, 0)]) // the very last line counts instructions
		}
		return "the kernel's verifier refuses the program" + last
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "loading XDP programs needs root (CAP_BPF and CAP_NET_ADMIN)"
	case errors.Is(err, btf.ErrNotFound), errors.Is(err, ebpf.ErrNotSupported):
		return "this kernel lacks what the program needs: " + err.Error()
	}
	return ""
}

// mapped is the memory of an array map, shared with the kernel.
func mapped[T any](m *ebpf.Map) ([]T, error) {
	var one T
	if size := (m.ValueSize() + 7) &^ 7; uintptr(size) != unsafe.Sizeof(one) {
		return nil, fmt.Errorf("map %s: values of %d B, not %d", m, size, unsafe.Sizeof(one))
	}
	bytes := int(m.MaxEntries()) * int(unsafe.Sizeof(one))
	page := unix.Getpagesize()
	b, err := unix.Mmap(m.FD(), 0, (bytes+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("share the memory of map %s: %w", m, err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), int(m.MaxEntries())), nil
}

func unmap[T any](s []T) error {
	if len(s) == 0 {
		return nil
	}
	var one T
	page := unix.Getpagesize()
	bytes := (len(s)*int(unsafe.Sizeof(one)) + page - 1) / page * page
	return unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), bytes))
}

// load and store are for what the program writes or reads meanwhile.
func load(p *uint64) uint64           { return atomic.LoadUint64(p) }
func store(p *uint64, v uint64)       { atomic.StoreUint64(p, v) }
func load32(p *uint32) uint32         { return atomic.LoadUint32(p) }
func store32(p *uint32, v uint32)     { atomic.StoreUint32(p, v) }
func networkOrder(port uint16) uint16 { return port<<8 | port>>8 }

// monotonic reads the clock of the programs.
func monotonic() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // the clock exists on every Linux
	return uint64(t.Nano())
}
