package engine

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
)

// fake is a transport whose packets come by the clock.
type fake struct {
	heard   func(since time.Duration) uint64
	began   time.Time
	stop    chan struct{}
	stops   int
	closed  int
	consent chan struct{}
	refused error // of Connect
	failure error // of Run
}

func newFake() *fake {
	f := &fake{stop: make(chan struct{}), consent: make(chan struct{}), heard: func(time.Duration) uint64 { return 0 }}
	close(f.consent)
	return f
}

// newEnd is an end that a transport is open for.
func newEnd(o Order, t Transport) *End {
	e := New(nil, nil, o)
	e.state, e.transport = prepared, t
	return e
}

func (f *fake) Ports() []uint16 { return []uint16{7} }
func (f *fake) Connect(ctx context.Context) (Meeting, error) {
	at := netip.MustParseAddrPort("127.0.0.1:7")
	select {
	case <-f.consent:
		return Meeting{Streams: []MetStream{{Stream: Stream{at, at}, Met: true}}}, f.refused
	case <-f.stop:
		return Meeting{}, context.Canceled
	case <-ctx.Done():
		return Meeting{}, ctx.Err()
	}
}
func (f *fake) Settle([]bool) error { return nil }
func (f *fake) Run(reading func()) error {
	f.began = time.Now()
	reading()
	if f.failure == nil {
		<-f.stop
	}
	return f.failure
}
func (f *fake) Stop() { f.stops++; close(f.stop) }
func (f *fake) Count() Snapshot {
	n := f.heard(time.Since(f.began))
	return Snapshot{Packets: n, Heard: n}
}
func (f *fake) Pulse(mine uint64, _ bool) uint64 { return mine }
func (f *fake) Account(r *Report, sent Sent)     { r.Receive = &ReceiveReport{Unread: sent.Left()} }
func (f *fake) Close() error                     { f.closed++; return nil }

// A drain ends when all has come, when nothing came for a while, or when its time or its
// context is over, and says if packets still came then. On a slow path packets may come far apart.
func TestDrain(t *testing.T) {
	const ms = time.Millisecond
	all := func(time.Duration) uint64 { return 5 }
	slow := func(since time.Duration) uint64 { return 1 + uint64(since/(400*ms)) }
	for _, c := range []struct {
		name         string
		protocol     model.Protocol
		heard        func(time.Duration) uint64
		before       time.Duration // of receiving
		drain        time.Duration
		sent, unsent uint64
		cancel       bool
		want         time.Duration
		cut          bool
	}{
		{"all came", model.UDP, all, 0, time.Minute, 5, 0, false, 0, false},
		{"one never left", model.UDP, all, 0, time.Minute, 6, 1, false, 0, false},
		{"one never comes", model.UDP, all, 0, 1200 * ms, 6, 0, false, 300 * ms, false},
		{"one never comes, long drain", model.UDP, all, 0, time.Minute, 6, 0, false, time.Second, false},
		{"no drain", model.UDP, all, 0, 0, 6, 0, false, 0, false},
		{"cancelled", model.UDP, all, 0, time.Minute, 6, 0, true, 0, false},
		{"slow path", model.UDP, slow, 810 * ms, 1200 * ms, 4, 0, false, 390 * ms, false},
		{"slow path, too short", model.UDP, slow, 810 * ms, 600 * ms, 8, 0, false, 600 * ms, true},
		{"silent TCP", model.TCP, all, 0, 8 * time.Second, 5, 0, false, 2 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.heard = c.heard
				e := newEnd(Order{Role: Receive, Flow: model.Flow{Protocol: c.protocol},
					Timing: model.Timing{DrainSeconds: c.drain.Seconds()}}, f)
				testenv.Must(t, connect(e))
				testenv.Must(t, e.Start(t.Context()))
				time.Sleep(c.before)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel {
					cancel()
				}
				begun := time.Now()
				if err := e.Drain(ctx, Sent{Streams: []uint64{c.sent}, Unsent: c.unsent}); (err != nil) != c.cancel {
					t.Errorf("drain: %v", err)
				}
				if d := time.Since(begun); d < c.want || d > c.want+20*ms {
					t.Errorf("took %v, want %v", d, c.want)
				}
				r, err := e.Report()
				if cut := r.Warnings.Has(model.DrainShort); err != nil ||
					cut != c.cut || r.Receive.StillCame != c.cut || r.Receive.Unread != c.sent-c.unsent {
					t.Errorf("%+v, %v; want no stop, cut %v, and what the drain was told", r, err, c.cut)
				}
				if err := errors.Join(e.Close(), e.Close()); err != nil || f.stops != 1 || f.closed != 1 {
					t.Errorf("%v: stopped %d times, closed %d times", err, f.stops, f.closed)
				}
			})
		})
	}
}

// connect makes an end ready to start.
func connect(e *End) error {
	if _, err := e.Connect(context.Background()); err != nil {
		return err
	}
	return e.Settle([]bool{true})
}

// Whatever is called in whatever state, calls out of place fail and change nothing, Stop and
// Close end all that waits, and the report stays.
func TestEndStates(t *testing.T) {
	meet := func(e *End) error { _, err := e.Connect(context.Background()); return err }
	run := func(e *End) error { return e.Start(context.Background()) }
	drain := func(e *End) error { return e.Drain(context.Background(), Sent{}) }
	stop := func(e *End) error { e.Stop(); return nil }
	failure := errors.New("no such option")
	type step struct {
		call func(*End) error
		err  string
	}
	for _, c := range []struct {
		name    string
		role    Role
		change  func(*fake)
		steps   []step
		failure error
	}{
		{"out of turn", Send, nil, []step{{run, "not connected"}, {connect, ""}, {connect, "is ready"},
			{drain, "no running receiver"}, {run, ""}, {run, "is running"}, {stop, ""}}, nil},
		{"stopped before it is started", Send, nil, []step{{connect, ""}, {stop, ""}, {run, ""}}, nil},
		{"drained and stopped", Receive, nil,
			[]step{{drain, "no running receiver"}, {connect, ""}, {run, ""}, {drain, ""}, {stop, ""}, {drain, ""}},
			nil},
		{"no consent", Receive, func(f *fake) { f.refused = failure },
			[]step{{connect, failure.Error()}, {run, "still connecting"}}, nil},
		{"traffic fails", Send, func(f *fake) { f.failure = failure }, []step{{connect, ""}, {run, ""}}, failure},
		{"stopped while it connects", Send, func(f *fake) { f.consent = nil },
			[]step{{func(e *End) error { time.AfterFunc(time.Hour, e.Stop); return connect(e) }, "canceled"}}, nil},
		{"closed while it connects", Send, func(f *fake) { f.consent = nil },
			[]step{{func(e *End) error { time.AfterFunc(time.Hour, func() { e.Close() }); return connect(e) },
				"canceled"}}, nil},
		{"not ready", Send, nil, []step{{func(e *End) error { return e.Settle(nil) }, "not connected"}, {meet, ""},
			{run, "is connected"}}, nil},
		{"closed", Send, nil, []step{{(*End).Close, ""}, {connect, "closed"}, {run, "closed"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				if c.change != nil {
					c.change(f)
				}
				e := newEnd(Order{Role: c.role}, f)
				for i, s := range c.steps {
					if err := s.call(e); (err == nil) != (s.err == "") || err != nil &&
						!strings.Contains(err.Error(), s.err) {
						t.Errorf("step %d: %v, want %q", i, err, s.err)
					}
				}
				synctest.Wait()
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				<-e.Done()
				if _, err := e.Report(); !errors.Is(err, c.failure) {
					t.Errorf("%v; want %v", err, c.failure)
				}
				if f.stops != 1 || f.closed != 1 || e.Snapshot() != (Snapshot{}) {
					t.Errorf("stopped %d times, closed %d times, %+v", f.stops, f.closed, e.Snapshot())
				}
			})
		})
	}
}
