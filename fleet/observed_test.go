package fleet

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

// watchDuring is a part that does something once it is told to go.
type watchDuring struct {
	engine.Passive
	during func(context.Context)
}

func (w watchDuring) Do(ctx context.Context, s engine.Step, _ engine.Known) (l engine.Learned, _ error) {
	if s == engine.Go {
		w.during(ctx)
	}
	return l, nil
}

// telling is a part with an account.
type telling struct {
	engine.Passive
	account engine.Account
}

func (p telling) Account() engine.Account { return p.account }

// Of a host that is lost in a trial nothing is told: no zeros stand for its counters, its processors and its end.
func TestLostHostTellsNothing(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("lost ", lost), func(t *testing.T) {
			t.Parallel()
			w := newWire()
			watch := func(cfg *AgentConfig) {
				cfg.Watch = func(engine.WatchOrder) []engine.Part {
					return []engine.Part{
						telling{account: engine.Account{Load: &engine.Load{CPU: model.CPU{HostRatio: 0.5}}}},
						telling{account: engine.Account{Observed: &model.Observation{Boot: cfg.ID}}}}
				}
			}
			path := newCable(t, serve(t, w, func(c *ServeConfig) { watch(&c.Agent) }).addr)
			near := agentOn(w, "near")
			watch(&near)
			hosts := []string{"far", "near"}
			if lost {
				hosts = hosts[1:]
				near.Engines["udp"].(*fakeEngine).ends = path.out.Load // not before the far host is gone
				whenSending(w, 1, func() { path.out.Store(true); path.reset() })
			}
			out, err := dial(t, path.addr, near).RunTrial(t.Context(), upTrial("near", "far", time.Second), nil)
			if err != nil || lost != (said(out.Cut) != "") || out.Flows[0].Send == nil ||
				lost != (out.Flows[0].Receive == nil) {
				t.Errorf("%v, cut %q, %+v", err, said(out.Cut), out.Flows[0])
			}
			if got := slices.Sorted(maps.Keys(out.Load)); !slices.Equal(got, hosts) || out.Load["near"].CPU.HostRatio != 0.5 {
				t.Errorf("loads %+v, want those of %v", out.Load, hosts)
			}
			if got := slices.Sorted(maps.Keys(out.Observed)); !slices.Equal(got, hosts) || out.Observed["near"].Boot != "near" {
				t.Errorf("observed %+v, want %v", out.Observed, hosts)
			}
		})
	}
}

// What watches along the path is told where a flow goes, also to the host that calls.
func TestWhereFlowsGo(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := quick(t, agentOn(w, "near"), agentOn(w, "far"))
	trial := bothTrial("near", "far", time.Second)
	near, far := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.1.2")
	trial.Flows[0].Flow.Address, trial.Flows[1].Flow.Address = far, netip.Addr{}
	placed, err := c.place(trial)
	testenv.Must(t, err)
	for i := range placed.ends {
		e := &placed.ends[i]
		here := far
		if !e.Order.Listen {
			here = near
		}
		told := answerOf(engine.Meeting{Streams: []engine.MetStream{{Met: true,
			Stream: engine.Stream{Local: netip.AddrPortFrom(here, 7), Remote: netip.AddrPortFrom(here, 8)}}}})
		if e.met, err = told.meeting(1); err != nil {
			t.Fatal(err)
		}
	}
	for met, want := range map[bool][]netip.Addr{false: {far, {}}, true: {far, far, near, near}} {
		var got []netip.Addr
		for _, f := range placed.flowsToWatch(met) {
			got = append(got, f.To)
		}
		if !slices.Equal(got, want) {
			t.Errorf("met %v: flows go to %v, want %v", met, got, want)
		}
	}
}

// The caller of a trial closes its parts when the trial returns: none of them may be at work then.
func TestNoPartIsLedAfterATrial(t *testing.T) {
	t.Parallel()
	w := newWire()
	a, b := agentOn(w, "near"), agentOn(w, "far")
	ctx, stop := context.WithCancel(t.Context())
	var reading atomic.Bool
	running := make(chan struct{})
	o := watchDuring{during: func(ctx context.Context) {
		<-running
		reading.Store(true)
		stop()
		<-ctx.Done()
		time.Sleep(time.Second)
		reading.Store(false)
	}}
	trial := upTrial("near", "far", time.Minute)
	trial.Along = []engine.Part{o}
	begun := sync.OnceFunc(func() { close(running) })
	out, err := quick(t, a, b).RunTrial(ctx, trial, func(Progress) { begun() })
	if err != nil || said(out.Cut) == "" {
		t.Errorf("%v, cut %q; want a trial that was stopped", err, said(out.Cut))
	}
	if reading.Load() {
		t.Error("the trial returned while a part was at work")
	}
}

// A trial that is placed: each flow has a number of its own, by which its packets are known. Probes leave from the address
// that their flow leaves from: another one may take another path. Only UDP to another network whose rate is asked for has
// a breaker.
func TestPlace(t *testing.T) {
	t.Parallel()
	c := quick(t, agentOn(newWire(), "near"), agentOn(newWire(), "far"))
	place := func(order Trial) *trial {
		placed, err := c.place(order)
		testenv.Must(t, err)
		return placed
	}
	from := []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}
	for first, want := range map[uint16][]uint16{77: {77, 77, 78, 78, 79, 79},
		engine.WarmupBit - 2: {32766, 32766, 32767, 32767, 1, 1}} {
		order := bothTrial("near", "far", time.Second)
		order.Number, order.Probe = first, true
		order.Flows[0].Flow.SourceAddresses = from
		var got []uint16
		for _, e := range place(order).ends {
			got = append(got, e.Order.Trial)
			if e.Order.Role == engine.Probe && !slices.Equal(e.Order.Flow.SourceAddresses, from[:1]) {
				t.Errorf("the probe leaves from %v, want %v", e.Order.Flow.SourceAddresses, from[:1])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("ends have the numbers %v, want %v", got, want)
		}
	}
	for name, f := range map[string]struct {
		listen   string
		asked    bool
		protocol model.Protocol
		breakers int
	}{"other network": {away, true, model.UDP, 1}, "own network": {home, true, model.UDP, 0},
		"rate search": {away, false, model.UDP, 0}, "tcp": {away, true, model.TCP, 0}} {
		order := upTrial("near", "far", time.Second)
		order.Flows[0].Listen, order.Flows[0].Breaker = netip.MustParseAddr(f.listen), f.asked
		order.Flows[0].Flow.Protocol = f.protocol
		if n := len(place(order).breakers); n != f.breakers {
			t.Errorf("%s: %d breakers, want %d", name, n, f.breakers)
		}
	}
}

// counting is a part that tells what was dropped so far.
type counting struct {
	engine.Passive
	dropped uint64
}

func (c *counting) Live() engine.Live {
	return engine.Live{Counts: &model.Observation{Drops: &model.Drops{Flows: []model.FlowDrops{{Flow: "up",
		Counts: []model.SiteCount{{Packets: c.dropped}}}}}}}
}

// What was dropped so far is told until the counters are read for the last time.
func TestCountsWhileItRuns(t *testing.T) {
	source := &counting{}
	s := &session{watches: []engine.Part{source}}
	for _, source.dropped = range []uint64{3, 7} {
		if c, _ := s.liveFigures(1); c == nil || c.Drops.Flows[0].Counts[0].Packets != source.dropped {
			t.Errorf("told %+v, want %d packets", c, source.dropped)
		}
	}
	s.step = slices.Index(engine.Steps, engine.Still)
	if c, _ := s.liveFigures(1); c != nil {
		t.Error("told beside the report")
	}
}
