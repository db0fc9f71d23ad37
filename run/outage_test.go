package run

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/plan"
	"pelt/words"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// A soak whose far host was away goes on when it is back, and says how long that took.
func TestSoakGoesOn(t *testing.T) {
	t.Parallel()
	p := soakOf(t, 12, 60)
	stop := serveAt(t, p.Target)
	stopped := false
	doc, err := Execute(t.Context(), p, Options{Version: "test", Code: "tiger-42-amber", Events: func(e Event) {
		if e.Progress != nil && !stopped {
			stopped = true
			stop()
			serveAt(t, p.Target)
		}
	}})
	if err != nil || !doc.Complete || len(doc.Results) != 2 || len(doc.Results[1].Outages) != 1 ||
		doc.Results[1].Why.Has(model.NoPath) {
		t.Fatalf("%v, complete %v, %+v; want two trials, and what was between them", err, doc.Complete, doc.Results)
	}
	first, second := doc.Results[0], doc.Results[1]
	if first.State != model.Aborted || first.Outages != nil || second.Flows[0].Attempted == 0 {
		t.Errorf("%s, outages %+v, then %d packets", first.State, first.Outages, second.Flows[0].Attempted)
	}
	o := second.Outages[0]
	if o.DurationS <= 0 || o.StartS < 0 || o.BeginS < o.StartS+o.DurationS || o.From.Before(first.Started) {
		t.Errorf("the outage is %+v", o)
	}
}

// A far host that never comes back ends a soak when its time is over.
func TestSoakWithoutPath(t *testing.T) {
	t.Parallel()
	p := soakOf(t, 10, 3)
	stop := serveAt(t, p.Target)
	doc, err := Execute(t.Context(), p, Options{Version: "test", Code: "tiger-42-amber", Events: func(e Event) {
		if e.Progress != nil {
			stop()
		}
	}})
	if err == nil || len(doc.Results) != 2 || !doc.Results[1].Why.Has(model.NoPath) ||
		len(doc.Results[1].Outages) != 1 {
		t.Fatalf("%v, results %+v; want a second one that had no path", err, doc.Results)
	}
}

// Why a run ended is told in the language of its reader.
func TestCutIsSaid(t *testing.T) {
	cut := model.Result{State: model.Aborted, Why: model.Reasons{{Code: model.OutOfTime}}}
	_, err := (&runner{doc: &model.Document{}}).goOn(t.Context(), nil, model.Trial{}, 1, cut)
	if err == nil || err.Error() != "trial cut: out of time" || words.Chinese.Error(err) != "试验被中断：时间用完了" {
		t.Errorf("%v, %s", err, words.Chinese.Error(err))
	}
}

// soakOf is a soak of a far host that is not there yet.
func soakOf(t *testing.T, measure, patience float64) model.Plan {
	t.Helper()
	p, err := plan.Soak.Of(fmt.Sprint("127.0.0.1:", testenv.Port(t)), "rate=1kpps", "payload=64")
	testenv.Must(t, err)
	p.Timing = model.Timing{WarmupSeconds: 0.01, MeasureSeconds: measure, DrainSeconds: 0.5, PatienceSeconds: patience}
	return p
}

// serveAt is a far host, and returns when clients may come; stop ends it.
func serveAt(t *testing.T, target string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	at := netip.MustParseAddrPort(target)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, ServeOptions{EndOptions: EndOptions{Version: "test", Listen: at.Addr(),
			Events: func(error) {}},
			Port: int(at.Port()), Code: "tiger-42-amber", Ready: func() { close(ready) }})
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}
