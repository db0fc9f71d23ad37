//go:build amd64 || arm64

package drops

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"pelt/model"
)

// Machine is the program in the kernel with its maps. One serves any number of
// trials of a process at a time. Its methods may be called concurrently.
type Machine struct {
	mu      sync.Mutex
	kernel  kernel
	objects objects
	hooks   []link.Link // the first program's is the first
	cells   []uint32    // the verdicts
	dirty   []uint64    // of each page of them
	newest  []uint64    // of each slot: bpfNewest, two words
	visited uint64      // when the reader last came, ns of the monotonic clock
	pages   pagePool
	slots   idPool
	flows   idPool
	trials  map[uint16]*trial
	follow  fragments
	names   names
	freed   time.Time     // when something was last given back
	stop    chan struct{} // of the reader; nil while no track needs one
	reading sync.WaitGroup
	closed  bool
}

// objects are what the machine needs of the object file.
type objects struct {
	Program   *ebpf.Program  `ebpf:"dropped"`
	Nested    *ebpf.Program  `ebpf:"nested"`
	Streams   *ebpf.Map      `ebpf:"streams"`
	Meetings  *ebpf.Map      `ebpf:"meetings"`
	Tallies   *ebpf.Map      `ebpf:"tallies"`
	Rests     *ebpf.Map      `ebpf:"rests"`
	Verdicts  *ebpf.Map      `ebpf:"verdicts"`
	Dirty     *ebpf.Map      `ebpf:"dirty"`
	Newest    *ebpf.Map      `ebpf:"newest"`
	Held      *ebpf.Map      `ebpf:"held"`
	Sites     *ebpf.Map      `ebpf:"sites"`
	Exits     *ebpf.Map      `ebpf:"exits"`
	NextSite  *ebpf.Variable `ebpf:"next_site"`
	Fragments *ebpf.Variable `ebpf:"fragments_wanted"`
	LiveFlows *ebpf.Map      `ebpf:"live_flows"`
	LiveRest  *ebpf.Map      `ebpf:"live_rest"`
}

// Open loads the program and attaches it. Its array holds so many verdicts at a time, over all
// streams: a power of two, 1024 or more. Errors are of type *Error.
func Open(verdicts int) (*Machine, error) {
	return openMachine(verdicts/pageCells, func(spec *ebpf.CollectionSpec) error {
		spec.Maps["live_flows"].MaxEntries = 1
		return nil
	})
}

func openMachine(pages int, change func(*ebpf.CollectionSpec) error) (*Machine, error) {
	k, err := examineKernel()
	if err != nil {
		return nil, err
	}
	m := &Machine{kernel: k, trials: map[uint16]*trial{}, names: newNames(k.reasons),
		slots: idPool{used: make([]bool, bpfLimitsSTREAMS)}, flows: idPool{used: make([]bool, bpfLimitsFLOWS)}}
	m.flows.used[0] = true // no flow
	if err := m.load(pages, change); err != nil {
		_ = m.Close() // the first error is the one that tells
		return nil, err
	}
	return m, nil
}

func (m *Machine) load(pages int, change func(*ebpf.CollectionSpec) error) error {
	err := m.kernel.load(&m.objects, func(spec *ebpf.CollectionSpec) error {
		spec.Maps["verdicts"].MaxEntries, spec.Maps["dirty"].MaxEntries = uint32(pages), uint32(pages)
		return change(spec)
	})
	if err != nil {
		return err
	}
	if m.hooks, err = attach(m.objects.Program, m.objects.Nested); err != nil {
		return err
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	// What the first one left for the second before that was there.
	if err := m.objects.Exits.Put(uint32(0), make([]bpfCounts, cpus)); err != nil {
		return explain("begin counting", err)
	}
	if m.newest, err = mapped[uint64](m.objects.Newest); err != nil {
		return err
	}
	if m.cells, err = mapped[uint32](m.objects.Verdicts); err != nil {
		return err
	}
	m.dirty, err = mapped[uint64](m.objects.Dirty)
	m.pages.owner = make([]*stream, pages)
	return err
}

// mapped is the memory of an array map, shared with the kernel.
func mapped[T uint32 | uint64](m *ebpf.Map) ([]T, error) {
	bytes := int(m.MaxEntries()) * int((m.ValueSize()+7)&^7)
	page := unix.Getpagesize()
	b, err := unix.Mmap(m.FD(), 0, (bytes+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, explain("map the verdicts", err)
	}
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(one))), nil
}

func unmap[T uint32 | uint64](s []T) error {
	if len(s) == 0 {
		return nil
	}
	var one T
	return unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(one))))
}

// Why is what this kernel does not let the machine tell.
func (m *Machine) Why() model.Reasons {
	m.mu.Lock()
	defer m.mu.Unlock()
	why := m.why()
	if !m.kernel.far {
		why = append(why, model.Reason{Code: model.PayloadFar})
	}
	return why
}

// Reasons reports whether the kernel tells why packets are dropped, as Linux does since 5.17.
func (m *Machine) Reasons() bool { return !m.kernel.old }

// why is what both kinds of watch say.
func (m *Machine) why() model.Reasons {
	why := m.names.why()
	if m.kernel.old {
		why = append(why, model.Reason{Code: model.ReasonsUntold})
	}
	return why
}

// NearlyFull reports that the table of sites is half full: those of namespaces that are long gone fill it. It is not
// emptied, so another machine is to take this one's place.
func (m *Machine) NearlyFull() bool {
	var next uint32
	return m.objects.NextSite.Get(&next) != nil || next >= uint32(bpfLimitsSITES)/2
}

// Missed is how many drops, of any traffic since Open, the kernel ran no program for, because
// both were running already on the same processor. Packets count as the kernel counts them.
func (m *Machine) Missed() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, errClosed
	}
	_, missed, err := m.exits()
	return missed, err
}

// Close takes the program out of the kernel. Tracks that are left are closed.
// It may be called more than once.
func (m *Machine) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	m.stopReading()
	m.mu.Unlock()
	m.reading.Wait() // the reader takes the lock

	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.objects
	err := errors.Join(detach(m.hooks), m.follow.close(), unmap(m.cells), unmap(m.dirty), unmap(m.newest), detach(nil,
		o.Program, o.Nested, o.Streams, o.Meetings, o.Tallies, o.Rests, o.Verdicts, o.Dirty, o.Newest, o.Held,
		o.Sites, o.Exits, o.LiveFlows, o.LiveRest, m.names.namer.program))
	m.cells, m.dirty, m.newest = nil, nil, nil
	return err
}

// exits are the exits of the programs, and how many drops, of any traffic, the kernel ran no
// program for, because both were running already on the same processor.
func (m *Machine) exits() (by [bpfExitReasonEXITS]uint64, missed uint64, err error) {
	var cpus []bpfCounts
	if err := m.objects.Exits.Lookup(uint32(0), &cpus); err != nil {
		return by, 0, fmt.Errorf("read the program's exits: %w", err)
	}
	var nested uint64
	for _, c := range cpus {
		nested += c.Nested
		for i, n := range c.Exit {
			by[i] += n
		}
	}
	if stats, err := m.objects.Program.Stats(); err == nil { // else the kernel does not tell
		missed = stats.RecursionMisses - min(nested, stats.RecursionMisses)
	}
	return by, missed, nil
}

// idPool hands out numbers, those given back last.
type idPool struct {
	used []bool
	next int
}

func (r *idPool) take() (uint32, bool) {
	for range r.used {
		i := r.next
		r.next = (r.next + 1) % len(r.used)
		if !r.used[i] {
			r.used[i] = true
			return uint32(i), true
		}
	}
	return 0, false
}

func (r *idPool) give(i uint32) { r.used[i] = false }
