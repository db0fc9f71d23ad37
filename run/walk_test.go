package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pelt/model"
	"pelt/plan"
	"pelt/unit"
)

// stage stands for the machine that trials run on.
type stage struct {
	mu       sync.Mutex
	now      []*current // running
	sending  int
	most     int // that ran at a time
	mostSent int // that sent at a time
	alone    []string
	log      []string
	gate     chan struct{} // each trial takes one from here before it sends, and one before it ends
	judge    func(c *current, beside int) model.Result
}

func (s *stage) try(ctx context.Context, c *current, _ int, sent func()) (model.Result, error) {
	s.mu.Lock()
	s.now = append(s.now, c)
	s.sending++
	s.most, s.mostSent = max(s.most, len(s.now)), max(s.mostSent, s.sending)
	s.mu.Unlock()
	most := 0
	for _, then := range []func(){func() { s.sending-- }, func() {}} {
		select {
		case <-s.gate:
		case <-ctx.Done():
		}
		s.mu.Lock()
		most = max(most, len(s.now)-1)
		then()
		s.mu.Unlock()
		if ctx.Err() == nil {
			sent() // the second time too: it may
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = slices.DeleteFunc(s.now, func(x *current) bool { return x == c })
	r := s.judge(c, most)
	r.Cell, r.Repeat = c.trial.Cell, c.trial.Repeat
	if ctx.Err() != nil {
		r.State, r.Why = model.Aborted, "interrupted"
	}
	s.log = append(s.log, fmt.Sprintf("%s #%d %s", r.Cell.Key(), r.Repeat, r.State))
	if most == 0 {
		s.alone = append(s.alone, trialKey(r.Cell, r.Repeat))
	}
	return r, nil
}

// performed walks a sweep of four intervals, twice each, on a stage.
func performed(t *testing.T, ctx context.Context, s *stage, sideBySide, cores int) (model.Document, error) {
	t.Helper()
	s.gate = make(chan struct{})
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case s.gate <- struct{}{}:
			case <-stop:
				return
			}
		}
	}()
	rate := func(text string) unit.Rate { return mustRate(t, text) }
	p, err := plan.Sweep(plan.SweepOptions{CurveOptions: plan.CurveOptions{Target: "lab:direct", Payloads: []int{64}, Repeats: 2, Seed: 3},
		Rates: []unit.Rate{rate("1kpps"), rate("2kpps"), rate("5kpps"), rate("max")}, SideBySide: sideBySide})
	if err != nil {
		t.Fatal(err)
	}
	doc := model.Document{Plan: p}
	var paths []*path
	for range sideBySide {
		paths = append(paths, &path{})
	}
	var numbers []int
	r := newRunner(Options{Events: func(e Event) {
		if e.Started != nil {
			numbers = append(numbers, e.Started.Number)
		}
	}}, paths, &doc)
	r.cores, r.try = cores, s.try
	err = r.walk(ctx)
	if len(s.now) != 0 || s.sending != 0 {
		t.Errorf("%d trials still run", len(s.now))
	}
	return doc, err
}

func valid(*current, int) model.Result { return model.Result{State: model.Valid} }

func TestTrialsRunSideBySide(t *testing.T) {
	for _, c := range []struct{ sideBySide, cores, most, mostSending int }{{1, 8, 1, 1}, {3, 1, 3, 1}, {3, 2, 3, 1}, {4, 4, 4, 2}, {4, 64, 4, 4}} {
		var s *stage
		var doc model.Document
		for range 20 { // a trial may end before the next one's turn on this machine
			s = &stage{judge: valid}
			var err error
			doc, err = performed(t, t.Context(), s, c.sideBySide, c.cores)
			if err != nil || !doc.Complete || len(doc.Results) != 8 {
				t.Fatalf("%+v: %v, %d results, complete %v", c, err, len(doc.Results), doc.Complete)
			}
			if s.most >= min(c.most, 2) {
				break
			}
		}
		seen := map[string]bool{}
		for _, r := range doc.Results {
			seen[trialKey(r.Cell, r.Repeat)] = true
		}
		if s.most > c.most || s.mostSent > c.mostSending || len(seen) != 8 || doc.Results[0].Beside != 0 || c.most > 1 && s.most < 2 {
			t.Errorf("%+v: %d at a time, of them %d sending; %d different; the first beside %d", c, s.most, s.mostSent, len(seen), doc.Results[0].Beside)
		}
	}
}

// What is invalid in company is tried again alone, and counted; what is invalid
// alone is a result.
func TestSpoiltTrialsRunAlone(t *testing.T) {
	s := &stage{judge: func(c *current, beside int) model.Result {
		if beside > 0 && c.trial.Flows[0].Rate == mustRate(t, "2kpps") || c.trial.Cell["rate_pps"] == model.Word("max") {
			return model.Result{State: model.Invalid, Why: "late"}
		}
		return model.Result{State: model.Valid}
	}}
	var doc model.Document
	for range 20 { // all may end before others have a turn on this machine
		s.log = nil
		var err error
		doc, err = performed(t, t.Context(), s, 4, 64)
		if err != nil || !doc.Complete || len(doc.Results) != 8 {
			t.Fatalf("%v, %d results: %v", err, len(doc.Results), s.log)
		}
		if slices.ContainsFunc(doc.Results, func(r model.Result) bool { return r.Spoilt > 0 }) {
			break
		}
	}
	spoilt := 0
	for _, r := range doc.Results {
		spoilt += r.Spoilt
		switch key := trialKey(r.Cell, r.Repeat); {
		case r.Cell["rate_pps"] == model.Word("max"):
			if r.State != model.Invalid || r.Beside != 0 {
				t.Errorf("%s: %s beside %d; want what it is alone", key, r.State, r.Beside)
			}
		case r.State != model.Valid:
			t.Errorf("%s: %s", key, r.State)
		case r.Spoilt > 0 && r.Beside != 0:
			t.Errorf("%s was spoilt %d times and ran again beside %d", key, r.Spoilt, r.Beside)
		}
	}
	if len(s.log) != 8+spoilt || spoilt == 0 || len(doc.Warnings) == 0 {
		t.Errorf("%d tries, %d spoilt: %v; warnings %v", len(s.log), spoilt, s.log, doc.Warnings)
	}
}

func TestWalkStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	s := &stage{judge: func(*current, int) model.Result {
		if n++; n == 3 {
			cancel()
		}
		return model.Result{State: model.Valid}
	}}
	doc, err := performed(t, ctx, s, 3, 64)
	if !errors.Is(err, context.Canceled) || doc.Complete || finished(doc.Results, "") > 5 {
		t.Errorf("%v, complete %v, %d results", err, doc.Complete, len(doc.Results))
	}
	broken := errors.New("the machine broke")
	r := newRunner(Options{}, []*path{{}, {}, {}}, &model.Document{Plan: doc.Plan})
	tries := 0
	r.try = func(ctx context.Context, c *current, _ int, sent func()) (model.Result, error) {
		r.mu.Lock()
		tries++
		last := tries >= 2
		r.mu.Unlock()
		sent()
		if last {
			return model.Result{}, broken
		}
		return model.Result{Cell: c.trial.Cell, Repeat: c.trial.Repeat, State: model.Valid}, nil
	}
	if err := r.walk(t.Context()); !errors.Is(err, broken) || r.doc.Complete || finished(r.doc.Results, "") != 1 {
		t.Errorf("%v, complete %v, %d results", err, r.doc.Complete, len(r.doc.Results))
	}
}

func TestCheckSideBySide(t *testing.T) {
	for _, c := range []struct {
		target, engine string
		n              int
		ok             bool
	}{
		{"lab:star", "auto", 3, true}, {"lab:direct", "udp", 2, true}, {"lab:loopback", "auto", 2, false}, {"lab:mine", "auto", 2, false},
		{"192.0.2.1", "auto", 2, false}, {"lab:star", "xdp", 2, false}, {"192.0.2.1", "xdp", 1, true}, {"192.0.2.1", "auto", 0, true},
	} {
		p := model.Plan{Target: c.target, Engine: c.engine, Design: model.Design{SideBySide: c.n}}
		if err := checkSideBySide(p); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestCrowded(t *testing.T) {
	lost := func(cause string, n uint64) model.Result {
		return model.Result{State: model.Valid, Flows: []model.FlowResult{{Ledger: model.Ledger{Lines: []model.Line{{Cause: model.CauseLinkLoss, Packets: 9}, {Cause: cause, Packets: n}}}}}}
	}
	for _, c := range []struct {
		name     string
		result   model.Result
		hopeless bool
		want     bool
	}{
		{"as asked", lost(model.CauseLinkQueue, 5), false, false}, {"a full socket", lost("SOCKET_RCVBUFF", 5), false, true}, {"none in the socket", lost("SOCKET_RCVBUFF", 0), false, false},
		{"unknown", model.Result{State: model.Valid, Flows: []model.FlowResult{{Ledger: model.Ledger{Unattributed: 1}}}}, false, true},
		{"late", model.Result{State: model.Invalid}, false, true}, {"too big", model.Result{State: model.Invalid}, true, false}, {"cut", model.Result{State: model.Aborted}, false, false},
	} {
		if got := crowded(c.result, c.hopeless); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// No trial begins beyond a look at results that are not there yet.
func TestTrialsWaitForLooks(t *testing.T) {
	running := func(repeats ...int) (list []*current) {
		for _, n := range repeats {
			list = append(list, &current{trial: model.Trial{Repeat: n}})
		}
		return list
	}
	goesOn := model.Design{Repeats: 10, MostRepeats: 30}
	for _, c := range []struct {
		design  model.Design
		repeat  int
		running []*current
		want    bool
	}{
		{goesOn, 9, running(8, 9), false}, {goesOn, 10, running(9), true}, {goesOn, 10, nil, false}, {goesOn, 11, running(10), false},
		{goesOn, 15, running(14), true}, {goesOn, 20, running(9), true}, {model.Design{Repeats: 10}, 9, running(0), false},
	} {
		if got := early(c.design, c.repeat, c.running); got != c.want {
			t.Errorf("%+v, repeat %d: %v, want %v", c.design, c.repeat, got, c.want)
		}
	}
}
