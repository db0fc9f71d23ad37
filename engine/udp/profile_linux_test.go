package udp

import (
	"testing"

	"pelt/engine/enginetest"
	"pelt/model"
	"pelt/unit"
)

// Whoever sends, each stream with a thread or all with shared workers, plans what the
// profile says to the packet, and tells the gaps that it asked.
func TestProfilesAreSent(t *testing.T) {
	t.Parallel()
	trace, err := model.TraceText([]int64{0, 500_000, 1_500_000})
	if err != nil {
		t.Fatal(err)
	}
	profiles := []model.Profile{
		{Kind: model.Poisson, Seed: 3}, {Kind: model.Burst, BurstPackets: 32}, {Kind: model.OnOff, OnSeconds: 0.02,
			OffSeconds: 0.03},
		{Kind: model.OnOff, OnSeconds: 0.02, OffSeconds: 0.03, Random: true, Seed: 3}, {Kind: model.Ramp,
			From: unit.PacketRate(200)}, {Kind: model.TraceProfile, Trace: trace},
	}
	for i, p := range profiles {
		t.Run(p.Kind, func(t *testing.T) {
			t.Parallel()
			r := newTrial()
			r.Flow.Rate, r.Flow.Profile, r.Flow.Streams = unit.PacketRate(1500), &p, 1+i%2*2
			if i%3 == 0 {
				r.Flow.Packets, r.Timing.MeasureSeconds = 150, 10
			}
			if i%2 == 0 {
				workers := Config{Workers: NewWorkers()}
				r.Near.Engine, r.Far.Engine = testEngine(workers, false), testEngine(workers, false)
			}
			send, receive := r.Play(t)
			enginetest.Balance(t, r.Order, send, receive)
			want := r.Flow.Packets
			for i := range r.Flow.Streams {
				if m := r.Order.Phases(r.Order.Schedules(), i, 1, nil)[1]; r.Flow.Packets == 0 {
					want += m.Pacer.Planned(m.Length)
				}
			}
			s := send.Send
			if s.Planned != want || s.Attempted > want || s.Attempted+s.Late+s.Held == 0 {
				t.Errorf("planned %d and attempted %d, want %d", s.Planned, s.Attempted, want)
			}
			if s.Asked == nil || s.Asked.Gap == nil || s.Asked.Gap.Count != want-uint64(r.Flow.Streams) ||
				len(s.Asked.GapCounts) == 0 ||
				s.Attempted > 0 && (s.Lateness == nil || s.Lateness.Count+s.Lateness.Out != s.Attempted) {
				t.Errorf("asked: %+v", s.Asked)
			}
		})
	}
}
