package impair

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/unit"
)

const ms = time.Millisecond

// What no words of a user say is refused all the same.
func TestCheck(t *testing.T) {
	for _, s := range []Settings{{QueuePackets: 10}, {QueueBytes: 10}, {Overhead: 24},
		{Rate: 1e6, QueueBytes: 59, MinFrame: 60}, {Delay: ms, Shape: shaped("normal")},
		{Loss: Loss{Ratio: 0.1, P: 0.01}}} {
		if s.Check() == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

// drawSettings makes settings that Check may or may not like.
func drawSettings(t *rapid.T) Settings {
	ratio := rapid.SampledFrom([]float64{0, 0, 0.01, 0.3, 0.5, 1})
	s := Settings{
		Rate:         rapid.SampledFrom([]unit.BitRate{0, 1e6, 1e9, 7_777_777}).Draw(t, "rate"),
		QueuePackets: rapid.IntRange(0, 5).Draw(t, "queue"),
		QueueBytes:   rapid.SampledFrom([]int{0, 0, 3000}).Draw(t, "queue bytes"),
		Overhead:     rapid.SampledFrom([]int{0, 0, 24}).Draw(t, "overhead"),
		MinFrame:     rapid.SampledFrom([]int{0, 0, 60}).Draw(t, "least frame"),
		Delay:        rapid.SampledFrom([]time.Duration{0, 1, ms}).Draw(t, "delay"),
		Jitter:       rapid.SampledFrom([]time.Duration{0, 1, ms, 2 * ms}).Draw(t, "jitter"),
		Duplicate:    ratio.Draw(t, "duplicate"), Corrupt: ratio.Draw(t, "corrupt"), Reorder: ratio.Draw(t, "reorder"),
		Seed: rapid.Uint64().Draw(t, "seed"),
	}
	if s.Jitter > 0 {
		s.Correlation = rapid.SampledFrom([]float64{0, 0.7}).Draw(t, "correlation")
		s.Shape = rapid.SampledFrom([]*Table{nil, shaped("pareto"), {Name: "one", Values: []int16{-8192}}}).Draw(t,
			"shape")
	}
	if l := &s.Loss; rapid.Bool().Draw(t, "states") {
		l.P, l.R, l.Bad, l.Good = ratio.Draw(t, "p"), ratio.Draw(t, "r"), ratio.Draw(t, "bad"), ratio.Draw(t, "good")
	} else {
		l.Ratio = ratio.Draw(t, "loss")
	}
	return s
}

// takes tells whether New makes a link of the settings.
func takes(s Settings) (does bool) {
	defer func() { does = recover() == nil }()
	New(s)
	return true
}

// Whatever passes Check gives fates that hold together, and the same ones again. New takes nothing else. What Check
// says stands in the golden file of package lab.
func TestFatesHoldTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSettings(t)
		if wrong := s.Check(); wrong != nil {
			if taken := takes(s); taken || strings.Contains(wrong.Error(), "\n") {
				t.Fatalf("New takes it %v, which Check refuses: %s", taken, wrong)
			}
			t.Skip()
		}
		if r := s.LossRatio(); !(r >= 0 && r <= 1) {
			t.Fatalf("LossRatio is %v", r)
		}
		a, b, now := New(s), New(s), int64(0)
		for range rapid.IntRange(1, 100).Draw(t, "frames") {
			now += rapid.Int64Range(0, 1_000_000).Draw(t, "gap of time")
			bytes := rapid.IntRange(0, 1514).Draw(t, "bytes")
			f := a.Offer(now, bytes)
			if again := b.Offer(now, bytes); f != again {
				t.Fatalf("the same seed gave %+v and %+v", f, again)
			}
			if f.Copies < 0 || f.Copies > 2 || (f.Copies > 0) != (f.Cause == Passes) || f.Copies == 2 &&
				s.Duplicate == 0 {
				t.Fatalf("got %+v", f)
			}
			for k, c := range f.Copy {
				if k >= f.Copies {
					if c != (Copy{}) {
						t.Fatalf("copy %d of %+v is set", k, f)
					}
					continue
				}
				if c.At < now || c.Flip < -1 || c.Flip >= bytes*8 || c.Flip >= 0 && s.Corrupt == 0 {
					t.Fatalf("offered %d B at %d, got %+v", bytes, now, f)
				}
			}
			frames, held := a.Waiting(now)
			if frames < 0 || held < 0 || s.QueuePackets > 0 && frames > s.QueuePackets || s.QueueBytes > 0 &&
				held > s.QueueBytes {
				t.Fatalf("%d frames and %d B wait", frames, held)
			}
			if got, _ := b.Waiting(now); got != frames {
				t.Fatalf("%d frames wait, the other time %d", frames, got)
			}
		}
	})
}
