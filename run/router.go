package run

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/fleet"
	"pelt/lab"
	"pelt/model"
	"pelt/observe/dut"
)

// router is the router under test as a run watches it.
type router struct {
	fleet.Router
	lab   *lab.Lab  // that it is in; nil: a real one
	node  *lab.Node // of that
	ports ports
}

// deviceNode is what a real router is called on the path.
const deviceNode = "router"

// checkRouter reports whether a plan names a router that can be asked, before
// anything is made for it.
func checkRouter(p model.Plan) error {
	name, inLab := strings.CutPrefix(p.Target, "lab:")
	if inLab && p.DUT != "" && (name == Loopback || name == "direct" || name == lab.Star) {
		return refuse("dut", "%s has no router; want lab:switch, lab:router, lab:nat or lab:fast", p.Target)
	}
	if inLab || p.DUT == "" {
		return nil
	}
	if host, agent := strings.CutPrefix(p.DUT, model.AgentDUT); agent {
		if _, _, err := model.HostPort(host); err != nil {
			return refuse("--dut", "want pelt://HOST[:PORT], not %.80q", p.DUT)
		}
		return nil
	}
	if _, err := dut.ParseTarget(p.DUT); err != nil {
		return refuse("--dut", "%v", err)
	}
	return nil
}

// watchRouter begins to watch the router that a plan names, if it names one. code is that of
// its pelt serve, if it has one.
func (s *site) watchRouter(ctx context.Context, plan model.Plan, code, version string) (err error) {
	if plan.DUT == "" {
		return nil
	}
	r := &router{}
	var start dut.Start
	name, source := deviceNode, plan.DUT
	if s.lab != nil {
		n, ok := s.lab.Router()
		if !ok {
			return refuse("dut", "%s has no router; want lab:switch, lab:router, lab:nat or lab:fast", plan.Target)
		}
		r.lab, r.node, start, name, source = s.lab, n, dut.Local(n.Do), n.Name(), "this machine's kernel, in the lab"
	} else {
		s.nodes = slices.Insert(s.nodes, 1, node{name: name, router: true})
	}
	host, agent := strings.CutPrefix(plan.DUT, model.AgentDUT)
	switch {
	case agent:
		at, more, err := controlAddresses(ctx, host, 0)
		if err != nil {
			return err
		}
		hub := fleet.HubAddress{Addr: at, More: more, Code: code}
		if r.Router, err = fleet.WatchRouter(ctx, hub, source, version); err != nil {
			return err
		}
	case s.lab == nil:
		target, err := dut.ParseTarget(plan.DUT)
		if err != nil {
			return err // checkRouter has told it
		}
		start = target.Start()
	}
	if r.Router == nil {
		asked, err := dut.Open(ctx, name, source, start)
		if err != nil {
			return err
		}
		r.Router = device{Router: asked}
	}
	s.onClose(r.Close)
	s.router = r
	return nil
}

// routerFacts are what the router told of itself; nil without one.
func (s *site) routerFacts() *model.RouterFacts {
	if s.router == nil {
		return nil
	}
	f := s.router.Facts()
	return &f
}

// routerWatch is the watch over one trial, with what this process knows of a router of its own lab.
type routerWatch struct {
	engine.Part
	router *router
	flows  []fleet.PlacedFlow
	timing model.Timing
	before *lab.RouterAccount // of a lab's
	told   model.Observation  // once the trial is over

	mu      sync.Mutex
	threads map[string]time.Duration // processor times when the measured part began
}

func (r *router) begin(t *fleet.Trial) *routerWatch {
	part := r.Begin(engine.WatchOrder{Trial: t.Number, Drops: t.Drops, Timing: t.Timing})
	return &routerWatch{Part: part, router: r, flows: t.Flows, before: r.account(), timing: t.Timing}
}

// tell adds what the router told of its counters.
func (w *routerWatch) tell(one *seen) {
	one.Observation = &w.told
	w.router.ports.learn(w.flows, &w.told)
	if p := w.router.ports; p.lan != "" {
		one.In, one.Out = []string{p.lan}, []string{p.wan}
	}
}

// Do leads the watch, and reads the router's threads when the measured part begins.
func (w *routerWatch) Do(ctx context.Context, s engine.Step, k engine.Known) (engine.Learned, error) {
	var threads sync.WaitGroup
	if s == engine.Go {
		threads.Go(func() {
			if !engine.Sleep(ctx, k.UntilMeasured(w.timing)) {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.threads = w.router.threadTimes()
		})
	}
	defer threads.Wait()
	return w.Part.Do(ctx, s, k)
}

// addTo tells in a result what the router did in the measured part.
func (w *routerWatch) addTo(result *model.Result) {
	seconds := 0.0
	for _, f := range result.Flows {
		seconds = max(seconds, f.DurationS)
	}
	watched := w.told.Router
	result.Series = append(result.Series, w.told.Series...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if busiest, sum := threadLoad(w.threads, w.router.threadTimes(), seconds); busiest > 0 {
		watched.ThreadRatio = &busiest
		result.Series = append(result.Series, model.Series{Metric: "cpu_thread_ratio", At: watched.Node,
			StepSeconds: seconds, Values: []float64{sum}})
	}
	result.Router = watched
	sortSeries(result.Series)
	addAccount(result, watched.Node, w.before, w.router.account())
}

// endRouter has the router set up again and tell how it is after the last trial.
func (r *runner) endRouter() {
	if r.site.restore != nil {
		if err := r.site.restore(); err != nil {
			r.warn(finding.ReasonOf(err))
		}
	}
	if r.site.router == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), routerPatience)
	defer cancel()
	facts := r.site.router.Finish(ctx)
	if r.site.router.node != nil { // programs that it has since are of the test
		facts.Told = r.doc.Router.Told
	}
	r.doc.Router = &facts
}

// routerPatience is how long a router may take to tell how it is.
const routerPatience = 15 * time.Second
