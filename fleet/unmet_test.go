package fleet

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pelt/engine"
	"pelt/model"
)

// refusing refuses the first flow's sender, and has the other ends wait for a peer that does not come.
type refusing struct {
	*fakeEngine
	waited chan error // why an end no longer waits
}

type refusedEnd struct {
	*fakeEnd
	waited chan error
}

func (e *refusing) Open(ctx context.Context, host engine.Host, o engine.Order) (engine.Transport, error) {
	t, err := e.fakeEngine.Open(ctx, host, o)
	if err != nil {
		return nil, err
	}
	return &refusedEnd{t.(*fakeEnd), e.waited}, nil
}

func (f *refusedEnd) Connect(ctx context.Context) (m engine.Meeting, err error) {
	if f.order.Role == engine.Send {
		return m, engine.Refuse(model.HostFault, "text", "no such interface")
	}
	<-ctx.Done()
	f.waited <- ctx.Err()
	return m, ctx.Err()
}

// An end that is refused does not wait until the others have given up.
func TestRefusedEndsConnect(t *testing.T) {
	t.Parallel()
	w := newWire()
	near := agentOn(w, "near")
	e := &refusing{near.Engines["udp"].(*fakeEngine), make(chan error, 4)}
	near.Engines["udp"] = e
	trial := bothTrial("near", "far", 100*time.Millisecond)
	trial.Probe = false
	trial.Flows[1].Dialer = "far" // near's receiver listens
	_, err := quick(t, near, agentOn(w, "far")).RunTrial(t.Context(), trial, nil)
	if want := "near: flow up: no such interface"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	if why := <-e.waited; !errors.Is(why, context.Canceled) {
		t.Errorf("the other end waited until %v", why)
	}
	nothingOpen(t, w)
}

// Who fails says why, though the others are told to stop and may be quicker to say so.
func TestFirstErrorIsTold(t *testing.T) {
	refused := errors.New("refused")
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		err := each([]bool{false, true, false}, func(fails bool) error {
			if fails {
				return refused
			}
			<-ctx.Done()
			return ctx.Err()
		}, cancel)
		if !errors.Is(err, refused) {
			t.Fatalf("got %v", err)
		}
	}
}

// Streams that do not meet are dead to both ends; the others are measured. Without any no end runs, and the outcome
// has what became of them all the same.
func TestUnmetStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		barred  map[string][]int // by flow
		settled []string
		ran     int // senders and receivers
	}{
		"a stream of one flow": {map[string][]int{"up": {1}},
			[]string{"down receive [true true]", "down send [true true]", "probe echo [true]", "probe probe [true]",
				"up receive [true false]", "up send [true false]"}, 4},
		"a flow and the probe": {map[string][]int{"up": {0, 1}, "probe": {0}},
			[]string{"down receive [true true]", "down send [true true]"}, 2},
		"a stream of a TCP flow": {map[string][]int{"tcp": {1}},
			[]string{"down receive [true true]", "down send [true true]",
				"probe echo [true]", "probe probe [true]"}, 2},
		"all flows": {map[string][]int{"up": {0, 1}, "down": {0, 1}}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire()
			w.barred = c.barred
			trial := bothTrial("near", "far", 100*time.Millisecond)
			for i := range trial.Flows {
				trial.Flows[i].Flow.Streams = 2
			}
			if c.barred["tcp"] != nil { // which needs all
				trial.Flows[0].Flow.Name, trial.Flows[0].Flow.Protocol = "tcp", model.TCP
			}
			out, err := quick(t, agentOn(w, "near"), agentOn(w, "far")).RunTrial(t.Context(), trial, nil)
			if err != nil || said(out.Cut) != "" || out.Unmet != (c.ran == 0) {
				t.Fatalf("cut %q, unmet %v, %v", said(out.Cut), out.Unmet, err)
			}
			for i, f := range out.Flows {
				dead := c.barred[trial.Flows[i].Flow.Name]
				m := f.Meeting
				if !slices.Equal(m.Dead, dead) ||
					m.None != (len(dead) == 2 || len(dead) > 0 && trial.Flows[i].Flow.Protocol == model.TCP) ||
					(f.Send == nil) != (m.None || c.ran == 0) ||
					(f.Receive == nil) != (f.Send == nil) {
					t.Errorf("flow %s: dead %v, want %v; %+v", trial.Flows[i].Flow.Name, m.Dead, dead, f)
				}
				for _, s := range append(slices.Clone(m.Asks.Streams), m.Answers.Streams...) {
					if want := uint64(2); s.Met && s.Sent != want || !s.Met && s.Sent != 8 {
						t.Errorf("stream %+v", s)
					}
				}
			}
			slices.Sort(w.settled)
			if ran := len(w.events("", "run send")) + len(w.events("", "run receive")); ran != c.ran ||
				!slices.Equal(w.settled, c.settled) {
				t.Errorf("%d ends ran, want %d; settled %q, want %q", ran, c.ran, w.settled, c.settled)
			}
			nothingOpen(t, w)
		})
	}
}

// Another try may do where something came through, or one way alone lost some: no packet filter does that.
func TestLossy(t *testing.T) {
	for _, c := range []struct {
		asked, asksHeard, answersHeard uint64
		want                           bool
	}{{8, 0, 0, false}, {8, 8, 0, false}, {8, 3, 0, true}, {8, 8, 1, true}, {0, 0, 0, false}} {
		m := Meeting{Dead: []int{1}, Asks: engine.Meeting{Streams: make([]engine.MetStream, 2)},
			Answers: engine.Meeting{Streams: make([]engine.MetStream, 2)}}
		m.Asks.Streams[1] = engine.MetStream{Sent: c.asked, Heard: c.answersHeard}
		m.Answers.Streams[1] = engine.MetStream{Heard: c.asksHeard}
		if m.Lossy() != c.want {
			t.Errorf("%+v: lossy %v", c, m.Lossy())
		}
	}
}
