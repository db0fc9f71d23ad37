// Package netem writes the settings of one direction of a link as the kernel's
// netem takes them: the bytes of a netlink attribute, and back what a kernel tells.
// It never speaks to a kernel.
//
// Layouts are those of include/uapi/linux/pkt_sched.h, Linux 6.12, and what is
// done with them is netem_change of net/sched/sch_netem.c.
package netem

import (
	"encoding/binary"
	"math"

	"pelt/lab/impair"
)

// Attributes within TCA_OPTIONS, behind struct tc_netem_qopt.
const (
	attrCorrelation = 1
	attrTable       = 2
	attrReorder     = 3
	attrCorrupt     = 4
	attrLoss        = 5
	attrRate        = 6
	attrRate64      = 8
	attrLatency64   = 10
	attrJitter64    = 11
	attrSeed        = 14 // Linux 6.6 and later

	lossFourState      = 1 // NETEM_LOSS_GI
	lossGilbertElliott = 2 // NETEM_LOSS_GE

	optionsBytes = 24 // struct tc_netem_qopt
	headBytes    = 4  // struct rtattr
	nested       = 1 << 15
	tickShift    = 6 // PSCHED_SHIFT: the old fields count 64 ns
)

// Options are netem's own. Shares are of 2^32-1, see Share; the zero value passes
// nothing, for its limit is 0.
type Options struct {
	LimitPackets uint32 // of those that wait, the delayed ones included

	LatencyNanos, JitterNanos int64
	DelayCorrelation          uint32
	Table                     []int16 // quantiles of the jitter, 8192 is one; nil: uniform. At most 16384

	Loss, LossCorrelation uint32
	GilbertElliott        *GilbertElliott // in place of Loss
	FourState             *FourState      // likewise

	Duplicate, DuplicateCorrelation uint32
	Corrupt, CorruptCorrelation     uint32
	Reorder, ReorderCorrelation     uint32
	Gap                             uint32

	RateBytes     uint64 // a second; 0: none
	OverheadBytes int32  // added to each frame; below 0: taken off
	CellBytes     uint32 // a frame takes whole cells of it; 0: none
	CellOverhead  int32  // added to each cell

	Seed   uint64
	Seeded bool
}

// GilbertElliott are shares: to the bad state, back, kept in the bad state, lost
// in the good one.
type GilbertElliott struct{ ToBad, ToGood, KeptInBad, LostInGood uint32 }

// FourState are shares of moves between the states of impair.Loss.
type FourState struct{ P13, P31, P32, P14, P23 uint32 }

// Share is a ratio of 0..1 as tc writes it (set_percent in tc/q_netem.c of iproute2).
func Share(ratio float64) uint32 { return uint32(math.RoundToEven(ratio * math.MaxUint32)) }

// From is what tc would ask of netem for settings.
func From(s impair.Settings) Options {
	o := Options{
		LimitPackets: uint32(s.QueuePackets),
		LatencyNanos: int64(s.Delay), JitterNanos: int64(s.Jitter), DelayCorrelation: Share(s.Correlation),
		Duplicate: Share(s.Duplicate.Ratio), DuplicateCorrelation: Share(s.Duplicate.Correlation),
		Corrupt: Share(s.Corrupt.Ratio), CorruptCorrelation: Share(s.Corrupt.Correlation),
		Reorder: Share(s.Reorder.Ratio), ReorderCorrelation: Share(s.Reorder.Correlation),
		RateBytes: uint64(s.Rate) / 8, OverheadBytes: int32(s.Overhead),
	}
	if s.QueuePackets == 0 {
		o.LimitPackets = math.MaxInt32
	}
	if s.Shape != nil {
		o.Table = s.Shape.Values
	}
	if s.Reorder.Ratio > 0 {
		o.Gap = uint32(max(s.Gap, 1))
	}
	switch l := s.Loss; l.Model {
	case impair.GilbertElliott:
		o.GilbertElliott = &GilbertElliott{Share(l.P), Share(l.R), ^Share(l.Bad), Share(l.Good)}
	case impair.FourState:
		o.FourState = &FourState{P13: Share(l.P13), P31: Share(l.P31), P32: Share(l.P32), P14: Share(l.P14), P23: Share(l.P23)}
	default:
		o.Loss, o.LossCorrelation = Share(l.Ratio), Share(l.Correlation)
	}
	return o
}

// Append adds the value of TCA_OPTIONS.
func (o Options) Append(b []byte) []byte {
	ticks := func(nanos int64) uint32 { return uint32(min(max(nanos, 0)>>tickShift, math.MaxUint32)) }
	for _, v := range []uint32{ticks(o.LatencyNanos), o.LimitPackets, o.Loss, o.Gap, o.Duplicate, ticks(o.JitterNanos)} {
		b = u32(b, v)
	}
	b = attribute(b, attrLatency64, u64(nil, uint64(o.LatencyNanos)))
	b = attribute(b, attrJitter64, u64(nil, uint64(o.JitterNanos)))
	if o.DelayCorrelation|o.LossCorrelation|o.DuplicateCorrelation != 0 {
		b = attribute(b, attrCorrelation, u32(u32(u32(nil, o.DelayCorrelation), o.LossCorrelation), o.DuplicateCorrelation))
	}
	if o.Reorder != 0 {
		b = attribute(b, attrReorder, u32(u32(nil, o.Reorder), o.ReorderCorrelation))
	}
	if o.Corrupt != 0 {
		b = attribute(b, attrCorrupt, u32(u32(nil, o.Corrupt), o.CorruptCorrelation))
	}
	if o.RateBytes != 0 {
		low := uint32(min(o.RateBytes, math.MaxUint32))
		b = attribute(b, attrRate, u32(u32(u32(u32(nil, low), uint32(o.OverheadBytes)), o.CellBytes), uint32(o.CellOverhead)))
		if o.RateBytes > math.MaxUint32 {
			b = attribute(b, attrRate64, u64(nil, o.RateBytes))
		}
	}
	if g := o.GilbertElliott; g != nil {
		b = attribute(b, attrLoss|nested, attribute(nil, lossGilbertElliott, u32(u32(u32(u32(nil, g.ToBad), g.ToGood), g.KeptInBad), g.LostInGood)))
	} else if f := o.FourState; f != nil {
		b = attribute(b, attrLoss|nested, attribute(nil, lossFourState, u32(u32(u32(u32(u32(nil, f.P13), f.P31), f.P32), f.P14), f.P23)))
	}
	if len(o.Table) > 0 {
		var values []byte
		for _, v := range o.Table {
			values = binary.NativeEndian.AppendUint16(values, uint16(v))
		}
		b = attribute(b, attrTable, values)
	}
	if o.Seeded {
		b = attribute(b, attrSeed, u64(nil, o.Seed))
	}
	return b
}

// Seed finds the seed in TCA_OPTIONS as a kernel tells it; ok is false if it has
// none: then it took none either.
func Seed(options []byte) (seed uint64, ok bool) {
	if len(options) < optionsBytes {
		return 0, false
	}
	for b := options[optionsBytes:]; len(b) >= headBytes; {
		length, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if length < headBytes || length > len(b) {
			return 0, false
		}
		if kind&^nested == attrSeed && length >= headBytes+8 {
			return binary.NativeEndian.Uint64(b[headBytes:]), true
		}
		b = b[min((length+3)&^3, len(b)):]
	}
	return 0, false
}

func u32(b []byte, v uint32) []byte { return binary.NativeEndian.AppendUint32(b, v) }
func u64(b []byte, v uint64) []byte { return binary.NativeEndian.AppendUint64(b, v) }

func attribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(headBytes+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}
