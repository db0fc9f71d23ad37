package engine

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"

	"pelt/model"
)

// KeyBytes is the length of the key that the two ends of a flow share.
const KeyBytes = 32

// mostCPU is the highest number of a core that an order can name.
const mostCPU = 4095

// A probe is thin: it must not disturb what it measures.
const (
	maxProbePPS   = 100
	maxProbeBytes = 128
)

// WrongField is the fault of an order whose field cannot be as it is: see model.NewReason for what is named.
func WrongField(field string, named ...any) error {
	return &Fault{Why: model.NewReason(model.OrderField, append([]any{"name", field}, named...)...)}
}

// InField is the fault of an order whose wrong field lies in another one.
func InField(field string, err error) error {
	var inner *Fault
	var own *model.FieldError
	switch {
	case errors.As(err, &own):
		return WrongField(field + "." + own.Field)
	case errors.As(err, &inner) && inner.Why.Code == model.OrderField:
		why := inner.Why
		why.Name = field + "." + why.Name
		return &Fault{Why: why}
	}
	return err
}

// Check finds the first field of an order that is out of its range: see WrongField.
func (o Order) Check() error {
	if _, err := (model.Plan{Flows: []model.Flow{o.Flow}, Timing: o.Timing}).Trial(nil, 0); err != nil {
		return InField("order", err)
	}
	if err := o.Timing.Check(); err != nil {
		return InField("order", err)
	}
	switch pps, paced := o.Flow.Rate.PPS(o.Flow.PayloadBytes); {
	case o.Trial == 0 || o.Trial >= WarmupBit:
		return WrongField("order.trial", "least", 1, "most", WarmupBit-1, "value", o.Trial)
	case len(o.Key) != KeyBytes:
		return WrongField("order.key", "value", len(o.Key), "least", KeyBytes)
	case o.CPU < -1 || o.CPU > mostCPU:
		return WrongField("order.cpu", "least", -1, "most", mostCPU, "value", o.CPU)
	case o.Record != nil && (o.Role != Receive || o.Flow.Protocol != model.UDP):
		return WrongField("order.record")
	case !slices.Contains([]Role{Send, Receive, Probe, Echo}, o.Role):
		return WrongField("order.role", "value", model.Clip(string(o.Role)))
	case o.Survey && o.Traffic():
		return WrongField("order.survey")
	case !o.Traffic() && (o.Listen != (o.Role == Echo) || o.Flow.Streams != 1 || o.Flow.Protocol != model.UDP ||
		!paced || o.Flow.Profile != nil || pps > maxProbePPS || o.Flow.PayloadBytes > maxProbeBytes):
		return WrongField("order.role", "value", o.Role)
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
		return WrongField("order.peer", "value", o.Peer)
	case o.Listen:
		return nil
	case !p.IsValid() || p.IsUnspecified() || p.IsMulticast() || p == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return WrongField("order.peer", "value", o.Peer)
	case family == 4 && !p.Is4() || family == 6 && !p.Is6():
		return WrongField("order.peer", "value", o.Peer)
	}
	for _, a := range o.Flow.SourceAddresses {
		if a.Is4() != p.Is4() {
			return WrongField("order.flow.source_addresses", "value", a)
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
