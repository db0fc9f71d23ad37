package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pelt/model"
	"pelt/observe/counters"
	"pelt/observe/drops"
)

// Observer makes the observations of one host's network namespace. Its methods
// may be called concurrently.
type Observer struct {
	// Do runs a function on a thread inside the namespace.
	Do func(func() error) error
	// Interface carries the test; its settings are noted. "" if unknown.
	Interface func() string
	// Device is what the host's end is bound to; "": routes choose its interface.
	Device string
	// Kernel watches the drops; nil reads counters only.
	Kernel *Kernel
	Iperf  bool // the other end is iperf3, whose header UDP packets have
}

// Observation watches one trial from one namespace; package engine says how it
// is used.
type Observation struct {
	trial    uint16
	mode     model.DropMode
	observer *Observer

	mu        sync.Mutex
	reader    *counters.Reader
	machine   *drops.Machine // nil without
	snapshots counters.Snapshots
	closed    bool
	between   *time.Timer // reads the counters so often that none wraps twice
	why       model.Reasons
	unsettled bool
	missed    uint64 // of the machine, when the trial began
	tracks    []*drops.Track
	untracked bool // a flow could not be tracked
	iface     string
	to        map[string]netip.Addr // where the packets of flows go
	routes    map[string]model.Route
}

// Begin opens the observation of one trial. What this host cannot do stands in
// the report; the error says that it cannot be observed at all.
func (o *Observer) Begin(trial uint16, mode model.DropMode) (*Observation, error) {
	reader, err := counters.Open(o.Do)
	if err != nil {
		return nil, fmt.Errorf("read the counters: %w", err)
	}
	w := &Observation{trial: trial, mode: mode, observer: o, reader: reader, to: map[string]netip.Addr{},
		routes: map[string]model.Route{}}
	if o.Interface != nil {
		w.iface = o.Interface()
	}
	switch {
	case mode == model.DropsOff:
		w.why = model.Reasons{{Code: model.NotAsked}}
	case o.Kernel == nil:
		w.mode, w.why = model.DropsOff, model.Reasons{{Code: model.DropsUnwatched}}
	default:
		if w.machine, err = o.Kernel.hold(); err != nil {
			w.mode, w.why = model.DropsOff, model.Reasons{drops.Why(err)}
		} else if missed, err := w.machine.Missed(); err == nil {
			w.missed = missed
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.between = time.AfterFunc(counters.WidenEvery, w.readBetween)
	return w, nil
}

// Meet watches the packets by which the ends of a flow find each other: by the tag that they carry, of TCP by where
// connections are awaited.
func (w *Observation) Meet(flow model.Flow, number, tag uint16, awaited netip.AddrPort) error {
	w.Toward(flow.Name, flow.Address)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.machine == nil {
		return nil
	}
	if flow.Protocol == model.TCP {
		return w.add(w.machine.MeetTCP(w.trial, flow.Name, awaited.Port(), awaited.Addr()))
	}
	return w.add(w.machine.Meet(w.trial, flow.Name, number, tag))
}

// maxRoutes bounds the flows whose routes are looked up.
const maxRoutes = 16

// add keeps a track. Without one of them no verdict would mean that nobody saw a drop.
func (w *Observation) add(track *drops.Track, err error) error {
	if err != nil {
		w.untracked, w.why = true, model.Reasons{drops.Why(err)}
		return err
	}
	w.tracks = append(w.tracks, track)
	return nil
}

// says keeps the first that is to be said of the watch.
func (w *Observation) says(why ...model.Reason) {
	if len(w.why) == 0 {
		w.why = why
	}
}

// Toward says where a flow's packets go: when the trial is over, the host's route there is looked up.
func (w *Observation) Toward(flow string, to netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if to.IsValid() && len(w.to) < maxRoutes {
		w.to[flow] = to
	}
}

// Track names the streams of one flow, whose packets carry a number of their own.
func (w *Observation) Track(flow model.Flow, number uint16, tuples []model.Tuple) error {
	to := flow.Address
	if !to.IsValid() && len(tuples) > 0 {
		to = tuples[0].Peer
	}
	w.Toward(flow.Name, to)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.machine == nil {
		return nil
	}
	options := drops.TrackOptions{TCP: flow.Protocol == model.TCP, Mode: w.mode}
	if !options.TCP {
		options.Packets, options.Number, options.Iperf = sequences(flow), number, w.observer.Iperf
		options.Fragments = flow.PayloadBytes > w.wholePayload()
	}
	track, err := w.machine.Track(w.trial, flow.Name, tuples, options)
	if err := w.add(track, err); err != nil {
		return err
	}
	if !options.TCP && track.Mode() != model.DropsSeq {
		w.mode = model.DropsCount // the rest of the account is read so, too
	}
	w.says(track.Why()...)
	return nil
}

// sequences is the most that one stream of a flow with a number of packets will have, 0
// if unknown: the streams share them evenly.
func sequences(flow model.Flow) uint64 {
	streams := uint64(max(flow.Streams, 1))
	return flow.Packets/streams + min(flow.Packets%streams, 1)
}

// wholePayload is the largest payload in bytes that leaves in one packet, as
// far as the interface tells; beyond it fragments are followed.
func (w *Observation) wholePayload() int {
	mtu := 1280 // the least of IPv6, RFC 8200 section 5
	if w.iface != "" {
		_ = w.observer.Do(func() error {
			if i, err := net.InterfaceByName(w.iface); err == nil {
				mtu = i.MTU
			}
			return nil
		})
	}
	return mtu - ipv6Header - udpHeader
}

const (
	ipv6Header = 40
	udpHeader  = 8
)

// Counts tells what the kernel dropped of the trial so far, without sequences; no drops
// where they are not watched.
func (w *Observation) Counts() (model.Observation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := model.Observation{Boot: kernelIdentity(), Namespace: w.reader.Namespace(), Mode: w.mode, Why: w.why}
	if w.machine == nil || w.untracked || len(w.tracks) == 0 {
		return o, nil
	}
	d, err := w.machine.Collect(w.trial, false)
	if err == nil {
		o.Drops = &d
	}
	return o, err
}

// Snapshot reads the counters.
func (w *Observation) Snapshot(m model.Moment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.snapshots.Take(m, w.reader.Read())
	if m != model.MomentMeasure {
		return
	}
	for _, t := range w.tracks {
		if err := t.BeginMeasured(); err != nil {
			w.says(model.Reason{Code: model.WarmupDrops, Text: model.SystemSaid(err)})
		}
	}
}

// readBetween reads the counters once more, until the trial's end was read.
func (w *Observation) readBetween() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed && w.snapshots.At(model.MomentEnd).Taken.IsZero() {
		w.snapshots.Take("", w.reader.Read())
		w.between.Reset(counters.WidenEvery)
	}
}

// stillFor is how far apart two readings are that must agree.
const stillFor = 20 * time.Millisecond

// Settle waits until the counters stand still, and takes that reading as the last.
func (w *Observation) Settle(ctx context.Context, lost bool) {
	var interfaces []string
	if w.iface != "" {
		interfaces = []string{w.iface}
	}
	settled := counters.Settle(ctx, stillFor, lost, func() (counters.Snapshot, bool) {
		w.Snapshot(model.MomentEnd)
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.snapshots.At(model.MomentEnd), true
	}, interfaces...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsettled = !settled
}

// Halt is to be called when all packets are sent: what a kernel knows of a next hop that does not answer, it may forget
// soon after.
func (w *Observation) Halt(context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readRoutes()
}

// readRoutes reads the routes of the flows. mu is held.
func (w *Observation) readRoutes() {
	for flow, to := range w.to {
		route := counters.RouteTo(w.observer.Do, to, w.observer.Device)
		route.Flow = flow
		w.routes[flow] = counters.Surer(w.routes[flow], route)
	}
}

// Report returns the account.
func (w *Observation) Report() model.Observation {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readRoutes()
	r := model.Observation{
		Mode: w.mode, Unsettled: w.unsettled, Boot: kernelIdentity(), Namespace: w.reader.Namespace(),
		Knobs: counters.Knobs(w.observer.Do, w.iface), Interface: w.iface,
		Queues: w.snapshots.Queues(),
	}
	for _, flow := range slices.Sorted(maps.Keys(w.routes)) {
		r.Routes = append(r.Routes, w.routes[flow])
	}
	w.snapshots.Describe(&r)
	if w.untracked { // no verdict would mean that nobody saw it dropped
		r.Mode = model.DropsOff
	} else if w.machine != nil {
		account, err := w.machine.Collect(w.trial, true)
		if err != nil {
			w.says(drops.Why(err))
			r.Mode = model.DropsOff
		} else {
			if missed, err := w.machine.Missed(); err == nil {
				account.Missed = missed - min(missed, w.missed)
			}
			r.Drops = &account
			w.says(w.machine.Why()...)
		}
	}
	r.Why = w.why
	return r
}

// Close frees everything; it may be called more than once.
func (w *Observation) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	w.closed = true
	w.between.Stop()
	if w.machine != nil {
		for _, t := range w.tracks {
			errs = append(errs, t.Close())
		}
		w.observer.Kernel.release()
		w.machine = nil
	}
	return errors.Join(errs...)
}
