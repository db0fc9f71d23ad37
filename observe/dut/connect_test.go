package dut

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pelt/finding"
	"pelt/model"
)

func TestOpenIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.hangs = true
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := Open(ctx, "router", "ssh://fake", f.start); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// A question that hangs costs its answers, not the watch.
func TestFactsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.facts = "@@ S release\n6.6.1\n"
		f.slow = func(since time.Duration) time.Duration {
			if len(f.asked) == 2 { // the facts
				return time.Hour
			}
			return 0
		}
		r := f.open(time.Second)
		if got := r.Facts().Told; f.starts != 2 ||
			finding.Why(got[len(got)-1].Of) != "the router did not answer within 30.0 s" {
			t.Errorf("%d starts, told: %+v", f.starts, got)
		}
		if w, _, _ := trial(r, nil); w.CPU == nil || len(w.Gaps) > 0 {
			t.Errorf("%+v", w)
		}
		f.cut("gone")
		synctest.Wait()
		if got := r.Finish(context.Background()).Told; !got[len(got)-1].Later ||
			finding.Why(got[len(got)-1].Of) != "the connection was closed" {
			t.Errorf("told at the end: %+v", got)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error("the second time:", err)
		}
	})
}

func TestWatchThatNeverMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		r := f.open(time.Second)
		w := r.Begin()
		w.Snapshot("idle")
		out, series := w.Watched(time.Second)
		gaps(t, out.Gaps, "unbegun 0 0: ")
		if out.CPU != nil || series != nil || len(w.Report().Counters) > 0 {
			t.Errorf("%+v", out)
		}
		for range 2 {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		// A part shorter than the period holds too few samples for a figure.
		w = r.Begin()
		w.Snapshot("start")
		w.Snapshot("measure")
		time.Sleep(300 * time.Millisecond)
		out, _ = w.Watched(300 * time.Millisecond)
		gaps(t, out.Gaps, "short 0 0: ")
		if err := errors.Join(w.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A connection that is there but dead is given up, and another one made.
func TestDeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		r := f.open(time.Second)
		r.start = func(ctx context.Context) (*Shell, error) {
			time.Sleep(300 * time.Millisecond) // else it is there at the moment of a periodic sample
			return f.start(ctx)
		}
		f.set(func() {
			f.slow = func(time.Duration) time.Duration {
				if f.starts == 1 {
					return time.Hour
				}
				return 0
			}
		})
		w := r.Begin()
		w.Snapshot("measure")
		time.Sleep(100 * time.Second)
		out, _ := w.Watched(100 * time.Second)
		if f.starts != 2 || out.Samples < 25 {
			t.Errorf("%d starts, %+v", f.starts, out)
		}
		gaps(t, out.Gaps, "closed 0 67: killed")
		if err := errors.Join(w.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
}

// An answer that a trial left owed is waited for by the next one, which asks only then.
func TestAnswerOwedByTheTrialBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		r := f.open(time.Second)
		f.set(func() {
			f.slow = func(since time.Duration) time.Duration {
				if len(f.asked) == 3 { // the first of a trial
					return 1500 * time.Millisecond
				}
				return 0
			}
		})
		before := r.Begin()
		before.Snapshot(model.MomentMeasure)
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		if err := before.Close(); err != nil || time.Since(begun) > 0 {
			t.Errorf("closed after %v: %v", time.Since(begun), err)
		}
		w := r.Begin()
		w.Snapshot(model.MomentStart)
		w.Snapshot(model.MomentEnd)
		o := w.Report()
		if c := counter(o, "dev.eth0.rx_packets"); c.Name == "" || len(o.Unread) > 0 || f.most != 1 {
			t.Errorf("%d requests at once, %+v", f.most, o)
		}
		if err := errors.Join(w.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
}
