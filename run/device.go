package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"pelt/fleet"
	"pelt/lab"
	"pelt/model"
	"pelt/observe/dut"
)

// device is the router under test as a run watches it.
type device struct {
	router fleet.Device
	lab    *lab.Lab  // that it is in; nil: a real one
	node   *lab.Node // of that
	now    *deviceWatch
	ports  ports
}

// deviceNode is what a real router is called on the path.
const deviceNode = "router"

// checkDevice reports whether a plan names a router that can be asked, before
// anything is made for it.
func checkDevice(p model.Plan) error {
	name, inLab := strings.CutPrefix(p.Target, "lab:")
	if inLab && p.DUT != "" && (name == Loopback || name == "direct" || name == lab.Star) {
		return &model.FieldError{Field: "dut", Want: fmt.Sprintf("%s has no router; want lab:switch, lab:router, lab:nat or lab:fast", p.Target)}
	}
	if inLab || p.DUT == "" {
		return nil
	}
	if host, agent := strings.CutPrefix(p.DUT, model.AgentDUT); agent {
		if _, _, err := model.HostPort(host); err != nil {
			return &model.FieldError{Field: "--dut", Want: fmt.Sprintf("want pelt://HOST[:PORT], not %.80q", p.DUT)}
		}
		return nil
	}
	if _, err := dut.ParseTarget(p.DUT); err != nil {
		return &model.FieldError{Field: "--dut", Want: err.Error()}
	}
	return nil
}

// watchDevice begins to watch the router that a plan names, if it names one. l is
// the plan's lab, if it has one.
// code is that of its pelt serve, if it has one.
func (p *path) watchDevice(ctx context.Context, plan model.Plan, l *lab.Lab, code, version string) error {
	if plan.DUT == "" {
		return nil
	}
	d := &device{}
	var start dut.Start
	name, source := deviceNode, plan.DUT
	if l != nil {
		node, ok := l.Router()
		if !ok {
			return &model.FieldError{Field: "dut", Want: fmt.Sprintf("%s has no router; want lab:switch, lab:router, lab:nat or lab:fast", plan.Target)}
		}
		d.lab, d.node, start, name, source = l, node, dut.Local(node.Do), node.Name(), "this machine's kernel, in the lab"
	} else {
		p.spots = []spot{p.spots[0], {name: name, device: true}, p.spots[1]}
	}
	host, agent := strings.CutPrefix(plan.DUT, model.AgentDUT)
	switch {
	case agent:
		at, err := servedAt(ctx, host, 0)
		if err != nil {
			return err
		}
		r, err := fleet.DialDevice(ctx, fleet.HubAddress{Addr: at, Code: code}, source, version)
		if err != nil {
			return err
		}
		d.router = r
	case l == nil:
		target, err := dut.ParseTarget(plan.DUT)
		if err != nil {
			return err // checkDevice has told it
		}
		start = target.Start()
	}
	if d.router == nil {
		r, err := dut.Open(ctx, name, source, start, dut.Options{})
		if err != nil {
			return err
		}
		d.router = askedDevice{r}
	}
	p.onClose(d.router.Close)
	p.device = d
	return nil
}

// facts are what the router told of itself; nil without one.
func (p *path) facts() *model.RouterFacts {
	if p.device == nil {
		return nil
	}
	f := p.device.router.Facts()
	return &f
}

// deviceWatch is the watch over one trial. It is led through the trial's moments
// like the observations along the path.
type deviceWatch struct {
	fleet.DeviceWatch
	threads *threadWatch // nil of a real router
	before  *lab.RouterAccount
	cold    bool // without a warm-up: the measured part begins with the trial
}

// begin watches one trial.
func (d *device) begin(trial uint16, drops model.DropMode, t model.Timing) {
	d.now = &deviceWatch{DeviceWatch: d.router.Begin(trial, drops), before: d.account(), cold: t.WarmupSeconds == 0}
	if d.node != nil {
		d.now.threads = watchThreads(d.node, t)
	}
}

// Snapshot reads what the router tells at a moment.
func (w *deviceWatch) Snapshot(m model.Moment) {
	if m == model.MomentMeasure && w.threads != nil {
		w.threads.begin()
	}
	w.DeviceWatch.Snapshot(m)
	if w.cold && m == model.MomentStart {
		w.Snapshot(model.MomentMeasure)
	}
}

// Close ends the watch; it may be called again.
func (w *deviceWatch) Close() error {
	if w.threads != nil {
		w.threads.end()
	}
	return w.DeviceWatch.Close()
}

// addTo tells in a result what the router did in the measured part.
func (d *device) addTo(result *model.Result) {
	w := d.now
	seconds := 0.0
	for _, f := range result.Flows {
		seconds = max(seconds, f.DurationS)
	}
	watched, series := credibleWatch(w.Watched(time.Duration(seconds * float64(time.Second))))
	if w.threads != nil {
		var own []model.Series
		watched.ThreadRatio, own = w.threads.result(watched.Node)
		series = append(series, own...)
	}
	result.Router, result.Series = &watched, append(result.Series, series...)
	sortSeries(result.Series)
	addAccount(result, watched.Node, w.before, d.account())
}

// endDevice has the router tell how it is after the last trial.
func (r *runner) endDevice() {
	p := r.paths[0]
	if err := p.setup.back(); err != nil {
		r.warn(err.Error())
	}
	if p.device == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), devicePatience)
	defer cancel()
	facts := p.device.router.Finish(ctx)
	if p.device.node != nil { // programs that it has since are of the test
		facts.Offload = r.doc.Router.Offload
	}
	r.doc.Router = &facts
}

// devicePatience is how long a router may take to tell how it is.
const devicePatience = 15 * time.Second

var errNoVariants = errors.New("a lab that another process holds keeps its router as it is; want no --variant")
