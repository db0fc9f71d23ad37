//go:build amd64 || arm64

package drops

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"pelt/internal/kernelclock"
	"pelt/model"
)

const (
	countOnly  = uint16(bpfLimitsCOUNT_ONLY)
	byUDPPorts = uint16(bpfByPortBY_UDP_PORTS)
	byTCPPorts = uint16(bpfByPortBY_TCP_PORTS)
	warmupBit  = 0x8000
	maxStreams = int(bpfLimitsSTREAMS) / 2
	// settled is how long a run of the program may still use what it looked up
	// before it was taken back.
	settled = 10 * time.Millisecond
)

// trial is what is tracked of one trial.
type trial struct {
	flows  []*flow // in the order of their tracks
	tracks int
}

type flow struct {
	name    string
	way     string // of a meeting, which has no streams; "" of a flow's test packets
	id      uint32
	mode    model.DropMode
	why     model.Reasons
	streams []*stream
	tuples  []map[model.Tuple]bool // by stream: the views of it
	follow  bool
	number  uint16 // that its packets carry
	own     bool   // no other flow's do: it names them, whatever their ports
	tcp     bool
	iperf   uint16            // 1: the packets have the header of iperf3
	warmup  map[uint32]uint64 // of TCP, by site: segments dropped before the measured part
	meeting []bpfMeetingKey   // of a way of a meeting
}

// Track is one view of one flow's streams, or of its meeting. It must be closed.
type Track struct {
	machine *Machine
	trial   uint16
	flow    *flow
	closed  bool
}

// Track watches the streams of one flow; the trial's number has no warm-up bit.
// A second track of the same trial and flow, by the other end in the same
// process, adds its view of the same streams: NAT may have changed their ports.
func (m *Machine) Track(number uint16, name string, tuples []model.Tuple, o TrackOptions) (*Track, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, errClosed
	case (number|o.Number)&warmupBit != 0:
		return nil, fmt.Errorf("track drops of trial %d: want a number below %d", number|o.Number, warmupBit)
	case len(tuples) == 0 || len(tuples) > maxStreams:
		return nil, fmt.Errorf("track drops of flow %q: %d streams; want 1 to %d", name, len(tuples), maxStreams)
	}
	time.Sleep(time.Until(m.freed.Add(settled)))
	t := cmp.Or(m.trials[number], &trial{})
	f, fresh, err := m.flow(t, name, len(tuples), o)
	if err != nil {
		return nil, err
	}
	if fresh {
		f.number = cmp.Or(o.Number, number)
	}
	if err := m.addPorts(t, f, tuples); err != nil {
		if fresh {
			m.forget(f)
		}
		return nil, err
	}
	if o.Number != 0 && !f.own {
		if err := m.addNumber(f); err != nil {
			f.why = append(f.why, model.Reason{Code: model.PortsUnfollowed, Text: model.SystemSaid(err)})
		}
	}
	if o.Fragments && !f.follow {
		f.follow = true
		if err := m.follow.want(&m.kernel, &m.objects); err != nil {
			f.why = append(f.why, model.Reason{Code: model.PiecesUnfollowed, Of: model.Reasons{Why(err)}})
		}
	}
	if fresh {
		t.flows = append(t.flows, f)
	}
	m.trials[number] = t
	t.tracks++
	if f.mode == model.DropsSeq {
		m.startReading()
	}
	return &Track{machine: m, trial: number, flow: f}, nil
}

// flow finds the trial's flow, or makes it.
func (m *Machine) flow(t *trial, name string, streams int, o TrackOptions) (f *flow, fresh bool, err error) {
	for _, f := range t.flows {
		if f.name != name || f.way != "" {
			continue
		}
		if len(f.streams) != streams {
			return nil, false, fmt.Errorf("track drops of flow %q: %d streams; its other end has %d", name, streams,
				len(f.streams))
		}
		return f, false, nil
	}
	o.Mode = cmp.Or(o.Mode, model.DropsSeq)
	if o.TCP {
		o.Mode = model.DropsCount
	}
	f = &flow{name: name, mode: o.Mode, tcp: o.TCP, streams: make([]*stream, streams),
		tuples: make([]map[model.Tuple]bool, streams)}
	if o.Mode != model.DropsSeq && o.Mode != model.DropsCount {
		return nil, false, fmt.Errorf("track drops of flow %q: no mode %q; want seq or count", name, o.Mode)
	}
	if o.Iperf {
		f.iperf = 1
	}
	if err := m.number(f); err != nil {
		return nil, false, err
	}
	pages, ok := 0, false
	if f.mode == model.DropsSeq {
		if pages = m.pages.share(streams, o.Packets); pages == 0 {
			f.mode, f.why = model.DropsCount, model.Reasons{{Code: model.NoRoom}}
		}
	}
	for i := range f.streams {
		s := &stream{bits: countOnly, packets: o.Packets}
		if s.slot, ok = m.slots.take(); !ok {
			m.forget(f)
			return nil, false, refuse(watching, model.NewReason(model.TracksFull,
				"streams_count", float64(bpfLimitsSTREAMS)), nil)
		}
		f.streams[i], f.tuples[i] = s, map[model.Tuple]bool{}
		m.newest[2*s.slot], m.newest[2*s.slot+1] = 0, kernelclock.Now()
		if pages > 0 && m.pages.take(s, pages) {
			clear(m.cells[s.base : s.base+1<<s.bits])
			continue
		}
		if pages > 0 { // free pages lie scattered
			f.mode, f.why = model.DropsCount, model.Reasons{{Code: model.NoRoom}}
			pages = 0
		}
	}
	return f, true, nil
}

// number gives a flow its number in the tallies.
func (m *Machine) number(f *flow) error {
	var ok bool
	if f.id, ok = m.flows.take(); !ok {
		return refuse(watching, model.NewReason(model.TracksFull, "flows_count", float64(bpfLimitsFLOWS-1)), nil)
	}
	if err := m.objects.Rests.Put(f.id, bpfRest{}); err != nil {
		m.flows.give(f.id)
		return fmt.Errorf("track drops of flow %q: %w", f.name, err)
	}
	return nil
}

// Meet watches the packets by which the ends of a flow meet, whatever their ports, by the number and the tag that they
// carry. It
// counts them for each way.
func (m *Machine) Meet(trial uint16, name string, number, tag uint16) (*Track, error) {
	return m.meet(trial, name, bpfMeetingKey{Trial: number, Tag: tag}, 0)
}

// MeetTCP watches what passes from and to the port where a flow of TCP awaits its connections, but for the data of
// connections that are tracked. A port that another trial watches stays that one's.
// Peer is the address where, as the host that calls knows it; invalid on the host that is called.
func (m *Machine) MeetTCP(number uint16, name string, port uint16, peer netip.Addr) (*Track, error) {
	return m.meet(number, name, bpfMeetingKey{Tag: port, ByPort: byTCPPorts}, folded(peer))
}

// folded is an address as the program compares it.
func folded(a netip.Addr) (word uint32) {
	for bytes := a.Unmap().AsSlice(); len(bytes) > 0; bytes = bytes[4:] {
		word ^= binary.NativeEndian.Uint32(bytes)
	}
	return word
}

func (m *Machine) meet(number uint16, name string, key bpfMeetingKey, peer uint32) (*Track, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	time.Sleep(time.Until(m.freed.Add(settled)))
	t := cmp.Or(m.trials[number], &trial{})
	for i, way := range []string{model.WayAnswers, model.WayAsks} {
		key.Asks = uint16(i)
		if err := m.meetOneWay(t, name, way, key, peer); err != nil {
			if t.tracks == 0 {
				m.forgetAll(t)
			}
			return nil, err
		}
	}
	m.trials[number] = t
	t.tracks++
	return &Track{machine: m, trial: number, flow: &flow{mode: model.DropsCount}}, nil
}

func (m *Machine) meetOneWay(t *trial, name, way string, key bpfMeetingKey, peer uint32) error {
	i := slices.IndexFunc(t.flows, func(f *flow) bool { return f.name == name && f.way == way })
	if i < 0 {
		f := &flow{name: name, way: way, mode: model.DropsCount}
		if err := m.number(f); err != nil {
			return err
		}
		i, t.flows = len(t.flows), append(t.flows, f)
	}
	f := t.flows[i]
	if slices.Contains(f.meeting, key) {
		return nil
	}
	err := m.objects.Meetings.Update(key, bpfStream{Flow: f.id, Base: peer, Bits: countOnly}, ebpf.UpdateNoExist)
	if err == nil {
		f.meeting = append(f.meeting, key)
	} else if !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("track the first packets of flow %q: %w", name, err)
	}
	return nil
}

// addPorts makes the program know the streams by these ports, both with their trial
// and, for packets whose payload is out of reach, without it.
func (m *Machine) addPorts(t *trial, f *flow, tuples []model.Tuple) error {
	for i, p := range tuples {
		peer := folded(p.Peer)
		p.Peer = netip.Addr{}                       // ports are what packets are known by
		if f.tuples[i][p] || p == (model.Tuple{}) { // it is known, or carries nothing
			continue
		}
		for _, other := range append(slices.Clip(t.flows), f) {
			for j, seen := range other.tuples {
				if seen[p] && other.tcp == f.tcp && (other != f || i != j) {
					return refuse(watching, model.NewReason(model.PortsShared, "flow", other.name, "from", p.From,
						"to", p.To), nil)
				}
			}
		}
		s := f.streams[i]
		v := bpfStream{Flow: f.id, Slot: s.slot, Base: s.base, Bits: s.bits, Iperf: f.iperf}
		if f.tcp {
			v.Base = peer
		}
		for _, k := range f.keys(p) {
			if err := m.objects.Streams.Put(k, v); err != nil {
				return fmt.Errorf("track drops of flow %q: %w", f.name, err)
			}
		}
		f.tuples[i][p] = true
	}
	return nil
}

// addNumber makes the program know the flow by its number, whatever the ports.
func (m *Machine) addNumber(f *flow) error {
	v := bpfStream{Flow: f.id, Bits: countOnly, Iperf: f.iperf}
	if len(f.streams) == 1 {
		s := f.streams[0]
		v.Slot, v.Base, v.Bits = s.slot, s.base, s.bits
	} else if f.mode == model.DropsSeq {
		v.Bits = uint16(bpfLimitsANY_STREAM)
	}
	f.own = true
	return m.objects.Streams.Put(bpfStreamKey{Trial: f.number}, v)
}

// keys are those of a stream in the program's table.
func (f *flow) keys(p model.Tuple) []bpfStreamKey {
	if f.tcp {
		return []bpfStreamKey{{From: p.From, To: p.To, ByPort: byTCPPorts}}
	}
	return []bpfStreamKey{{Trial: f.number, From: p.From, To: p.To}, {From: p.From, To: p.To, ByPort: byUDPPorts}}
}

// BeginMeasured takes what was dropped so far of a flow of TCP for its warm-up's: its segments do not say which they
// are.
func (t *Track) BeginMeasured() error {
	m := t.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.closed || m.closed || !t.flow.tcp {
		return nil
	}
	sums, err := m.tallies()
	t.flow.warmup = map[uint32]uint64{}
	for k, n := range sums {
		if k.Flow == t.flow.id {
			t.flow.warmup[k.Site] = n.Packets
		}
	}
	return err
}

// Mode is what the track came to: seq, or count if Why says so.
func (t *Track) Mode() model.DropMode { return t.flow.mode }

// Why is empty if the track is what was asked for.
func (t *Track) Why() model.Reasons {
	t.machine.mu.Lock()
	defer t.machine.mu.Unlock()
	return t.flow.why
}

// Close ends the view. What is known of the trial is forgotten with its last
// track. It may be called more than once.
func (t *Track) Close() error {
	m := t.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.closed || m.closed {
		return nil
	}
	t.closed = true
	all := m.trials[t.trial]
	if all.tracks--; all.tracks > 0 {
		return nil
	}
	delete(m.trials, t.trial)
	err := m.forgetAll(all)
	if len(m.trials) == 0 {
		m.stopReading()
	}
	return err
}

func (m *Machine) forgetAll(t *trial) error {
	var errs []error
	for _, f := range t.flows {
		errs = append(errs, m.forget(f))
	}
	return errors.Join(errs...)
}

// forget takes back all that a flow holds.
func (m *Machine) forget(f *flow) error {
	var errs []error
	for i, s := range f.streams {
		if s == nil {
			continue
		}
		for p := range f.tuples[i] {
			for _, k := range f.keys(p) {
				var v bpfStream
				if k.ByPort != 0 && m.objects.Streams.Lookup(k, &v) == nil && v.Slot != s.slot {
					continue // a later trial took over the ports
				}
				errs = append(errs, present(m.objects.Streams.Delete(k)))
			}
		}
		m.pages.give(s)
		m.slots.give(s.slot)
	}
	if f.own {
		errs = append(errs, present(m.objects.Streams.Delete(bpfStreamKey{Trial: f.number})))
	}
	for _, k := range f.meeting {
		errs = append(errs, present(m.objects.Meetings.Delete(k)))
	}
	if f.follow {
		f.follow = false
		errs = append(errs, m.follow.done(&m.objects))
	}
	sums, err := m.tallies()
	errs = append(errs, err)
	for k := range sums {
		if k.Flow == f.id {
			errs = append(errs, present(m.objects.Tallies.Delete(k)))
		}
	}
	m.flows.give(f.id)
	m.freed = time.Now()
	return errors.Join(errs...)
}

func present(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

func (m *Machine) tallies() (map[bpfTallyKey]bpfTally, error) {
	sums := map[bpfTallyKey]bpfTally{}
	var k bpfTallyKey
	var v bpfTally
	entries := m.objects.Tallies.Iterate()
	for entries.Next(&k, &v) {
		sums[k] = v
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read the tallies: %w", err)
	}
	return sums, nil
}
