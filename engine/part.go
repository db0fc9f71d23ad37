package engine

import (
	"context"
	"net/netip"
	"time"

	"pelt/model"
)

// Part is one thing that takes part in a trial at one host: an end of a flow, the watch over a kernel, over processors
// or over a router, an emulated link, changes of the path. All are led through the same steps, in their order. Its
// methods may be called concurrently, but for one step after the other.
type Part interface {
	// Do carries out a step and returns when it is over, or when ctx is. One that means nothing to a part does nothing.
	// That of Go may run for as long as the trial.
	Do(ctx context.Context, s Step, k Known) (Learned, error)
	// Live is how far the part has come. It never blocks for long.
	Live() Live
	// Account is what the part measured, once it is over; always the same.
	Account() Account
	// Close stops the part and frees everything. It may be called at any time and more than once.
	Close() error
}

// Passive is a Part that does nothing. Embed it to write only the methods that are needed.
type Passive struct{}

// Do, Live, Account and Close do nothing.
func (Passive) Do(context.Context, Step, Known) (l Learned, err error) { return l, nil }
func (Passive) Live() (l Live)                                         { return l }
func (Passive) Account() (a Account)                                   { return a }
func (Passive) Close() error                                           { return nil }

// Sleep waits for a while, and reports whether ctx did not end before.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Step is one step of a trial.
type Step string

// The steps in their order.
const (
	Open Step = "open" // sockets and programs: what watches is ready, and listening ends have Ports
	Meet Step = "meet" // the ends that call seek their peers, and those that listen begin to wait
	Met  Step = "met"  // those that listen are done
	// ends can carry packets on their living streams; then counters are read around a window without traffic
	Ready Step = "ready"
	Go    Step = "go"    // lead, warm-up and measured part, by the part's own clock
	Halt  Step = "halt"  // senders send no more, and say what they attempted
	Drain Step = "drain" // receivers wait for what is on its way
	Still Step = "still" // counters stand still, and are read for the last time
)

// Steps are all of them, in their order.
var Steps = []Step{Open, Meet, Met, Ready, Go, Halt, Drain, Still}

// Known is what a part is told at a step.
type Known struct {
	Ports []uint16 `json:"ports,omitempty"` // Open of an end that calls: the peer's port of each stream
	// Met of an end that listens: those that call have given up some streams
	Over bool `json:"over,omitempty"`
	// Ready of an end: the streams on which both ends have met; one at least
	Living []bool        `json:"living,omitempty"`
	Window time.Duration `json:"window_ns,omitempty"` // Ready of what watches: without traffic
	Gate   time.Duration `json:"gate_ns,omitempty"`   // Go: how long until all begin at once
	Sent   Sent          `json:"sent,omitzero"`       // Drain of a receiver
	// Still: packets are missing, so it is worth waiting for devices that tell their figures seldom
	Lost  bool          `json:"lost,omitempty"`
	Flows []WatchedFlow `json:"flows,omitempty"` // Open and Ready of what watches
}

// UntilMeasured is how long it is from the order to go to the measured part.
func (k Known) UntilMeasured(t model.Timing) time.Duration { return k.Gate + t.Lead() + t.Warmup() }

// WatchedFlow is a flow as what watches a host knows it.
type WatchedFlow struct {
	Name         string         `json:"name"`
	Protocol     model.Protocol `json:"protocol"`
	PayloadBytes int            `json:"payload_bytes"`
	Packets      uint64         `json:"packets,omitempty"` // of the whole flow, 0 if unknown
	To           netip.Addr     `json:"to,omitzero"`       // where its packets go, as the host may know it
	// Number is what the flow's packets carry in place of a trial's number: see Order.Trial.
	Number uint16 `json:"number"`
	Tag    uint16 `json:"tag,omitempty"` // of the packets by which its ends find each other, and of the flow
	// Awaited is where connections of TCP are awaited: the address is invalid at the host that awaits them.
	Awaited netip.AddrPort `json:"-"`
	// Tuples are those of its streams on one side of the path; none before the ends have met.
	Tuples []model.Tuple `json:"tuples,omitempty"`
}

// Flow is the flow, as far as it is known.
func (f WatchedFlow) Flow() model.Flow {
	return model.Flow{Name: f.Name, Protocol: f.Protocol, Address: f.To, Packets: f.Packets,
		PayloadBytes: f.PayloadBytes, Streams: max(len(f.Tuples), 1)}
}

// Learned is what a part answers to a step.
type Learned struct {
	Ports    []uint16 // Open of an end: as Transport.Ports
	Met      Meeting  // Meet of an end that calls, Met of one that listens
	Sent     Sent     // Halt of a sender
	Received uint64   // Drain of a receiver: distinct packets
}

// Live is how far a part has come.
type Live struct {
	Snapshot // of an end
	// what a kernel has dropped by now, without sequences and without counters; nil: not told
	Counts *model.Observation
	Cores  map[int]float64 // the busy share of each core since this was asked for last
}

// Account is what a part measured; what is nil the part does not measure, or has not.
type Account struct {
	End      *Report
	Observed *model.Observation
	Load     *Load
}

// Load is what a host's processors did during the measured part.
type Load struct {
	CPU    model.CPU
	Series []model.Series // once a second; At is empty
}

// WatchOrder is what those that watch a host must know of a trial.
type WatchOrder struct {
	Trial  uint16
	Drops  model.DropMode // how closely to watch the kernel; "" for not at all
	Timing model.Timing
}
