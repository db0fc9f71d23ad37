//go:build amd64 || arm64

package drops

import (
	"errors"
	"fmt"
	"slices"
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
	mode    model.DropMode
	objects objects
	hooks   []link.Link // the first program's is the first
	cells   []uint32    // the verdicts
	dirty   []uint64    // of each page of them
	newest  []uint64    // of each slot: bpfNewest, two words
	visited uint64      // when the reader last came, ns of the monotonic clock
	space   space
	slots   ring
	flows   ring
	trials  map[uint16]*trial
	follow  follower // of fragments
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
	Tallies   *ebpf.Map      `ebpf:"tallies"`
	Rests     *ebpf.Map      `ebpf:"rests"`
	Verdicts  *ebpf.Map      `ebpf:"verdicts"`
	Dirty     *ebpf.Map      `ebpf:"dirty"`
	Newest    *ebpf.Map      `ebpf:"newest"`
	Held      *ebpf.Map      `ebpf:"held"`
	Sites     *ebpf.Map      `ebpf:"sites"`
	Exits     *ebpf.Map      `ebpf:"exits"`
	NextSite  *ebpf.Variable `ebpf:"next_site"`
	FirstSite *ebpf.Variable `ebpf:"first_site"`
	Fragments *ebpf.Variable `ebpf:"fragments_wanted"`
}

const (
	defaultCells = 1 << 22
	maxCells     = 1 << 28 // 1 GiB
)

// Open loads the program and attaches it. Errors are of type *Error.
func Open(c Config) (*Machine, error) {
	if c.Cells < 0 || c.Cells > maxCells {
		return nil, refuse(fmt.Sprintf("watch drops: %d verdicts; want 0 to %d", c.Cells, maxCells), nil)
	}
	if c.Mode == "" {
		c.Mode = model.DropsSeq
	}
	if c.Mode != model.DropsSeq && c.Mode != model.DropsCount {
		return nil, refuse(fmt.Sprintf("watch drops: no mode %q; want seq or count", c.Mode), nil)
	}
	if c.Cells == 0 {
		c.Cells = defaultCells
	}
	pages := 1
	if c.Mode == model.DropsSeq {
		for pages*pageCells < c.Cells {
			pages *= 2
		}
	}
	k, err := examineKernel()
	if err != nil {
		return nil, err
	}
	m := &Machine{kernel: k, mode: c.Mode, trials: map[uint16]*trial{}, names: names{reasons: k.reasons},
		slots: ring{used: make([]bool, bpfLimitsSTREAMS)}, flows: ring{used: make([]bool, bpfLimitsFLOWS)}}
	m.flows.used[0] = true // no flow
	if err := m.load(pages); err != nil {
		_ = m.Close() // the first error is the one that tells
		return nil, err
	}
	return m, nil
}

func (m *Machine) load(pages int) error {
	spec, err := loadBpf()
	if err != nil {
		return refuse("watch drops: the program is broken: "+err.Error(), err)
	}
	spec.Maps["verdicts"].MaxEntries, spec.Maps["dirty"].MaxEntries = uint32(pages), uint32(pages)
	if err := m.kernel.load(spec, &m.objects, nil); err != nil {
		return err
	}
	for _, p := range []*ebpf.Program{m.objects.Program, m.objects.Nested} {
		hook, err := link.AttachTracing(link.TracingOptions{Program: p, AttachType: ebpf.AttachTraceRawTp})
		if err != nil {
			return explain("attach to the kfree_skb tracepoint", err)
		}
		m.hooks = append(m.hooks, hook)
	}
	// What the first one left for the second before that was there.
	if err := m.objects.Exits.Put(uint32(0), make([]bpfCounts, ebpf.MustPossibleCPU())); err != nil {
		return explain("begin counting", err)
	}
	if m.newest, err = mapped[uint64](m.objects.Newest); err != nil {
		return err
	}
	if m.mode != model.DropsSeq {
		return nil
	}
	if m.cells, err = mapped[uint32](m.objects.Verdicts); err != nil {
		return err
	}
	m.dirty, err = mapped[uint64](m.objects.Dirty)
	m.space.owner = make([]*stream, pages)
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

// Probe says why drops can't be watched here; nil if they can. It loads the
// program, attaches it and takes it out again.
func Probe() error {
	m, err := Open(Config{Mode: model.DropsCount})
	if err != nil {
		return err
	}
	return m.Close()
}

// Why is what this kernel does not let the machine tell, one line; "" if nothing.
func (m *Machine) Why() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	why := m.names.why()
	if !m.kernel.far {
		why = join(why, "payload outside of a packet's linear part (UDP_SEGMENT) is out of reach before Linux 6.12: such packets are counted, but not told by sequence")
	}
	return why
}

// Stats tells what became of the drops that the program saw.
func (m *Machine) Stats() (Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Stats{}, errClosed
	}
	return readStats(m.objects.Exits, m.objects.Program)
}

func readStats(exits *ebpf.Map, p *ebpf.Program) (Stats, error) {
	var cpus []bpfCounts
	if err := exits.Lookup(uint32(0), &cpus); err != nil {
		return Stats{}, fmt.Errorf("read the program's exits: %w", err)
	}
	s := Stats{Exits: map[string]uint64{}}
	var nested uint64
	for _, c := range cpus {
		nested += c.Nested
		for i, n := range c.Exit {
			if n > 0 {
				s.Exits[exitNames[i]] += n
			}
		}
	}
	if stats, err := p.Stats(); err == nil { // else the kernel does not tell
		s.Missed = stats.RecursionMisses - min(nested, stats.RecursionMisses)
	}
	return s, nil
}

var exitNames = [bpfExitReasonEXITS]string{
	bpfExitReasonEXIT_NOTED: "noted", bpfExitReasonEXIT_TAP: "tap", bpfExitReasonEXIT_NOT_IP: "not-ip",
	bpfExitReasonEXIT_NOT_UDP: "not-udp", bpfExitReasonEXIT_FRAGMENT: "fragment", bpfExitReasonEXIT_OUT_OF_SIGHT: "out-of-sight",
	bpfExitReasonEXIT_SHORT: "short", bpfExitReasonEXIT_FOREIGN: "foreign", bpfExitReasonEXIT_STRANGER: "stranger",
	bpfExitReasonEXIT_UNREADABLE: "unreadable", bpfExitReasonEXIT_REST: "rest", bpfExitReasonEXIT_REMEMBERED: "remembered",
	bpfExitReasonEXIT_LIVE: "live", bpfExitReasonEXIT_LIVE_REST: "live-rest", bpfExitReasonEXIT_LIVE_LOST: "live-lost",
	bpfExitReasonEXIT_LIVE_OTHER: "live-other",
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
	var all []error
	for _, hook := range slices.Backward(m.hooks) { // the second takes what the first has not done
		all = append(all, hook.Close())
	}
	all = append(all, m.follow.close(), unmap(m.cells), unmap(m.dirty), unmap(m.newest))
	m.cells, m.dirty, m.newest = nil, nil, nil
	o := m.objects
	for _, p := range []*ebpf.Program{o.Program, o.Nested} {
		if p != nil {
			all = append(all, p.Close())
		}
	}
	for _, x := range []*ebpf.Map{o.Streams, o.Tallies, o.Rests, o.Verdicts, o.Dirty, o.Newest, o.Held, o.Sites, o.Exits} {
		if x != nil {
			all = append(all, x.Close())
		}
	}
	return errors.Join(all...)
}

// ring hands out numbers, those given back last.
type ring struct {
	used []bool
	next int
}

func (r *ring) take() (uint32, bool) {
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

func (r *ring) give(i uint32) { r.used[i] = false }
