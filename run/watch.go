package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"pelt/engine"
	"pelt/fleet"
	"pelt/lab"
	"pelt/lab/userlink"
	"pelt/model"
	"pelt/observe"
)

// seen is what was observed of a node in one trial.
type seen struct {
	node
	observation *model.Observation
	why         string             // it is missing
	links       []model.LinkResult // of an emulated link
	doubt       string             // why the account of the link is incomplete
	unobserved  bool               // nobody was to watch its packets
}

// watch observes the path during one trial, beside what each agent observes of its own host.
type watch struct {
	site    *site
	mode    model.DropMode               // "" for TCP, which tells its own losses: only links count then
	kernels map[int]*observe.Observation // by number of the node
	failed  map[int]string               // why, likewise
	links   *linkWatch                   // nil: none is emulated
	router  *routerWatch                 // nil: none
}

// watch begins to watch the path during a trial.
func (s *site) watch(t *fleet.Trial) *watch {
	w := &watch{site: s, mode: t.Drops, kernels: map[int]*observe.Observation{}, failed: map[int]string{}}
	if s.router != nil && len(t.Flows) > 0 { // a trial of commands has no moments
		w.router = s.router.begin(t)
		t.Along = append(t.Along, w.router)
	}
	if s.lab != nil && len(s.lab.Emulated()) > 0 {
		w.links = watchLinks(s.lab, t)
		t.Along = append(t.Along, w.links)
	}
	for i, n := range s.nodes {
		if n.kernel == nil || t.Drops == "" {
			continue
		}
		if o, err := n.kernel.Begin(t.Number, model.DropsOff); err != nil {
			w.failed[i] = err.Error()
		} else {
			w.kernels[i] = o
			t.Along = append(t.Along, o)
		}
	}
	return w
}

// Close ends the watch.
func (w *watch) Close() error {
	var errs []error
	for _, o := range w.kernels {
		errs = append(errs, o.Close())
	}
	if w.links != nil {
		errs = append(errs, w.links.Close())
	}
	if w.router != nil {
		errs = append(errs, w.router.Close())
	}
	return errors.Join(errs...)
}

// collect returns the observation of each node. It is called once, before Close.
func (w *watch) collect(out fleet.Outcome) (all []seen) {
	if w.router != nil {
		w.router.told = w.router.Report()
	}
	for i, n := range w.site.nodes {
		one := seen{node: n, why: w.failed[i], unobserved: w.mode == ""}
		if o := w.kernels[i]; o != nil {
			one.observation = ofKernel(o.Report(), out)
		}
		if n.link > 0 {
			w.links.tell(&one)
		}
		if w.router != nil && n.router {
			w.router.tell(&one)
		}
		if one.observation == nil && !one.unobserved && one.why == "" {
			w.byAgent(&one, out)
		}
		all = append(all, one)
	}
	return all
}

// ofKernel is the observation of a namespace on this machine, whose kernel's verdicts are in
// the accounts of the ends.
func ofKernel(o model.Observation, out fleet.Outcome) *model.Observation {
	o.Mode, o.Why = model.DropsOff, ""
	for _, end := range out.Observed {
		if end.Boot == o.Boot && end.Mode != model.DropsOff {
			o.Mode = end.Mode
		}
	}
	return &o
}

// byAgent adds what the agent of an end told of a node: of its own host, or of another
// namespace of the sender's kernel, which has one clock.
func (w *watch) byAgent(one *seen, out fleet.Outcome) {
	if o, ok := out.Observed[one.agent.ID]; ok {
		one.observation = &o
	} else if o, ok := out.Observed[w.site.nodes[0].agent.ID]; ok && one.namespace != 0 {
		one.observation = &model.Observation{Boot: o.Boot, Namespace: one.namespace, Mode: o.Mode, Why: o.Why}
	} else {
		one.why = cmp.Or(out.Cut, "its account of the trial is missing")
	}
}

// soFar returns what is known of a flow's packets so far. counts are of the agents.
func (w *watch) soFar(f model.Flow, counts map[string]model.Observation) (all []seen) {
	for _, n := range w.site.nodes {
		one := seen{node: n}
		if o, ok := counts[n.agent.ID]; ok && n.end {
			o.Mode = model.DropsCount // its sequences come with the report
			one.observation = &o
		} else if n.link > 0 {
			one.observation = w.links.soFar(f, n.link)
		} else if o, ok := counts[w.site.nodes[0].agent.ID]; ok && n.namespace != 0 {
			one.observation = &model.Observation{Boot: o.Boot, Namespace: n.namespace, Mode: o.Mode}
		}
		if one.observation == nil {
			one.why = "it tells when the trial has ended"
		}
		all = append(all, one)
	}
	return all
}

// linkWatch observes the emulated links of a lab during one trial, and learns from it which
// packets belong to which flow.
type linkWatch struct {
	watch    *lab.LinkWatch // nil: it has ended
	accounts []lab.LinkAccount
	err      error // why accounts are missing

	mu      sync.Mutex
	streams map[model.Tuple]stream
}

// stream is one of a flow's.
type stream struct {
	flow    string
	number  int
	streams int // of the flow
}

func watchLinks(l *lab.Lab, t *fleet.Trial) *linkWatch {
	identify := Identify
	if t.Drops == "" {
		identify = func([]byte) (uint16, uint64, bool, bool) { return 0, 0, false, false }
	}
	w := &linkWatch{streams: map[model.Tuple]stream{}}
	w.watch, w.err = l.WatchLinks(t.Number, identify)
	return w
}

// Identify reads what a lab's emulated links must know of a test packet to tell
// which it was, as userlink.Identify.
func Identify(payload []byte) (trial uint16, sequence uint64, warmup, ok bool) {
	h, ok := engine.ParseHeader(payload)
	return h.Trial &^ engine.WarmupBit, h.Sequence, h.Trial&engine.WarmupBit != 0, ok
}

// Track names the streams of a flow.
func (w *linkWatch) Track(flow model.Flow, tuples []model.Tuple) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, t := range tuples {
		w.streams[t] = stream{flow.Name, i, len(tuples)}
	}
	return nil
}

// Links count from the begin of a trial to its end, whatever the moment.
func (w *linkWatch) Snapshot(model.Moment)        {}
func (w *linkWatch) Settle(context.Context, bool) {}
func (w *linkWatch) Report() model.Observation    { return model.Observation{} }

// Close ends the watch and reads the accounts; it may be called again.
func (w *linkWatch) Close() error {
	if w.watch != nil {
		w.accounts, w.err = w.watch.Collect()
		w.watch = nil
	}
	return nil // tell has told
}

// tell adds the account of a link.
func (w *linkWatch) tell(one *seen) {
	_ = w.Close()
	if one.link > len(w.accounts) {
		one.doubt = cmp.Or(w.err, errors.New("the lab's holder has no account of it")).Error()
		if !one.unobserved {
			one.why, one.doubt = one.doubt, ""
		}
		return
	}
	a := w.accounts[one.link-1]
	one.links, one.doubt = a.Results[:], a.Doubt
	if !one.unobserved {
		one.observation = w.observation(one.link, a)
	}
}

// soFar is what a link has lost by now of a flow in its own direction and of all else
// that way; nil where nobody tells.
func (w *linkWatch) soFar(f model.Flow, link int) *model.Observation {
	if w.watch == nil {
		return nil
	}
	both, ok := w.watch.Lost(link - 1)
	if !ok {
		return nil
	}
	lost := both[0]
	if f.From != model.Sender {
		lost = both[1]
	}
	o := linkObservation(link, model.DropsCount)
	o.Drops.Sites = []model.Site{{Reason: model.CauseLinkLoss, Namespace: o.Namespace}, {Reason: model.CauseLinkQueue,
		Namespace: o.Namespace}}
	o.Drops.Flows = []model.FlowDrops{{Flow: f.Name, Counts: []model.SiteCount{{Site: 0, Packets: lost.Asked},
		{Site: 1, Packets: lost.QueueFull}}}}
	return o
}

// causes name the sites of a link's verdicts.
var causes = [...]string{
	userlink.Lost: model.CauseLinkLoss, userlink.Fragment: model.CauseLinkFragment,
	userlink.QueueFull: model.CauseLinkQueue, userlink.Damaged: model.CauseLinkDamage,
}

// linkObservation presents a link as a kernel that sees every packet.
func linkObservation(number int, mode model.DropMode) *model.Observation {
	return &model.Observation{Boot: fmt.Sprintf("emulated link %d", number), Namespace: uint64(number), Mode: mode,
		Drops: &model.Drops{}}
}

// observation lists the trial's packets that a link dropped.
func (w *linkWatch) observation(link int, a lab.LinkAccount) *model.Observation {
	o := linkObservation(link, model.DropsSeq)
	for _, c := range causes {
		o.Drops.Sites = append(o.Drops.Sites, model.Site{Reason: c, Namespace: o.Namespace})
	}
	type lost struct {
		sequence uint64
		cause    userlink.Cause
	}
	streams := map[string][][]lost{}
	counts := map[string][]model.SiteCount{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range a.Verdicts {
		s, known := w.streams[model.Tuple{From: v.From, To: v.To}]
		if !known {
			continue // a probe's
		}
		if streams[s.flow] == nil {
			streams[s.flow] = make([][]lost, s.streams)
			for i := range causes {
				counts[s.flow] = append(counts[s.flow], model.SiteCount{Site: i})
			}
		}
		c := v.Cause
		if v.Warmup {
			counts[s.flow][c].Warmup++
			continue
		}
		streams[s.flow][s.number] = append(streams[s.flow][s.number], lost{v.Sequence, c})
	}
	for flow, all := range streams {
		f := model.FlowDrops{Flow: flow}
		for _, s := range all {
			slices.SortStableFunc(s, func(a, b lost) int { return cmp.Compare(a.sequence, b.sequence) })
			s = slices.CompactFunc(s, func(a, b lost) bool { return a.sequence == b.sequence }) // two fragments of one
			var w model.MarksWriter
			for _, x := range s {
				w.Add(x.sequence, 1, uint16(x.cause))
				counts[flow][x.cause].Packets++
			}
			f.Streams = append(f.Streams, w.Marks())
		}
		f.Counts = counts[flow]
		o.Drops.Flows = append(o.Drops.Flows, f)
	}
	slices.SortFunc(o.Drops.Flows, func(a, b model.FlowDrops) int { return cmp.Compare(a.Flow, b.Flow) })
	o.Drops.Overwritten = a.Unlisted
	return o
}
