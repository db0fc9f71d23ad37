package engine

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"pelt/model"
)

// What the host does to a measurement is told at its end. The interfaces are looked at before and after: each end of a
// large star would cost system calls in between.
func TestDisturbances(t *testing.T) {
	const never = time.Hour
	for _, c := range []struct {
		name  string
		slept time.Duration // within the trial of 1 s
		at    time.Duration // when the interface changes
		now   link          // what it is then; none: it went away
		want  model.Reasons
	}{
		{"nothing", 0, never, link{}, nil},
		{"two clocks", 40 * time.Millisecond, never, link{}, nil},
		{"sleep", 3200 * time.Millisecond, never, link{}, model.Reasons{{Code: model.HostSlept,
			Numbers: map[string]float64{"slept_s": 3.2}}}},
		{"another MTU", 0, 300 * time.Millisecond, link{"va", 7, 1400},
			model.Reasons{{Code: model.InterfaceMTU, Name: "va",
				Numbers: map[string]float64{"before_bytes": 1500, "after_bytes": 1400}}}},
		{"gone", 0, 300 * time.Millisecond, link{}, model.Reasons{{Code: model.InterfaceGone, Name: "va"}}},
		{"gone at the last moment", 0, 990 * time.Millisecond, link{}, model.Reasons{{Code: model.InterfaceGone, Name: "va"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				e := newEnd(Order{Role: Send}, f)
				defer e.Close()
				if err := connect(e); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				e.watch.asleep = func() time.Duration {
					if time.Since(began) > 0 {
						return time.Minute + c.slept
					}
					return time.Minute
				}
				e.watch.links = []link{{"va", 7, 1500}}
				asked := 0
				e.watch.state = func(int) (link, bool) {
					asked++
					if time.Since(began) < c.at {
						return link{"va", 7, 1500}, true
					}
					return c.now, c.now.index > 0
				}
				if err := e.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(990*time.Millisecond, e.Stop)
				<-e.Done()
				r, err := e.Report()
				if err != nil || asked != 1 {
					t.Errorf("%v; the interface was looked at %d times, want once, at the end", err, asked)
				}
				if got := r.Disturbed; !reflect.DeepEqual(got, c.want) {
					t.Errorf("%v, want %v", got, c.want)
				}
			})
		})
	}
}

// A report of another host says no more of disturbances than there can be.
func TestDisturbancesAreClamped(t *testing.T) {
	r := Report{Disturbed: model.Reasons{{Code: model.Interrupted},
		{Code: model.HostSlept, Text: "x", Flow: "y", Numbers: map[string]float64{"slept_s": 2}}}}
	r.Clamp(model.Timing{})
	if len(r.Disturbed) != 1 || r.Disturbed[0].Code != model.HostSlept || r.Disturbed[0].Text != "" ||
		r.Disturbed[0].Flow != "" {
		t.Errorf("got %+v", r.Disturbed)
	}
}
