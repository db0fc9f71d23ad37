package impair

import (
	"math"
	"testing"
	"time"
)

// A time that falls counts as the latest so far.
func TestTimesDoNotFall(t *testing.T) {
	l := New(Settings{Delay: time.Microsecond})
	l.Offer(5000, 100)
	if f := l.Offer(4000, 100); f.Copy[0].At != 6000 {
		t.Errorf("offered at 4000 after 5000, got %+v, want it at 6000", f)
	}
}

func TestLossRatio(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Settings
		want float64
	}{
		{"none", Settings{}, 0},
		{"plain", Settings{Loss: Loss{Ratio: 0.1}}, 0.1},
		{"gilbert-elliott that never moves", Settings{Loss: Loss{Bad: 1, Good: 0.2}}, 0.2},
		{"gilbert-elliott that stays bad", Settings{Loss: Loss{P: 0.1, Bad: 0.9, Good: 0.2}},
			0.9},
		{"gilbert-elliott, of which netem of Linux 6.1 lost 5.3 to 6.7 %",
			Settings{Loss: Loss{P: 0.01, R: 0.1, Bad: 0.7, Good: 0.001}}, 7.1 / 110},
	} {
		if got := c.s.LossRatio(); math.Abs(got-c.want) > 5e-6 {
			t.Errorf("%s: got %.7f, want %.7f", c.name, got, c.want)
		}
		if got := mean(lost(offers(t, c.s, 200_000))); math.Abs(got-c.want) > 0.005 {
			t.Errorf("%s: lost %.4f, want %.4f", c.name, got, c.want)
		}
	}
}

// Waiting is how many frames and bytes wait for the bottleneck at a time.
func (l *Link) Waiting(now int64) (frames, bytes int) {
	l.now = max(l.now, now)
	return l.bottleneck.drain(l.now)
}
