package udp

import (
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// Whoever sends, each stream with a thread or all with shared workers, plans what the
// profile says to the packet, and tells the gaps that it asked.
func TestProfilesAreSent(t *testing.T) {
	trace, err := model.TraceText([]int64{0, 500_000, 1_500_000})
	if err != nil {
		t.Fatal(err)
	}
	profiles := []model.Profile{
		{Kind: model.Poisson, Seed: 3}, {Kind: model.Burst, BurstPackets: 32}, {Kind: model.OnOff, OnSeconds: 0.02, OffSeconds: 0.03},
		{Kind: model.OnOff, OnSeconds: 0.02, OffSeconds: 0.03, Random: true, Seed: 3}, {Kind: model.Ramp, From: unit.PacketRate(200)}, {Kind: model.TraceProfile, Trace: trace},
	}
	for i, p := range profiles {
		t.Run(p.Kind, func(t *testing.T) {
			t.Parallel()
			r := newTrial()
			r.flow.Rate, r.flow.Profile, r.flow.Streams = unit.PacketRate(1500), &p, 1+i%2*2
			if i%3 == 0 {
				r.flow.Packets, r.timing.MeasureSeconds = 150, 10
			}
			r.nearE, r.farE = testEngine(t, false), testEngine(t, false)
			if i%2 == 0 {
				workers := NewWorkers()
				r.nearE.config.Workers, r.farE.config.Workers = workers, workers
			}
			send, receive := r.run(t)
			balance(t, send, receive)
			want := r.flow.Clock(r.timing, false).Slots(r.timing.Measure().Nanoseconds())
			if r.flow.Packets > 0 {
				want = r.flow.Packets
			}
			s := send.Send
			if s.Planned != want || s.Attempted > want || s.Attempted+s.Late+s.Held == 0 {
				t.Errorf("planned %d and attempted %d, want %d", s.Planned, s.Attempted, want)
			}
			if s.Asked == nil || s.Asked.Gap == nil || s.Asked.Gap.Count != want-uint64(r.flow.Streams) || s.Attempted > 0 && (s.Lateness == nil || s.Lateness.Count+s.Lateness.Out != s.Attempted) || len(s.Asked.GapCounts) == 0 {
				t.Errorf("asked: %+v", s.Asked)
			}
		})
	}
}

// A sender that is stopped planned what was due by then.
func TestProfileIsStopped(t *testing.T) {
	r := newTrial()
	r.flow.Rate, r.flow.Profile = unit.PacketRate(1000), &model.Profile{Kind: model.OnOff, OnSeconds: 0.01, OffSeconds: 60}
	r.timing.WarmupSeconds, r.timing.MeasureSeconds = 0, 3600
	dialer, listener := r.prepare(t)
	connectBoth(t, dialer, listener)
	wait := start(t, dialer)
	testenv.Await(t, "the first packets", func() bool { n, _ := dialer.sample(); return n > 0 })
	before := time.Now()
	dialer.Stop()
	if wait(); time.Since(before) > testenv.Patience {
		t.Fatalf("stopped after %v", time.Since(before))
	}
	if s := dialer.account().Send; s.Planned == 0 || s.Planned > 10 || s.Attempted > s.Planned {
		t.Errorf("planned %d, attempted %d of the first ten", s.Planned, s.Attempted)
	}
}
