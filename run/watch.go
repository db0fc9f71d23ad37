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

// observer watches one node of a site, trial by trial.
type observer interface {
	// begin starts the watch over a trial. nil without an error: nothing is to be watched.
	begin(t *fleet.Trial) (observation, error)
}

// observation is an observer's watch over one trial. It is led through the trial's moments
// like those of agents.
type observation interface {
	engine.Observation
	// tell adds what was seen of the node, once, before Close.
	tell(one *seen, out fleet.Outcome)
}

// seen is what became known of a node in one trial.
type seen struct {
	node
	observation *model.Observation
	why         string             // there is none
	links       []model.LinkResult // of an emulated link
	queues      map[string]string  // of a link that the kernel emulates: what its drops are called, by interface
	doubt       string             // that it did what was asked
	unobserved  bool               // nobody was to watch its packets
}

// watch is what is watched along the path during one trial, beside what each agent
// watches of its own host.
type watch struct {
	site   *site
	mode   model.DropMode // "" for TCP, which tells its own losses: only links count then
	each   []observation  // by number of the node; nil where nothing is watched
	failed map[int]string // why, likewise
	router *routerWatch   // nil: none
}

// watch begins to watch the path during a trial.
func (s *site) watch(t *fleet.Trial) *watch {
	w := &watch{site: s, mode: t.Drops, each: make([]observation, len(s.nodes)), failed: map[int]string{}}
	if s.router != nil && len(t.Flows) > 0 { // a trial of commands has no moments
		w.router = s.router.begin(t)
		t.Along = append(t.Along, w.router)
	}
	for i, n := range s.nodes {
		if n.observer == nil {
			continue
		}
		o, err := n.observer.begin(t)
		if err != nil {
			w.failed[i] = err.Error()
		} else if o != nil {
			w.each[i] = o
			t.Along = append(t.Along, o)
		}
	}
	return w
}

// Close ends the watch.
func (w *watch) Close() error {
	var errs []error
	for _, o := range w.each {
		if o != nil {
			errs = append(errs, o.Close())
		}
	}
	if w.router != nil {
		errs = append(errs, w.router.Close())
	}
	return errors.Join(errs...)
}

// collect returns what was seen of each node. It is called once, before Close.
func (w *watch) collect(out fleet.Outcome) (all []seen) {
	for i, n := range w.site.nodes {
		one := seen{node: n, why: w.failed[i], unobserved: w.mode == ""}
		if o := w.each[i]; o != nil {
			o.tell(&one, out)
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

// soFar is what the path has told by now of a flow's packets. counts are of the agents.
func (w *watch) soFar(f model.Flow, counts map[string]model.Observation) (all []seen) {
	for i, n := range w.site.nodes {
		one := seen{node: n}
		if o, ok := counts[n.agent.ID]; ok && n.end {
			o.Mode = model.DropsCount // its sequences come with the report
			one.observation = &o
		} else if l, ok := w.each[i].(*userLink); ok {
			one.observation = l.soFar(f)
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

// kernelObserver reads the counters of a namespace on this machine. The verdicts of its
// kernel are in the accounts of the ends.
type kernelObserver struct{ *observe.Observer }

func (k kernelObserver) begin(t *fleet.Trial) (observation, error) {
	if t.Drops == "" {
		return nil, nil
	}
	o, err := k.Begin(t.Number, model.DropsOff)
	if err != nil {
		return nil, err
	}
	return kernelWatch{o}, nil
}

type kernelWatch struct{ *observe.Observation }

func (k kernelWatch) tell(one *seen, out fleet.Outcome) {
	o := k.Report()
	o.Mode, o.Why = model.DropsOff, ""
	for _, end := range out.Observed {
		if end.Boot == o.Boot && end.Mode != model.DropsOff {
			o.Mode = end.Mode
		}
	}
	one.observation = &o
}

// quiet is the part of an observation that links leave out: they count from the begin of a
// trial to its end.
type quiet struct{}

func (quiet) Track(model.Flow, []model.Tuple) error { return nil }
func (quiet) Snapshot(model.Moment)                 {}
func (quiet) Settle(context.Context, bool)          {}
func (quiet) Report() model.Observation             { return model.Observation{} }
func (quiet) Close() error                          { return nil }

// linkAccounts opens one watch a trial over all emulated links of a lab.
type linkAccounts struct {
	lab      *lab.Lab
	watch    *lab.LinkWatch // nil: none is open
	accounts []lab.LinkAccount
	err      error // of the last trial
}

// begin opens the watch, if no other link has done so.
func (u *linkAccounts) begin(t *fleet.Trial) error {
	if u.watch != nil {
		return nil
	}
	identify := Identify
	if t.Drops == "" {
		identify = func([]byte) (uint16, uint64, bool, bool) { return 0, 0, false, false }
	}
	u.accounts = nil
	u.watch, u.err = u.lab.WatchLinks(t.Number, identify)
	return u.err
}

// end ends the watch and reads the accounts of all links.
func (u *linkAccounts) end() error {
	if u.watch != nil {
		u.accounts, u.err = u.watch.Collect()
		u.watch = nil
	}
	return u.err
}

// linkObserver is one of these links, by its number in the lab from 1.
type linkObserver struct {
	all    *linkAccounts
	number int
}

// account adds the link's own account of the trial, and what the drops of its queueing
// disciplines are called.
func (u linkObserver) account(one *seen) (lab.LinkAccount, error) {
	err := u.all.end()
	if all := u.all.accounts; u.number <= len(all) {
		a := all[u.number-1]
		one.links, one.queues, one.doubt = a.Results[:], a.Queues, a.Doubt
		return a, nil
	}
	return lab.LinkAccount{}, cmp.Or(err, errors.New("the lab's holder has no account of it"))
}

// kernelLinkObserver is a link that the kernel emulates. inside watches the namespace
// that it is in; nil: the sender's observation covers it.
type kernelLinkObserver struct {
	linkObserver
	inside observer
}

func (k kernelLinkObserver) begin(t *fleet.Trial) (observation, error) {
	if err := k.all.begin(t); err != nil {
		return nil, err
	}
	w := kernelLink{engine.Observation(quiet{}), k.linkObserver}
	if k.inside == nil {
		return w, nil
	}
	if inside, err := k.inside.begin(t); err != nil {
		return nil, errors.Join(err, w.Close())
	} else if inside != nil {
		w.Observation = inside
	}
	return w, nil
}

// kernelLink is one in one trial.
type kernelLink struct {
	engine.Observation
	link linkObserver
}

func (k kernelLink) Close() error {
	_ = k.link.all.end() // tell has told
	return k.Observation.Close()
}

func (k kernelLink) tell(one *seen, out fleet.Outcome) {
	if inside, ok := k.Observation.(observation); ok {
		inside.tell(one, out)
	}
	if _, err := k.link.account(one); err != nil {
		one.doubt = err.Error()
	}
}

// Identify reads what a lab's emulated links must know of a test packet to tell
// which it was, as userlink.Identify.
func Identify(payload []byte) (trial uint16, sequence uint64, warmup, ok bool) {
	h, ok := engine.ParseHeader(payload)
	return h.Trial &^ engine.WarmupBit, h.Sequence, h.Trial&engine.WarmupBit != 0, ok
}

// userLinkObserver is a link that is emulated in user space.
type userLinkObserver struct{ linkObserver }

func (u userLinkObserver) begin(t *fleet.Trial) (observation, error) {
	if err := u.all.begin(t); err != nil {
		return nil, err
	}
	return &userLink{link: u.linkObserver, streams: map[model.Tuple]stream{}}, nil
}

// userLink is one in one trial, from which it learns which packets are whose.
type userLink struct {
	quiet
	link    linkObserver
	mu      sync.Mutex
	streams map[model.Tuple]stream
}

// stream is one of a flow's.
type stream struct {
	flow    string
	number  int
	streams int // of the flow
}

// Track names the streams of a flow.
func (w *userLink) Track(flow model.Flow, tuples []model.Tuple) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, t := range tuples {
		w.streams[t] = stream{flow.Name, i, len(tuples)}
	}
	return nil
}

func (w *userLink) Close() error {
	_ = w.link.all.end() // tell has told
	return nil
}

func (w *userLink) tell(one *seen, _ fleet.Outcome) {
	a, err := w.link.account(one)
	switch {
	case err != nil:
		one.why = err.Error()
		if one.unobserved {
			one.doubt = one.why
		}
	case !one.unobserved:
		one.observation = w.observation(a)
	}
}

// soFar is what the link has lost by now of a flow in its own direction and of all else
// that way; nil where nobody tells.
func (w *userLink) soFar(f model.Flow) *model.Observation {
	if w.link.all.watch == nil {
		return nil
	}
	both, ok := w.link.all.watch.Lost(w.link.number - 1)
	if !ok {
		return nil
	}
	lost := both[0]
	if f.From != model.Sender {
		lost = both[1]
	}
	o := linkObservation(w.link.number, model.DropsCount)
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

// linkObservation is a link as a kernel of its own, which saw each packet.
func linkObservation(number int, mode model.DropMode) *model.Observation {
	return &model.Observation{Boot: fmt.Sprintf("emulated link %d", number), Namespace: uint64(number), Mode: mode,
		Drops: &model.Drops{}}
}

// observation is what a link did to the trial's packets.
func (w *userLink) observation(a lab.LinkAccount) *model.Observation {
	o := linkObservation(w.link.number, model.DropsSeq)
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
