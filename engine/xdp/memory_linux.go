//go:build amd64 || arm64

package xdp

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/kerneltypes"
	"pelt/model"
)

// liveFrames is the version code of Linux 5.18, the first that sends XDP frames
// from BPF_PROG_RUN.
const liveFrames = 5<<16 | 18<<8

// whyUnable returns why this host cannot run the program of a role; without a code nothing speaks against it.
func whyUnable(role engine.Role) (why model.Reason) {
	if v, err := features.LinuxVersionCode(); role == engine.Send && err == nil && v < liveFrames {
		return model.Reason{Code: model.FramesOldKernel, Name: fmt.Sprintf("%d.%d", v>>16, v>>8&0xff)}
	}
	if _, err := kerneltypes.Cache().Kernel(); err != nil {
		if errors.Is(err, os.ErrPermission) {
			return model.Reason{Code: model.TypesHidden}
		}
		why.Code = model.NoBTF
	}
	return why
}

// reason returns why the kernel refused a program; without a code err is no such refusal.
func reason(err error) (why model.Reason) {
	var v *ebpf.VerifierError
	switch {
	case err == nil:
	case errors.As(err, &v):
		last := ""
		if n := len(v.Log); n > 0 {
			last = strings.TrimSpace(v.Log[max(n-2, 0)]) // the very last line counts instructions
		}
		return model.Reason{Code: model.VerifierRefuses, Text: last}
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		why.Code = model.ProgramRights
	case errors.Is(err, btf.ErrNotFound), errors.Is(err, ebpf.ErrNotSupported):
		return model.Reason{Code: model.ProgramUnfit, Text: err.Error()}
	}
	return why
}

// memory holds a program's global variables, shared with the kernel.
type memory struct {
	variables map[string]*ebpf.VariableSpec
	bytes     []byte
}

const globals = ".bss"

// newSet loads programs and shares their memory. The caller closes both, also
// with an error where they are not nil.
func newSet(spec *ebpf.CollectionSpec) (*ebpf.Collection, memory, error) {
	m := memory{variables: maps.Clone(spec.Variables)}
	// The library would share the memory a second time for them.
	maps.DeleteFunc(spec.Variables, func(_ string, v *ebpf.VariableSpec) bool { return v.SectionName == globals })
	set, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: kerneltypes.Cache()})
	if err != nil {
		return nil, m, err
	}
	of := set.Maps[globals]
	if of == nil {
		return set, m, errors.New("the program has no global variables")
	}
	page := unix.Getpagesize()
	if m.bytes, err = unix.Mmap(of.FD(), 0, (int(of.ValueSize())+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED); err != nil {
		return set, m, fmt.Errorf("share the program's memory: %w", err)
	}
	return set, m, nil
}

func (m memory) close() error {
	if m.bytes == nil {
		return nil
	}
	return unix.Munmap(m.bytes)
}

// variable is a global variable: one T, or an array of them. It panics on a
// program that has it not, or of another size: the two are built together.
func variable[T any](m memory, name string) []T {
	v := m.variables[name]
	var one T
	n := uintptr(v.Size()) / unsafe.Sizeof(one)
	if v.SectionName != globals || n*unsafe.Sizeof(one) != uintptr(v.Size()) {
		panic("variable " + name + " of the xdp programs: " + v.String())
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&m.bytes[v.Offset])), n)
}

// series are the packets of each second, as programs hand them over.
type series struct {
	counts []uint64
	marks  []uint32 // of each program or stream: seconds taken over so far
}

func (s *series) add(step uint32, n uint64) {
	for len(s.counts) <= int(step) {
		s.counts = append(s.counts, 0)
	}
	s.counts[step] += n
}

// remove takes packets off again, from the newest seconds.
func (s *series) remove(n uint64) {
	for i := len(s.counts) - 1; i >= 0 && n > 0; i-- {
		here := min(n, s.counts[i])
		s.counts[i] -= here
		n -= here
	}
}

// take moves the counts of the seconds before a second out of the program's ring number i.
func (s *series) take(i int, from *[sendLimitsSTEPS]uint64, to uint32) {
	for ; s.marks[i] < to; s.marks[i]++ {
		n := &from[s.marks[i]%uint32(sendLimitsSTEPS)]
		s.add(s.marks[i], load(n))
		store(n, 0)
	}
}

// load and store are for what the program writes or reads meanwhile.
func load(p *uint64) uint64           { return atomic.LoadUint64(p) }
func store(p *uint64, v uint64)       { atomic.StoreUint64(p, v) }
func load32(p *uint32) uint32         { return atomic.LoadUint32(p) }
func store32(p *uint32, v uint32)     { atomic.StoreUint32(p, v) }
func networkOrder(port uint16) uint16 { return port<<8 | port>>8 }
