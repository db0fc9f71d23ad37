package udp

import (
	"testing"

	"pelt/engine"
	"pelt/model"
	"pelt/unit"
)

// A receiver lists every second packet of what was ordered, and of a peer that leaps no more than the order is charged
// for.
func TestListsTakeWhatTheOrderIsChargedFor(t *testing.T) {
	for streams, leap := range map[int]uint64{1: 2, 3: 2, 128: 2, 2: 2000} {
		o := engine.Order{Role: engine.Receive, Timing: model.Timing{MeasureSeconds: 10},
			Flow: model.Flow{Protocol: model.UDP, PayloadBytes: 64, Streams: streams, Rate: unit.PacketRate(3000)}}
		each := uint64(30_000 / streams)
		attempted := each
		if leap > 2 {
			attempted = leap * each
		}
		r, bytes := newReceiver(&Sockets{order: o}), 0
		for i := range streams {
			for s := uint64(1); s < attempted; s += leap {
				r.meter.Observe(i, []model.Arrival{{Sequence: s, Bytes: 64}})
			}
			m := r.meter.Missing(i, attempted)
			if leap == 2 && (m.Unlisted > 0 || m.Packets != each/2) {
				t.Fatalf("stream %d of %d: %d of %d lost packets are listed, %d are not", i, streams, m.Packets,
					each/2, m.Unlisted)
			}
			for s := range m.Stretches() {
				if bytes += 3; s.Count > 128 {
					bytes++
				}
			}
		}
		if bytes > o.ListBytes() {
			t.Errorf("%d streams, every %dth packet: the lists take %d B, %d are charged", streams, leap, bytes,
				o.ListBytes())
		}
	}
}
