package impair

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/unit"
)

const ms = time.Millisecond

func TestCheck(t *testing.T) {
	ge := Loss{P: 0.01, R: 0.1, Bad: 0.7}
	for _, c := range []struct {
		name string
		s    Settings
		want string // of the line
	}{
		{"nothing", Settings{}, ""},
		{"everything", Settings{Rate: 1e6, Overhead: 24, MinFrame: 60, QueuePackets: 10, QueueBytes: 60, Delay: ms,
			Jitter:      ms,
			Correlation: 0.5, Shape: shaped("normal"), Loss: Loss{Ratio: 1}, Duplicate: 1, Corrupt: 1,
			Reorder: 1, Seed: 1}, ""},
		{"gilbert-elliott", Settings{Loss: ge}, ""},
		{"least frame without rate", Settings{MinFrame: 60}, ""},

		{"correlation of 1", Settings{Delay: ms, Jitter: ms, Correlation: 1},
			"a delay correlation of 100 % never changes: want less"},
		{"correlation without jitter", Settings{Delay: ms, Correlation: 0.5}, "a correlation of delays needs a jitter"},

		{"jitter over delay", Settings{Delay: ms, Jitter: 2 * ms},
			"jitter 2ms is more than the delay of 1ms, and frames cannot leave before they came: want at most that"},
		{"jitter without delay", Settings{Jitter: ms}, "jitter needs a delay"},
		{"shape without jitter", Settings{Delay: ms, Shape: shaped("normal")}, "a distribution needs a jitter"},
		{"reorder without delay", Settings{Reorder: 0.1}, "reorder needs a delay"},

		{"queue without rate", Settings{QueuePackets: 10}, "queue needs a rate: without one nothing waits"},
		{"queue of bytes without rate", Settings{QueueBytes: 10}, "queue needs a rate: without one nothing waits"},
		{"overhead without rate", Settings{Overhead: 24}, "overhead needs a rate"},
		{"small queue", Settings{Rate: 1e6, QueueBytes: 59, MinFrame: 60},
			"a queue of 59 B holds no frame: want at least 60 B"},

		{"ratio and model", Settings{Loss: Loss{Ratio: 0.1, P: 0.01}},
			"two loss models: want a loss ratio or states"},
	} {
		got := c.s.Check()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		panicked := func() (is bool) {
			defer func() { is = recover() != nil }()
			New(c.s)
			return false
		}()
		if panicked != (c.want != "") {
			t.Errorf("%s: New panicked: %v", c.name, panicked)
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

// Whatever passes Check gives fates that hold together, and the same ones again.
func TestFatesHoldTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSettings(t)
		if s.Check() != "" {
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
