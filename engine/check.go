package engine

import (
	"cmp"
	"fmt"
	"net/netip"
	"runtime"
	"slices"

	"pelt/model"
)

// KeyBytes is the length of the key that the two ends of a flow share.
const KeyBytes = 32

// A probe is thin: it must not disturb what it measures.
const (
	maxProbePPS   = 100
	maxProbeBytes = 128
)

// Check finds the first field of an order that is out of its range. What this host could
// do and will not is a *Refusal.
func (o Order) Check() error {
	if _, err := (model.Plan{Flows: []model.Flow{o.Flow}, Timing: o.Timing}).Trial(nil, 0); err != nil {
		return fmt.Errorf("order.%w", err)
	}
	if err := o.Timing.Check(); err != nil {
		return fmt.Errorf("order.%w", err)
	}
	switch pps, paced := o.Flow.Rate.PPS(o.Flow.PayloadBytes); {
	case o.Trial == 0 || o.Trial >= WarmupBit:
		return fmt.Errorf("order.trial: want 1 to %d, not %d", WarmupBit-1, o.Trial)
	case len(o.Key) != KeyBytes:
		return fmt.Errorf("order.key: want %d bytes, not %d", KeyBytes, len(o.Key))
	case o.CPU < -1 || o.CPU > 4095:
		return fmt.Errorf("order.cpu: want -1 to 4095, not %d", o.CPU)
	case o.Record != nil && (o.Role != Receive || o.Flow.Protocol != model.UDP):
		return fmt.Errorf("order.record: is for a receiver of UDP")
	case !slices.Contains([]Role{Send, Receive, Probe, Echo}, o.Role):
		return fmt.Errorf("order.role: unknown role %q", o.Role)
	case o.Survey && o.Traffic():
		return fmt.Errorf("order.survey: is for a prober and its echo")
	case !o.Traffic() && (o.Listen != (o.Role == Echo) || o.Flow.Streams != 1 || o.Flow.Protocol != model.UDP ||
		!paced || o.Flow.Profile != nil || pps > maxProbePPS || o.Flow.PayloadBytes > maxProbeBytes):
		return fmt.Errorf("order.role: a probe is one dialed UDP stream of at most %d pps and %d B", maxProbePPS,
			maxProbeBytes)
	}
	return o.checkPeer()
}

// ListBytes is the most bytes that the lists of missing or refused sequences of all streams may take. Where every
// second packet is listed, a list takes 1.5 B a packet; of a peer that leaps, further ones are only counted.
func (o Order) ListBytes() int {
	bytes := float64(cmp.Or(o.MostListed, model.MaxMarksBytes))
	if pps, paced := o.Flow.PeakPPS(); paced {
		bytes = min(bytes, 2*pps*o.Timing.MeasureSeconds+64*float64(o.Flow.Streams))
	}
	return int(bytes)
}

// Core returns the core of a stream's thread, -1 for any.
func (o Order) Core(stream int) int {
	if o.CPU < 0 {
		return -1
	}
	return (o.CPU + stream) % runtime.NumCPU()
}

// Traffic tells the ends of a flow that was asked for from a prober and its echo.
func (o Order) Traffic() bool { return o.Role == Send || o.Role == Receive }

func (o Order) checkPeer() error {
	p := o.Peer.Unmap()
	switch family := o.Flow.Family; {
	case o.Listen && o.Peer.IsValid():
		return fmt.Errorf("order.peer: a listening end has no peer address yet")
	case o.Listen:
		return nil
	case !p.IsValid() || p.IsUnspecified() || p.IsMulticast() || p == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("order.peer: want the address of one host, not %v", o.Peer)
	case family == 4 && !p.Is4() || family == 6 && !p.Is6():
		return fmt.Errorf("order.peer: %v is not of family %d", o.Peer, family)
	}
	for _, a := range o.Flow.SourceAddresses {
		if a.Is4() != p.Is4() {
			return fmt.Errorf("order.flow.source_addresses: %v and the peer %v are of two IP versions", a, p)
		}
	}
	return nil
}

// ListenText is what package net listens on: this address, or every address of the host if there is none.
func ListenText(at netip.AddrPort) string {
	if !at.Addr().IsValid() {
		return fmt.Sprintf(":%d", at.Port())
	}
	return at.String()
}
