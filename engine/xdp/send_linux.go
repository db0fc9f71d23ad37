//go:build amd64 || arm64

package xdp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/kernelclock"
	"pelt/measure"
	"pelt/model"
	"pelt/unit"
)

// sender sends the packets of a flow as frames.
type sender struct {
	end     *transport
	route   route
	frame   []byte
	streams int
	workers []*worker
	batch   uint32

	sets  []*ebpf.Collection // of each worker
	hooks []link.Link

	schedule unit.Schedule
	paced    bool
	start    uint64 // of the measured part; written while others may read it
	port     *port  // a program on the sending card: many drivers take frames only beside one; nil for none
	passed   string // kind of the queue that frames pass by on their way out, "" if none
	tried    uint64 // frames of the warm-up that were sent before it
	steps    series

	silent  int             // streams that the receiver no longer consents to; the keeper's
	running context.Context // ends when nothing is to be sent any more
	over    context.CancelFunc
}

// open makes the programs of an end whose peer has consented.
func (t *transport) open(streams []engine.Stream) (frameEnd, model.Reason, error) {
	if t.order.Role == engine.Receive {
		return t.openReceiver(streams)
	}
	return t.openSender(streams)
}

func (t *transport) openSender(streams []engine.Stream) (frameEnd, model.Reason, error) {
	s := &sender{end: t, streams: t.order.Flow.Streams}
	s.running, s.over = context.WithCancel(context.Background())
	var why model.Reason
	err := t.host.Do(func() (err error) {
		s.route, why, err = t.engine.oneRoute(streams, true)
		if err != nil || why.Code != "" {
			return err
		}
		if s.passed, err = s.route.bypassed(); err == nil && s.passed != "" && t.order.Fallback {
			why = model.Reason{Code: model.FramesQueue, Name: s.route.name, Names: map[string]string{"queue": s.passed}}
		}
		return err
	})
	if err != nil || why.Code != "" {
		return nil, why, err
	}
	f := t.order.Flow
	forms := make([]shape, s.streams)
	for i := range forms { // that of a stream which carries nothing only takes its place
		a := streams[max(slices.Index(t.Living(), i), 0)]
		forms[i] = shape{
			source: s.route.source, target: s.route.target, from: unzoned(a.Local), to: unzoned(a.Remote),
			dscp: f.DSCP, dontFragment: f.DontFragment, payloadBytes: f.PayloadBytes,
		}
	}
	if need := forms[0].headerBytes() - ethernetBytes + f.PayloadBytes; need > s.route.mtu {
		return nil, s.route.tooLong(need), nil
	}
	if s.route.kind != veth {
		// Another's program does as well, and where none can be attached ready finds out.
		var err error
		if s.port, why, err = t.engine.port(t.host, s.route); err != nil {
			return nil, why, err
		} else if why.Code != "" {
			s.port = nil
		}
	}
	s.frame = forms[0].layOut()
	s.schedule, s.paced = f.Rate.Schedule(f.PayloadBytes)
	if err := s.load(forms[0]); err != nil {
		if why := reason(err); why.Code != "" {
			return nil, why, s.close()
		}
		return nil, model.Reason{}, errors.Join(fmt.Errorf("load the xdp sender: %w", err), s.close())
	}
	for i, form := range forms {
		frame := form.layOut()
		o := s.out(i)
		o.Sum, o.IpSum, o.Own = form.udpSum(frame), form.ipSum(frame), form.ownWords(frame)
		if !slices.Contains(t.Living(), i) {
			s.silence(i)
		}
	}
	return s, model.Reason{}, nil
}

func unzoned(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().WithZone(""), a.Port())
}

func (s *sender) load(form shape) error {
	n := threads(s.streams)
	cpus, err := allowedCPUs()
	if err != nil {
		return err
	}
	six := uint32(0)
	if form.six() {
		six = 1
	}
	header := s.frame[:8*sendLimitsCOMMON_WORDS]
	identified := uint32(0)
	if form.fragile() {
		identified = 1
	}
	for i := range n {
		spec, err := loadSend()
		if err != nil {
			return err
		}
		for name, v := range map[string]any{
			sendVarOutInterface: uint32(s.route.index), sendVarOutSpace: s.route.space, sendVarSix: six,
			sendVarTrial: s.end.order.Trial, sendVarHeader: header, sendVarIdentified: identified,
			sendVarClockAhead: uint64(kernelclock.Ahead()),
		} {
			if err := spec.Variables[name].Set(v); err != nil {
				return err
			}
		}
		set, memory, err := newSet(spec)
		if set != nil {
			s.sets = append(s.sets, set)
		}
		if err != nil {
			return err
		}
		cpu := cpus[(max(s.end.order.CPU, 0)+i)%len(cpus)]
		w := &worker{program: set.Programs[sendProgSend], cpu: cpu, memory: memory}
		s.workers = append(s.workers, w)
		w.state, w.outs = &variable[sendWorker](w.memory, sendVarSelf)[0], variable[sendOut](w.memory, sendVarOuts)
		for _, name := range []string{sendProgTransmitted, sendProgUnredirected} {
			hook, err := link.AttachTracing(link.TracingOptions{Program: set.Programs[name],
				AttachType: ebpf.AttachTraceRawTp})
			if err != nil {
				return fmt.Errorf("attach to the tracepoints of redirected frames: %w", err)
			}
			s.hooks = append(s.hooks, hook)
		}
	}
	s.steps.marks = make([]uint32, n)
	return nil
}

// out returns the program's state of one stream.
func (s *sender) out(i int) *sendOut {
	n := len(s.workers)
	return &s.workers[i%n].outs[i/n]
}

func (s *sender) ready() (why model.Reason, err error) {
	err = s.end.host.Do(func() error {
		errno := ""
		f, known := abilities(s.route.index)
		takes := f&netdevXDPActNDOXmit != 0
		if !known { // before Linux 6.3
			if takes, errno, err = s.tryFrame(); err != nil {
				return err
			}
		}
		if !takes {
			why = model.Reason{Code: model.FramesUnsent, Name: s.route.name, Text: errno}
		}
		return nil
	})
	return why, err
}

// tryFrame sends one frame of the warm-up, to see whether the device takes it. Linux before 6.3 does not tell
// otherwise.
func (s *sender) tryFrame() (takes bool, errno string, err error) {
	w := s.workers[0].state
	before := *w
	w.OutCount, w.MeasureAt, w.EndAt = 1, math.MaxUint64, math.MaxUint64
	attr := s.attr(s.workers[0])
	attr.repeat, attr.batchBytes = 1, 1
	_, _, e := unix.Syscall(unix.SYS_BPF, bpfProgRun, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(s.frame)
	lost, last := load(&w.WarmupLost), load(&w.LastError)
	if s.tried = load(&w.Emitted) - lost; last != 0 {
		errno = unix.ErrnoName(unix.Errno(last))
	}
	*w = before
	s.out(0).Sequence = 0
	if e == unix.EINVAL || e == unix.EOPNOTSUPP { // a kernel that knows no live frames, whatever its number
		return false, "BPF_PROG_RUN: " + unix.ErrnoName(e), nil
	}
	if e != 0 && e != unix.EINTR {
		return false, "", fmt.Errorf("send an XDP frame out of %s (BPF_PROG_RUN in live mode, Linux 5.18): %w",
			s.route.name, e)
	}
	return lost == 0, errno, nil
}

// harvest moves finished seconds from the programs to the series; all: the last one, too.
func (s *sender) harvest(all bool) {
	for i, w := range s.workers {
		state := w.state
		if !s.measured(state) {
			continue
		}
		s.steps.take(i, &state.Steps, load32(&state.Step))
		if all {
			s.steps.add(load32(&state.Step), load(&state.Emitted)-load(&state.Counted))
		}
	}
}

// count may be called from any goroutine.
func (s *sender) count() (n engine.Snapshot) {
	for _, w := range s.workers {
		if state := w.state; s.measured(state) {
			n.Packets += load(&state.Emitted) - load(&state.Warmup)
		}
	}
	for _, i := range s.end.Living() {
		n.Silent += int(load32(&s.out(i).Silent))
	}
	return n
}

// measured reports whether a worker came as far as the measured part.
func (s *sender) measured(state *sendWorker) bool {
	if load(&s.start) == 0 { // and try may be using the state
		return false
	}
	phase := load32(&state.Phase)
	return phase == uint32(sendPhaseMEASURE) || phase == uint32(sendPhaseOVER) && load(&state.Begin) == load(&s.start)
}

func (s *sender) mode() model.Reason {
	if n := len(s.workers); n > 1 {
		return model.NewReason(model.FramesOut, "name", s.route.name, "threads", float64(n))
	}
	return model.NewReason(model.FramesOut, "name", s.route.name)
}

func (s *sender) account(r *engine.Report, _ engine.Sent) {
	out := &engine.SendReport{Errors: map[string]uint64{}, Unsent: map[string]uint64{}, Cable: s.route.kind == veth,
		PerStep: slices.Clone(s.steps.counts)}
	n := len(s.workers)
	for i := range s.streams {
		attempted := uint64(0)
		if s.measured(s.workers[i%n].state) {
			attempted = load(&s.out(i).Sequence)
		}
		out.Streams = append(out.Streams, attempted)
		out.Attempted += attempted
		if o := s.out(i); load32(&o.Silent) != 0 && slices.Contains(s.end.Living(), i) {
			out.Silent++
			if s.paced { // a flood has no slots
				out.SlotsSilent += load(&o.Skipped)
			}
		}
	}
	out.WarmupSent = s.tried
	if s.passed != "" {
		r.Warnings = append(r.Warnings, model.Reason{Code: model.FramesPass, Name: s.route.name,
			Names: map[string]string{"queue": s.passed}})
	}
	var ended uint64
	var waited int64
	for _, w := range s.workers {
		state := w.state
		if s.measured(state) {
			out.WarmupSent += load(&state.Warmup)
		} else {
			out.WarmupSent += load(&state.Emitted)
		}
		ended = max(ended, load(&state.Ended))
		waited += w.waited
		addUnsent(out.Unsent, state)
		r.CPU.ThreadRatio = max(r.CPU.ThreadRatio, w.ratio)
	}
	out.Accepted = out.Attempted
	for _, lost := range out.Unsent {
		out.Accepted -= min(lost, out.Accepted)
	}
	if s.start != 0 {
		out.DurationNanos = max(int64(ended-s.start), 0)
	}
	out.Planned, out.BurstMax = out.Attempted, fullBatch
	if s.paced {
		whole := s.end.order.Timing.Measure().Nanoseconds()
		slots := s.schedule.Count(min(whole, out.DurationNanos))
		out.Planned = 0
		for _, i := range s.end.Living() { // slot k is stream k modulo their number's
			out.Planned += (slots + uint64(s.streams-1-i)) / uint64(s.streams)
		}
		out.SlotsSilent = min(out.SlotsSilent, out.Planned-min(out.Planned, out.Attempted))
		out.Late = out.Planned - min(out.Planned, out.Attempted) - out.SlotsSilent
		lates := s.histogram(sendVarLates)
		out.Lateness = lates.Percentiles()
		if out.BurstMax = 1; s.end.order.Flow.Burst > 0 && out.Lateness != nil {
			out.BurstMax = min(1+int(out.Lateness.Max/float64(s.workers[0].state.Pacer.Whole)), s.end.order.Flow.Burst)
		}
		if out.Late > 0 {
			lost := s.schedule.Due(out.Late)
			waited = min(waited, lost)
			// its thread never sleeps
			out.LateTime = &engine.LateTime{Nanos: lost, WaitNanos: waited, RunNanos: lost - waited}
		}
	}
	gaps := s.histogram(sendVarGaps)
	out.Gap, out.GapCounts = gaps.Percentiles(), gaps.Buckets()
	r.Send = out
}

// histogram joins one of all workers.
func (s *sender) histogram(name string) *measure.Histogram {
	sum := measure.NewHistogram(1)
	for _, w := range s.workers {
		h := &variable[sendHistogram](w.memory, name)[0]
		durations{h.Out, h.Least, h.Most, h.Bin[:]}.record(func(nanos, n int64) { sum.Record(0, nanos, n) })
	}
	return sum
}

// addUnsent names what the device did not take of a worker's frames. The last error may
// be of the warm-up, and is none of frames that the ring had no room for.
func addUnsent(to map[string]uint64, w *sendWorker) {
	if lost := load(&w.Refused); lost > 0 {
		to[model.CauseRingFull] += lost
	}
	if lost := load(&w.Failed); lost > 0 {
		errno := ""
		if e := load(&w.LastError); e != 0 {
			errno = unix.ErrnoName(unix.Errno(e))
		}
		to[cmp.Or(errno, model.CauseNotRedirected)] += lost
	}
}

func (s *sender) close() error {
	var errs []error
	for _, h := range s.hooks {
		errs = append(errs, h.Close())
	}
	for _, w := range s.workers {
		errs = append(errs, w.memory.close())
	}
	if s.port != nil {
		errs = append(errs, s.port.leave())
		s.port = nil
	}
	s.hooks, s.workers = nil, nil
	for _, set := range s.sets {
		set.Close()
	}
	s.sets = nil
	return errors.Join(errs...)
}
