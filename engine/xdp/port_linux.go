//go:build amd64 || arm64

package xdp

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/kernelclock"
	"pelt/measure"
	"pelt/model"
)

// lingers is how long a program stays on its interface after its last flow: some
// drivers take the link down for seconds when one comes or goes.
const lingers = 5 * time.Second

// port is the receiving program on one interface.
type port struct {
	engine *Engine
	route  route
	how    string // the program is attached: native or generic
	set    *ebpf.Collection
	hook   link.Link
	ins    []receiveIn
	flows  []receiveFlow
	heads  []uint32
	memory memory
	bits   []uint64

	// Guarded by engine.mu:
	users  int
	leaves *time.Timer
	taken  [sendLimitsFLOWS]bool
	used   [sendLimitsINS]bool
}

func (e *Engine) port(host engine.Host, w route) (*port, model.Reason, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.ports[w.index]; p != nil {
		p.users++
		if p.leaves != nil {
			p.leaves.Stop()
			p.leaves = nil
		}
		return p, model.Reason{}, nil
	}
	p := &port{engine: e, route: w, users: 1}
	if why, err := p.open(host); why.Code != "" || err != nil {
		return nil, why, errors.Join(err, p.close())
	}
	if e.ports == nil {
		e.ports = map[int]*port{}
	}
	e.ports[w.index] = p
	return p, model.Reason{}, nil
}

func (p *port) open(host engine.Host) (why model.Reason, err error) {
	spec, err := loadReceive()
	if err != nil {
		return why, err
	}
	if err := spec.Variables[receiveVarClockAhead].Set(uint64(kernelclock.Ahead())); err != nil {
		return why, err
	}
	if p.set, p.memory, err = newSet(spec); err != nil {
		if why = reason(err); why.Code != "" {
			err = nil
		}
		return why, err
	}
	p.share()
	err = host.Do(func() error { why = p.attach(); return nil })
	return why, err
}

// share finds the program's variables in the memory that both have.
func (p *port) share() {
	p.ins, p.flows = variable[receiveIn](p.memory, receiveVarIns), variable[receiveFlow](p.memory, receiveVarFlows)
	p.heads, p.bits = variable[uint32](p.memory, receiveVarHeads), variable[uint64](p.memory, receiveVarBits)
}

// attach puts the program on the interface: in the driver, or where that cannot
// take it, in the kernel's path behind it. It returns why the interface takes none; without a code it does.
func (p *port) attach() (why model.Reason) {
	options := link.XDPOptions{Program: p.set.Programs[receiveProgReceive], Interface: p.route.index}
	var err error
	for _, mode := range []struct {
		flags link.XDPAttachFlags
		how   string
	}{{link.XDPDriverMode, "native"}, {link.XDPGenericMode, "generic"}} {
		options.Flags = mode.flags
		if p.hook, err = link.AttachXDP(options); err == nil {
			p.how = mode.how
			return why
		}
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) { // the other way would be beside it
			return model.Reason{Code: model.ProgramThere, Name: p.route.name}
		}
	}
	if errors.Is(err, unix.EPERM) {
		return model.Reason{Code: model.AttachRights}
	}
	return model.Reason{Code: model.NoProgramTaken, Name: p.route.name, Text: err.Error()}
}

// admit gives a flow its slots and lets its packets in. It returns why it cannot; without a code it did.
func (p *port) admit(r *receiver, streams []engine.Stream) (why model.Reason) {
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	r.flow = -1
	for i, taken := range p.taken {
		if !taken {
			r.flow = i
			break
		}
	}
	var free []uint32
	for i, used := range p.used {
		if !used && len(free) < len(streams) {
			free = append(free, uint32(i))
		}
	}
	if r.flow < 0 || len(free) < len(streams) {
		return model.Reason{Code: model.FramesFull, Name: p.route.name, Numbers: map[string]float64{
			"flows": float64(sendLimitsFLOWS), "streams": float64(sendLimitsINS)}}
	}
	if err := p.clear(r.flow); err != nil {
		return model.Reason{Code: model.FramesUncleared, Text: err.Error()}
	}
	p.taken[r.flow] = true
	o := r.end.order
	store(&p.flows[r.flow].Begin, 0)
	oneClock := uint32(0)
	if o.OneClock {
		oneClock = 1
	}
	words := int(sendLimitsFLOW_WORDS)
	for words > 64 && words*len(streams) > int(sendLimitsFLOW_WORDS) {
		words /= 2
	}
	for i, a := range streams {
		slot := free[i]
		first := r.flow*int(sendLimitsFLOW_WORDS) + i*words
		w := &window{words: p.bits[first : first+words], gone: model.MarksWriter{Limit: o.ListBytes() / len(streams)}}
		clear(w.words)
		p.ins[slot] = receiveIn{
			Length: networkOrder(uint16(udpBytes + o.Flow.PayloadBytes)), Trial: o.Trial,
			Flow: uint32(r.flow), Skip: skip(o.Flow.Rate,
				o.Flow.PayloadBytes), OneClock: oneClock, Words: uint32(first), Mask: uint64(words)*64 - 1,
			Top: w.top(),
		}
		p.ins[slot].name(a)
		p.used[slot] = true
		r.slots, r.windows, r.steps.marks = append(r.slots, slot), append(r.windows, w), append(r.steps.marks, 0)
	}
	p.writeChains()
	return why
}

// name sets the 5-tuple of a stream's packets.
func (in *receiveIn) name(a engine.Stream) {
	store32(&in.Ports, uint32(networkOrder(a.Remote.Port()))|uint32(networkOrder(a.Local.Port()))<<16)
	if source, target := addressWords(a.Remote.Addr()), addressWords(a.Local.Addr()); a.Remote.Addr().Is6() {
		in.Source, in.Target, in.Family = source, target, 6
	} else {
		store(&in.Pair, uint64(source[0])|uint64(target[0])<<32)
		store32(&in.Family, 4)
	}
}

// rename lets the packets of a stream in that has another 5-tuple from now on. Until all of it is written, they may
// pass to the sockets.
func (p *port) rename(r *receiver, stream int, a engine.Stream) {
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	if stream < len(r.slots) && p.ins[r.slots[stream]].Family != 0 { // else it is dismissed
		p.ins[r.slots[stream]].name(a)
		p.writeChains()
	}
}

// writeChains writes the hash chains in which the program looks up a packet's stream. While it writes, a stream may
// be missing, but no chain leads to a wrong one.
func (p *port) writeChains() {
	var heads [sendLimitsCHAINS]uint32
	for i := range p.ins {
		in := &p.ins[i]
		if !p.used[i] || in.Family == 0 {
			continue
		}
		at := in.Ports * 0x9e3779b1 >> (32 - uint32(sendLimitsCHAIN_BITS))
		store32(&in.Next, heads[at])
		heads[at] = uint32(i) + 1
	}
	for i, head := range heads {
		store32(&p.heads[i], head)
	}
}

// settleTime is far longer than a program runs.
const settleTime = time.Millisecond

// dismiss lets no more packets of a flow in. Its slots stay as they are until it leaves.
func (p *port) dismiss(r *receiver) {
	p.engine.mu.Lock()
	gone := false
	for _, slot := range r.slots {
		gone = gone || p.ins[slot].Family != 0
		store32(&p.ins[slot].Family, 0)
	}
	p.writeChains()
	p.engine.mu.Unlock()
	if gone {
		time.Sleep(settleTime)
	}
}

// clear empties a flow's histogram.
func (p *port) clear(flow int) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	empty := make([]receiveHistogram, cpus)
	if err := p.set.Maps[receiveMapDelays].Put(uint32(flow), empty); err != nil {
		return fmt.Errorf("clear the delays: %w", err)
	}
	return nil
}

// delays returns the delays of a flow.
func (p *port) delays(flow int) (*model.Percentiles, error) {
	var all []receiveHistogram
	if err := p.set.Maps[receiveMapDelays].Lookup(uint32(flow), &all); err != nil {
		return nil, err
	}
	h := measure.NewHistogram(1)
	for i := range all {
		durations{all[i].Out, all[i].Least, all[i].Most,
			all[i].Bin[:]}.record(func(nanos, n int64) { h.Record(0, nanos, n) })
	}
	return h.Percentiles(), nil
}

// free gives back what a dismissed flow held.
func (p *port) free(r *receiver) {
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	for _, slot := range r.slots {
		p.used[slot] = false
	}
	r.slots = nil
	if r.flow >= 0 {
		p.taken[r.flow] = false
	}
}

// leave ends one use; the last one's end takes the program off a little later.
func (p *port) leave() error {
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	if p.users--; p.users > 0 {
		return nil
	}
	p.leaves = time.AfterFunc(lingers, func() {
		p.engine.mu.Lock()
		defer p.engine.mu.Unlock()
		if p.users == 0 && p.engine.ports[p.route.index] == p {
			delete(p.engine.ports, p.route.index)
			_ = p.close() // nothing is left to be done about it
		}
	})
	return nil
}

func (p *port) close() error {
	var errs []error
	if p.hook != nil {
		errs = append(errs, p.hook.Close())
	}
	errs = append(errs, p.memory.close())
	p.memory = memory{}
	p.ins, p.flows, p.heads, p.bits, p.hook = nil, nil, nil, nil, nil
	if p.set != nil {
		p.set.Close()
	}
	return errors.Join(errs...)
}

// Close takes all programs off at once. The ends must be closed before.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for index, p := range e.ports {
		if p.leaves != nil {
			p.leaves.Stop()
		}
		errs = append(errs, p.close())
		delete(e.ports, index)
	}
	return errors.Join(errs...)
}
