package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

// quick serves agents on a hub that does not listen.
func quick(t *testing.T, configs ...AgentConfig) *Controller {
	t.Helper()
	c, err := NewController(t.Context(), "1.0", HubAddress{Local: hubWith(t, configs...)})
	testenv.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// measured runs a trial, which is not to be cut.
func measured(t *testing.T, c *Controller, order Trial, progress func(Progress)) Outcome {
	t.Helper()
	out, err := c.RunTrial(t.Context(), order, progress)
	if err != nil || said(out.Cut) != "" {
		t.Fatalf("%v, cut %q", err, said(out.Cut))
	}
	return out
}

func nothingOpen(t *testing.T, w *wire) {
	t.Helper()
	testenv.Await(t, "all ends closed", func() bool { return w.opened.Load() == w.closed.Load() })
}

// A sender that is let go before the receiver reads loses what its buffers do not hold. A receiver that never reads does
// not hold up the end of a trial.
func TestSendersWaitForReaders(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{true, false} {
		w, reading := newWire(), make(chan struct{})
		far := agentOn(w, "far")
		far.Engines["udp"].(*fakeEngine).reading = reading
		c := quick(t, agentOn(w, "near"), far)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan string, 1)
		go func() {
			out, err := c.RunTrial(ctx, upTrial("near", "far", 100*time.Millisecond), nil)
			done <- fmt.Sprint(said(out.Cut), err)
		}()
		testenv.Await(t, "the receiver runs", func() bool { return len(w.events("far", "run receive")) == 1 })
		time.Sleep(4 * gateMargin)
		if n := len(w.events("near", "run send")); n != 0 {
			t.Errorf("%d senders run while the receiver does not read", n)
		}
		if reads {
			close(reading)
		} else {
			cancel()
		}
		how := testenv.Receive(t, "the end of the trial", done)
		if ran := len(w.events("near", "run send")); reads && (how != "<nil>" || ran != 1) || !reads && ran != 0 {
			t.Errorf("reads %v: %s, %d senders ran", reads, how, ran)
		}
		nothingOpen(t, w)
	}
}

// Once a second ends tell what they count, and somebody who watches is told of the cores: of those of each host, or of
// the first one's where all hosts are one.
func TestTrialLive(t *testing.T) {
	t.Parallel()
	for _, oneClock := range []bool{false, true} {
		t.Run(fmt.Sprintf("one clock %v", oneClock), func(t *testing.T) {
			t.Parallel()
			w := newWire()
			a, b := agentOn(w, "near"), agentOn(w, "far")
			measuring(&a, engine.Load{CPU: model.CPU{HostRatio: 0.5}})
			b.Watch = a.Watch
			c := quick(t, a, b)
			trial := upTrial("near", "far", 2200*time.Millisecond)
			trial.Live, trial.OneClock = true, oneClock
			trial.Timing.LeadSeconds = 0.3 // longer than between two beats: ends tell of themselves before it is over
			samples, cores := 0, map[string][]map[int]float64{}
			seconds := map[string]float64{} // the last one that was told
			tell := func(what string, p Progress) {
				second := math.Floor(p.AtS)
				if last, told := seconds[what]; told && second <= last {
					t.Errorf("%s: after second %v: %+v", what, last, p)
				}
				seconds[what] = second
			}
			out := measured(t, c, trial, func(p Progress) {
				switch {
				case p.Cores != nil:
					tell("cores of "+p.Agent, p)
					cores[p.Agent] = append(cores[p.Agent], p.Cores)
				case p.Counts == nil:
					if tell(string(p.Role), p); p.Agent == "" || p.Flow != "up" {
						t.Errorf("%+v", p)
					}
					samples++
				}
			})
			if len(out.Warnings) > 0 {
				t.Error(out.Warnings)
			}
			if samples < 2 { // of two ends
				t.Errorf("%d samples of 2.2 s", samples)
			}
			want := map[string]bool{"near": true, "far": true}
			if oneClock {
				delete(want, "far")
			}
			for who, told := range cores {
				if !want[who] || !maps.Equal(told[0], map[int]float64{0: 0.25, 1: 1}) {
					t.Errorf("cores of %s: %v", who, told)
				}
				delete(want, who)
			}
			if len(want) > 0 {
				t.Errorf("no cores of %v", want)
			}
		})
	}
}

// What another host tells is held to what can be.
func TestTakeBeat(t *testing.T) {
	order := upTrial("near", "far", time.Second)
	order.Live = true
	tr, err := quick(t, agentOn(newWire(), "near"), agentOn(newWire(), "far")).place(order)
	testenv.Must(t, err)
	far := tr.party("far")
	tr.takeBeat(far, beat{AtS: 1, Cores: map[int]float64{-1: 1, 0: -1, 1: 7, 255: 0.5, 256: 0.5},
		Samples: []sample{{End: 1, Packets: 5, AtS: 1}, {End: 0, AtS: 1}, {End: 9, AtS: 1}, {End: 1, AtS: 100}}})
	tr.takeBeat(far, beat{AtS: 100, Cores: map[int]float64{0: 1}})
	if len(tr.samples) != 2 {
		t.Fatalf("%d samples; want one of the end, one of the cores", len(tr.samples))
	}
	if p := <-tr.samples; p.Packets != 5 || p.Role != engine.Receive {
		t.Errorf("%+v", p)
	}
	if p := <-tr.samples; !maps.Equal(p.Cores, map[int]float64{0: 0, 1: 1, 255: 0.5}) || p.Agent != "far" {
		t.Errorf("%+v", p)
	}
	var cut error
	tr.cancel = func(why error) { cut = why }
	long := strings.Repeat("x", 1<<20)
	tr.takeBeat(far, beat{Cut: model.Reason{Code: long, Text: long}})
	if n := len(cut.Error()); n > 3*255 {
		t.Errorf("why the trial was cut takes %d B", n)
	}
	tr.liveness.allow(0) // as once it runs
	tr.liveness.calm(false, time.Now())
	if tr.takeBeat(tr.party("near"), beat{Ended: []int{0}}); tr.liveness.after != calmAfter {
		t.Errorf("its senders ended, and a silence of %v is too long", tr.liveness.after)
	}
	tr.order.Live = false
	tr.takeBeat(far, beat{Cores: map[int]float64{0: 1}})
	if len(tr.samples) != 0 {
		t.Error("cores that nobody asked for")
	}
}

// fakeProcessors have a load, and tell of cores while they are asked.
type fakeProcessors struct {
	engine.Passive
	load engine.Load
}

func (*fakeProcessors) Live() engine.Live {
	return engine.Live{Cores: map[int]float64{0: 0.25, 1: 1, maxCores: 1}}
}
func (p *fakeProcessors) Account() engine.Account { return engine.Account{Load: &p.load} }

// measuring gives an agent fake processors.
func measuring(cfg *AgentConfig, load engine.Load) {
	cfg.Watch = func(engine.WatchOrder) []engine.Part { return []engine.Part{&fakeProcessors{load: load}} }
}

// The first reason is told though the session is closed right after it: the heartbeat may not have come to its turn.
func TestReasonIsTold(t *testing.T) {
	t.Parallel()
	a := quietAgent(t, newWire(), Limits{})
	told := make(chan string, 1000)
	if _, err := a.link.subscribe(sessionSubject(aSession, a.cfg.ID), func(m *nats.Msg) {
		if b, err := decode[beat](m.Data); err == nil && said(b.Cut) != "" {
			told <- said(b.Cut)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		testenv.Must(t, orderOf(t, a, verbMake, goodOrder()))
		s, why := a.find(aSession), fmt.Sprint("reason ", round)
		s.stopTraffic(model.Reason{Code: why})
		s.stopTraffic(model.Reason{Code: "a later reason"})
		if err := s.close(model.Reason{Code: why}); err != nil {
			t.Error(err)
		}
		for testenv.Receive(t, why, told) != why { // a heartbeat may have told the one before twice
		}
	}
}

// TestSurvey: a search of the path MTU ends with its probers, is no flow to those who look on, and what it found is in
// the order of its flows. Whoever serves is told of it, and of the trial that follows.
func TestSurvey(t *testing.T) {
	t.Parallel()
	w := newWire()
	s := serve(t, w, nil)
	c := dial(t, s.addr, agentOn(w, "near"))
	trial := upTrial("near", "far", time.Minute)
	trial.Survey = true
	begun := time.Now()
	out := measured(t, c, trial, nil)
	if s := out.Flows[0].Send; s == nil || s.Probe == nil || s.Probe.Out.Bytes != 1400 || s.Probe.Back.Bytes != 1500 {
		t.Fatalf("%+v", out)
	}
	if took := time.Since(begun); took > testenv.Patience {
		t.Errorf("took %v: it waited for its time to pass", took)
	}
	if probes, sends := w.events("near", "run probe"), w.events("", "run send"); len(probes) != 1 || len(sends) != 0 {
		t.Errorf("%d probers and %d senders ran", len(probes), len(sends))
	}
	nothingOpen(t, w)
	measured(t, c, bothTrial("near", "far", 100*time.Millisecond), nil)
	for _, want := range []string{"client connected", "trial started: path MTU (client 127.0.0.1)",
		"trial started: up udp 64 B at 1 kpps, down udp 64 B at 1 kpps (client 127.0.0.1)"} {
		if !strings.Contains(s.text(), want) {
			t.Errorf("no %q in\n%s", want, s.text())
		}
	}
	if len(c.trials) > 0 {
		t.Errorf("%d trials are still led", len(c.trials))
	}
}

func TestTrialErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(near, far *fakeEngine, trial *Trial)
		want   string
	}{
		{"refused by the far engine", func(_, far *fakeEngine,
			_ *Trial) {
			far.refuse = engine.Refuse(model.ControlMissing, "control", "none", "controls", "cubic")
		},
			`far: flow up: congestion control "none" is not in this kernel; there is cubic. Where it is a module, root loads it: modprobe tcp_none`},
		{"no consent", func(near, _ *fakeEngine, _ *Trial) { near.connectErr = errors.New("no answer from 127.0.0.1") },
			"near: flow up: no answer from 127.0.0.1"},
		{"unknown agent", func(_, _ *fakeEngine, tr *Trial) { tr.Flows[0].To = "nobody" },
			"no host named nobody is on the hub"},
		{"unknown engine", func(_, _ *fakeEngine, tr *Trial) { tr.Flows[0].Send.Engine = "xdp" },
			`near: engine "xdp": that host has udp`},
		{"bad payload", func(_, _ *fakeEngine, tr *Trial) { tr.Flows[0].Flow.PayloadBytes = 15 },
			"the order's ends[0].order.payload_bytes is wrong"}, // whoever is the first to say it
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWire()
			near, far := agentOn(w, "near"), agentOn(w, "far")
			trial := upTrial("near", "far", 100*time.Millisecond)
			c.change(near.Engines["udp"].(*fakeEngine), far.Engines["udp"].(*fakeEngine), &trial)
			controller := quick(t, near, far)
			_, err := controller.RunTrial(t.Context(), trial, nil)
			if err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got error %q\nwant      %q", err, c.want)
			}
			var refusal *engine.Refusal
			if want := strings.Contains(c.name, "refused"); errors.As(err, &refusal) != want {
				t.Errorf("is a refusal: %v, want %v", !want, want)
			}
			nothingOpen(t, w)
		})
	}
}

func TestTrialCut(t *testing.T) {
	t.Parallel()
	t.Run("before it began", func(t *testing.T) {
		t.Parallel()
		w := newWire()
		c := quick(t, agentOn(w, "near"), agentOn(w, "far"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.RunTrial(ctx, upTrial("near", "far", time.Minute), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
		nothingOpen(t, w)
	})
	t.Run("sender fails", func(t *testing.T) {
		t.Parallel()
		w := newWire()
		near := agentOn(w, "near")
		near.Engines["udp"].(*fakeEngine).runErr = errors.New("network is down")
		c := quick(t, near, agentOn(w, "far"))
		out, err := c.RunTrial(t.Context(), upTrial("near", "far", 200*time.Millisecond), nil)
		if want := "near: flow up: network is down"; err != nil || said(out.Cut) != want || out.Flows[0].Receive == nil {
			t.Errorf("got %+v, %v; want cut %q with the receiver's report", out, err, want)
		}
		nothingOpen(t, w)
	})
	t.Run("sender does not end", func(t *testing.T) {
		t.Parallel()
		late := heldUp(t)
		w := newWire()
		near := agentOn(w, "near")
		near.Engines["udp"].(*fakeEngine).ends = func() bool { return false }
		c := quick(t, near, agentOn(w, "far"))
		out, err := c.RunTrial(t.Context(), upTrial("near", "far", 100*time.Millisecond), nil)
		if err != nil || out.Flows[0].Send == nil {
			t.Errorf("got %+v, %v; want the agent to stop its sender", out, err)
		}
		if on := w.events("near", "ended send")[0].Sub(w.events("near",
			"run send")[0]); on > 100*time.Millisecond+overtime+time.Second+8*late() {
			t.Errorf("the sender was on for %v", on)
		}
		nothingOpen(t, w)
	})
	t.Run("serve ends", func(t *testing.T) {
		t.Parallel()
		late := heldUp(t)
		w := newWire()
		s := serve(t, w, nil)
		c := dial(t, s.addr, agentOn(w, "near"))
		var began time.Time
		stop := sync.OnceFunc(func() { began = time.Now(); go s.stop() })
		trial := upTrial("near", "far", time.Minute)
		trial.Timing.LeadSeconds = 0.3 // longer than between two beats: hosts tell of themselves before the sender begins
		out, err := c.RunTrial(t.Context(), trial, func(p Progress) {
			if p.Packets > 0 {
				stop()
			}
		})
		if err != nil || !strings.Contains(said(out.Cut), "pelt serve was stopped there") || out.Flows[0].Send == nil {
			t.Errorf("got %+v, %v", out, err)
		}
		if d := time.Since(began); d > 2*time.Second+8*late() {
			t.Errorf("took %v", d)
		}
		nothingOpen(t, w)
	})
}

// TestNoLeaks runs alone: it counts goroutines.
func TestNoLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	w := newWire()
	s := serve(t, w, func(c *ServeConfig) { c.Listen, c.Code = netip.AddrPort{}, "a-10-b" })
	addr, ctx := s.addr, context.Background()
	if !addr.IsValid() || addr.Port() == 0 {
		t.Fatalf("listening on %v", addr)
	}
	local, err := Resolve(ctx, "localhost", 4)
	testenv.Must(t, err)
	to := netip.AddrPortFrom(local[0], addr.Port())
	for range 3 {
		h, err := StartHub(HubConfig{DontListen: true})
		testenv.Must(t, err)
		if _, err := h.Join(agentOn(w, "near")); err != nil {
			t.Fatal(err)
		}
		c, err := NewController(ctx, "1.0", HubAddress{Local: h}, HubAddress{Addr: to, Code: "A 10 b"})
		testenv.Must(t, err)
		if out, err := c.RunTrial(ctx, upTrial("near", "far", 50*time.Millisecond), nil); err != nil || said(out.Cut) != "" {
			t.Fatalf("%+v, %v", out, err)
		}
		if err := errors.Join(c.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	}
	s.stop()
	testenv.Await(t, "goroutines gone", func() bool {
		return runtime.NumGoroutine() <= before
	})
	if t.Failed() {
		buf := make([]byte, 1<<20)
		t.Logf("%s", buf[:runtime.Stack(buf, true)])
	}
}
