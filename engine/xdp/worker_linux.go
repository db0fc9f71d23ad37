//go:build amd64 || arm64

package xdp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/kernelclock"
)

// worker is one thread.
type worker struct {
	program *ebpf.Program
	memory  memory
	state   *sendWorker
	outs    []sendOut // stream i of the flow is the i/n'th of worker i%n, of n
	cpu     int
	thread  atomic.Int32
	err     error
	ratio   float64 // of its core
	waited  int64   // ns that it was ready without a core
}

// threads is how many workers send: they share the streams evenly.
func threads(streams int) int {
	n := min(streams, max(runtime.NumCPU()/2, 1), int(sendLimitsWORKERS))
	for streams%n != 0 {
		n--
	}
	return n
}

// allowedCPUs are the cores that this process may use.
func allowedCPUs() (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("find the cores that may be used, up to 1024: %w", err)
	}
	for i := 0; len(list) < set.Count(); i++ {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list, nil
}

// writeOrders writes what each worker sends, and no times yet: setTimes writes those.
func (s *sender) writeOrders() {
	n := len(s.workers)
	for i := range s.workers {
		w := s.workers[i].state
		w.BeginAt, w.MeasureAt, w.EndAt = math.MaxUint64, math.MaxUint64, math.MaxUint64
		w.OutCount = uint32(s.streams / n)
		if !s.paced {
			continue
		}
		p := &w.Pacer
		p.Whole, p.Rest, p.Parts = interval(s.schedule, uint64(n))
		p.Patience, p.LeastGap = catchUp(s.end.order.Flow.Burst*s.streams/n, p.Whole) // of each stream
		w.FirstDue = uint64(s.schedule.Due(uint64(i)))
	}
	s.batch = batchOf(s.schedule, s.paced, n)
}

// silence makes the program send no more on a stream. Without any stream left the sender ends.
func (s *sender) silence(stream int) {
	store32(&s.out(stream).Silent, 1)
	if s.silent++; s.silent == s.streams {
		s.over()
	}
}

func (s *sender) run(stopped context.Context) error {
	defer context.AfterFunc(stopped, s.over)()
	s.writeOrders()
	var workers sync.WaitGroup
	for i, w := range s.workers {
		workers.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its pinning
			if w.err = s.end.host.Do(func() error { return s.work(i) }); w.err != nil {
				s.over()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
		s.over()
	}()
	if s.setTimes() {
		left := time.Duration(load(&s.start) - kernelclock.Now() + uint64(s.end.order.Timing.Measure()))
		defer time.AfterFunc(left, s.over).Stop()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for s.running.Err() == nil {
			select {
			case <-tick.C:
				s.harvest(false)
			case <-s.running.Done():
			}
		}
	}
	s.halt(done)
	s.harvest(true)
	var errs []error
	for _, w := range s.workers {
		errs = append(errs, w.err)
	}
	return errors.Join(errs...)
}

// setTimes waits until all workers run, then writes when they begin and end; false if they end before. The kernel
// takes some milliseconds before the first frame.
func (s *sender) setTimes() bool {
	idle := func(w *worker) bool { return load32(&w.state.Processor) == 0 }
	for slices.ContainsFunc(s.workers, idle) {
		if !engine.Sleep(s.running, 100*time.Microsecond) {
			return false
		}
	}
	t := s.end.order.Timing
	begin := kernelclock.Now() + uint64(time.Millisecond)
	store(&s.start, begin+uint64(t.Warmup()))
	for _, w := range s.workers {
		store(&w.state.EndAt, s.start+uint64(t.Measure()))
		store(&w.state.MeasureAt, s.start)
		store(&w.state.BeginAt, begin)
	}
	return true
}

// halt ends the workers. A signal ends the kernel's loop; one that comes before
// the loop began is lost, so it is repeated.
func (s *sender) halt(done <-chan struct{}) {
	for {
		for _, w := range s.workers {
			store32(&w.state.Stop, 1)
			store(&w.state.Turn, 0) // makes the program look
			w.interrupt()
		}
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// runAttr is union bpf_attr for BPF_PROG_RUN (include/uapi/linux/bpf.h).
type runAttr struct {
	program, result             uint32
	dataInBytes, dataOutBytes   uint32
	dataIn, dataOut             uint64
	repeat, duration            uint32
	contextInBytes, contextOut  uint32
	contextInAt, contextOutAt   uint64
	flags, cpu, batchBytes, pad uint32
}

const (
	bpfProgRun     = 10
	testLiveFrames = 1 << 1 // BPF_F_TEST_XDP_LIVE_FRAMES
)

// paceNice gives a worker with a schedule three times the share of an ordinary
// thread, to keep it. At full speed it is an ordinary one.
const paceNice = -5

// interrupt makes the kernel look up from its loop.
func (w *worker) interrupt() {
	if id := w.thread.Load(); id != 0 {
		_ = unix.Tgkill(unix.Getpid(), int(id), unix.SIGURG) // it may have ended just now
	}
}

// work runs one worker's program until it is over. It is called on a thread of its own.
func (s *sender) work(i int) error {
	w := s.workers[i]
	state := w.state
	if err := engine.Pin(w.cpu); err != nil {
		return fmt.Errorf("pin the thread of worker %d to core %d: %w", i, w.cpu, err)
	}
	if s.paced {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, paceNice) // where it is allowed
	}
	w.thread.Store(int32(unix.Gettid()))
	thread := kernelclock.OpenThread()
	defer thread.Close()
	from := kernelclock.Now()
	used, waited, _ := thread.Read()
	attr := s.attr(w)
	for load32(&state.Stop) == 0 && load32(&state.Phase) != uint32(sendPhaseOVER) {
		_, _, errno := unix.Syscall(unix.SYS_BPF, bpfProgRun, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		if errno != 0 && errno != unix.EINTR {
			return fmt.Errorf("send XDP frames out of %s (BPF_PROG_RUN in live mode, Linux 5.18): %w", s.route.name,
				errno)
		}
	}
	runtime.KeepAlive(s.frame)
	if load32(&state.Phase) != uint32(sendPhaseOVER) { // the signal came before the program looked again
		store(&state.Ended, kernelclock.Now())
		store32(&state.Phase, uint32(sendPhaseOVER))
	}
	usedNow, waitedNow, _ := thread.Read()
	w.ratio = min(float64(usedNow-used)/float64(max(kernelclock.Now()-from, 1)), 1)
	w.waited = waitedNow - waited
	return nil
}

func (s *sender) attr(w *worker) runAttr {
	return runAttr{
		program:     uint32(w.program.FD()),
		dataInBytes: uint32(len(s.frame)), dataIn: uint64(uintptr(unsafe.Pointer(&s.frame[0]))),
		repeat: math.MaxUint32, flags: testLiveFrames, batchBytes: s.batch,
	}
}
