package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"pelt/engine"
)

func TestNotMet(t *testing.T) {
	refused := errors.New("receiver: connect: the peer does not consent")
	for _, c := range []struct {
		err    error
		waited time.Duration
		unmet  bool
	}{
		{refused, time.Second, false},
		{refused, connectTimeout, true},
		{context.Canceled, 2 * connectTimeout, false},
	} {
		err := notMet(c.err, c.waited)
		if errors.Is(err, ErrUnmet) != c.unmet || !errors.Is(err, c.err) || err.Error() != c.err.Error() {
			t.Errorf("%v after %v is %v, unmet: %v", c.err, c.waited, err, errors.Is(err, ErrUnmet))
		}
	}
}

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

func (f *refusedEnd) Connect(ctx context.Context) ([]engine.Stream, error) {
	if f.order.Role == engine.Send {
		return nil, &engine.Refusal{Why: "no such interface"}
	}
	<-ctx.Done()
	f.waited <- ctx.Err()
	return nil, ctx.Err()
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
	if want := "near: connect: flow up: send: no such interface"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	if why := <-e.waited; !errors.Is(why, context.Canceled) {
		t.Errorf("the other end waited until %v", why)
	}
	nothingOpen(t, w)
}
