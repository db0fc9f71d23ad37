//go:build amd64 || arm64

package xdp

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"pelt/engine"
	"pelt/measure"
	"pelt/model"
	"pelt/unit"
)

// receiver takes the packets of a flow off the interface.
type receiver struct {
	end   *transport
	port  *port
	flow  int      // number of it at the port
	slots []uint32 // of each stream that carries packets

	mu      sync.Mutex
	windows []*window
	steps   series
	strays  uint64 // packets of the flow that came to the sockets while it ran
}

const (
	roundEvery = 10 * time.Millisecond // of settling what is old
	checkEvery = 50 * time.Millisecond // of answering the sender's checks of consent
	// fastPPS is the rate from which on not every packet's arrival is timed: a
	// reading of the clock takes 20 to 40 ns.
	fastPPS = 1_000_000
	skipped = 61 // ... between two that are timed; odd, so that no pattern of the sender's fits
)

func (t *transport) openReceiver(streams []engine.Stream) (frameEnd, model.Reason, error) {
	var w route
	var why model.Reason
	err := t.host.Do(func() (err error) {
		w, why, err = t.engine.oneRoute(streams, false)
		return err
	})
	if err != nil || why.Code != "" {
		return nil, why, err
	}
	headers := (shape{from: streams[0].Remote}).headerBytes() - ethernetBytes
	if need := headers + t.order.Flow.PayloadBytes; need > w.mtu {
		return nil, w.tooLong(need), nil
	}
	p, why, err := t.engine.port(t.host, w)
	if err != nil || why.Code != "" {
		return nil, why, err
	}
	r := &receiver{end: t, port: p}
	if why := p.admit(r, streams); why.Code != "" {
		return nil, why, p.leave()
	}
	t.OnMove(func(stream int, to netip.AddrPort) {
		i := slices.Index(t.Living(), stream)
		p.rename(r, i, engine.Stream{Local: streams[i].Local, Remote: to})
	})
	return r, model.Reason{}, nil
}

// makeReady lets the peer's frames in to a receiver that uses sockets. A virtual
// cable takes them only with a program at its end; hardware takes them anyway.
func (t *transport) makeReady(a engine.Stream) error {
	var w route
	err := t.host.Do(func() (err error) {
		w, _, err = findRoute(a.Local.Addr(), a.Remote.Addr(), false)
		return err
	})
	if err != nil || w.kind != veth {
		return err
	}
	p, why, err := t.engine.port(t.host, w)
	if why.Code != "" {
		t.why = append(t.why, why) // the peer may find it out of order
		return nil
	}
	if err != nil {
		return err
	}
	t.release = p.leave
	return nil
}

const veth = "veth"

// Ready makes an interface of a host take the XDP frames of its neighbour, which
// a virtual cable does only with a program at its end; the program passes all
// that is of no flow. It stays until Close.
func (e *Engine) Ready(host engine.Host, name string) error {
	var w route
	err := host.Do(func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		w = route{index: link.Attrs().Index, name: name, kind: link.Type()}
		return nil
	})
	if err != nil {
		return fmt.Errorf("make %s ready for XDP frames: %w", name, err)
	}
	if _, why, err := e.port(host, w); err != nil || why.Code != "" {
		if err == nil {
			err = &engine.Refusal{Why: why}
		}
		return err
	}
	return nil
}

// skip returns how many packets go untimed between two timed ones.
func skip(rate unit.Rate, payloadBytes int) uint32 {
	if pps, paced := rate.PPS(payloadBytes); paced && pps < fastPPS {
		return 0
	}
	return skipped
}

func (r *receiver) ready() (why model.Reason, err error) { return why, nil }

func (r *receiver) silence(int) {}

func (r *receiver) run(stopped context.Context) error {
	tick, checks := time.NewTicker(roundEvery), time.NewTicker(checkEvery)
	defer tick.Stop()
	defer checks.Stop()
	for {
		select {
		case <-tick.C:
			r.round()
		case <-checks.C:
			r.strays += r.end.Strays()
		case <-stopped.Done():
			r.strays += r.end.Strays() + r.end.Overflow() // before what is late may come there, too
			r.port.dismiss(r)
			r.round()
			return nil
		}
	}
}

// round settles what is old, so that the windows stay ahead of the flow.
func (r *receiver) round() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, slot := range r.slots {
		in := &r.port.ins[slot]
		floor, top := r.windows[i].round(load(&in.Expected))
		store(&in.Floor, floor)
		store(&in.Top, top)
		r.harvest(i, false)
	}
}

// harvest moves a stream's finished seconds from the program to the series; all: the last one, too.
func (r *receiver) harvest(i int, all bool) {
	in := &r.port.ins[r.slots[i]]
	if load(&in.First) == 0 || load(&r.port.flows[r.flow].Begin) == 0 {
		return
	}
	r.steps.take(i, &in.Steps, load32(&in.Step))
	if all {
		r.steps.add(load32(&in.Step), load(&in.Fresh)-load(&in.Counted))
	}
}

func (r *receiver) count() (n engine.Snapshot) {
	for _, slot := range r.slots {
		in := &r.port.ins[slot]
		n.Packets += load(&in.Fresh)
		n.Reach += load(&in.Expected)
		n.Heard += taken(in)
	}
	return n
}

// taken counts all packets of a stream.
func taken(in *receiveIn) uint64 {
	return load(&in.Fresh) + load(&in.Again) + load(&in.Late) + load(&in.Beyond) + load(&in.Size) +
		load(&in.Checksum) + load(&in.Warmup) + uint64(load32(&in.Strangers))
}

func (r *receiver) mode() model.Reason {
	return model.Reason{Code: model.FramesIn, Name: r.port.route.name, Names: map[string]string{"mode": r.port.how}}
}

// finish closes the account of a stream and returns its distinct packets. Those too far ahead are no packets of the
// flow if its sender did not attempt as many: they leave the series again.
func (r *receiver) finish(i int, attempted uint64) (distinct uint64) {
	in := &r.port.ins[r.slots[i]]
	r.harvest(i, true)
	distinct = r.windows[i].finish(max(in.Expected, attempted))
	r.steps.remove(in.Fresh - min(in.Fresh, distinct))
	return distinct
}

func (r *receiver) account(out *engine.Report, sent engine.Sent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.end.order.Flow
	rec := &engine.ReceiveReport{SocketKnown: true, MissingKnown: len(sent.Streams) == f.Streams}
	if rec.MissingKnown {
		rec.Missing = make([]model.Marks, f.Streams)
	}
	t := &rec.Tally
	var moves uint64
	var jitters []float64
	for i, slot := range r.slots {
		in := &r.port.ins[slot]
		attempted := uint64(0)
		if rec.MissingKnown {
			attempted = sent.Streams[r.end.Living()[i]]
		}
		distinct := r.finish(i, attempted)
		if rec.MissingKnown {
			rec.Missing[r.end.Living()[i]] = r.windows[i].gone.Marks()
		}
		t.Received += distinct
		t.Duplicates += in.Again
		t.Reordered += in.Reordered
		t.Late += in.Late
		here := in.Fresh + uint64(in.Strangers)
		t.Strangers += here - min(here, distinct)
		t.WrongLength += in.Size
		rec.WarmupReceived += in.Warmup
		rec.Taken += taken(in)
		rec.Broken += in.Checksum
		rec.Overrun += in.Beyond
		moves += in.Moves
		if in.Fresh == 0 {
			continue
		}
		if first := int64(in.First); t.FirstNanos == 0 || first < t.FirstNanos {
			t.FirstNanos = first
		}
		t.LastNanos = max(t.LastNanos, int64(in.Last))
		if in.Timed > 1 {
			jitters = append(jitters, float64(in.Jitter)/16)
		}
	}
	t.JitterNanos = measure.MeanJitter(jitters)
	t.Bytes = t.Received * uint64(f.PayloadBytes)
	t.PerStep = slices.Clone(r.steps.counts)
	for _, n := range t.PerStep {
		t.StepBytes = append(t.StepBytes, n*uint64(f.PayloadBytes))
	}
	var err error
	if r.end.order.OneClock {
		t.Delay, err = r.port.delays(r.flow)
	}
	if err != nil {
		out.Warnings = append(out.Warnings, model.Reason{Code: model.DelaysUnread, Text: err.Error()})
	}
	rec.Strays = r.strays
	rec.Moved, rec.Unmoved = r.end.Moves()
	if moves > 0 {
		out.Warnings = append(out.Warnings, model.NewReason(model.QueueChanged, "changes", float64(moves)))
	}
	out.Receive = rec
}

func (r *receiver) close() error {
	r.port.dismiss(r)
	r.port.free(r)
	return r.port.leave()
}

// addressWords is an address as it lies in a packet's header.
func addressWords(a netip.Addr) (w [4]uint32) {
	for i, b := range a.AsSlice() {
		w[i/4] |= uint32(b) << (8 * (i % 4))
	}
	return w
}
