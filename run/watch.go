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
	"pelt/ledger"
	"pelt/model"
)

// path is what was observed of a path in one trial.
type path struct {
	nodes   []seen
	links   []model.LinkResult
	doubts  model.Reasons // why links did not do what was asked, or did not tell
	slowest [2]float64    // least rate of a link, up and down, in bit/s; 0: unknown
	told    model.Result  // what the ends' samples told of a trial that was cut
}

// seen is a node as it was observed.
type seen struct {
	ledger.Node
	branch string        // see node
	why    model.Reasons // it was not observed
}

// watch observes the path during one trial, beside what each agent observes of its own host.
type watch struct {
	site    *site
	kernels map[int]*kernelWatch // by number of the node
	links   *linkWatch           // nil: none is emulated
	router  *routerWatch         // nil: none
}

// watch begins to watch the path during a trial.
func (s *site) watch(t *fleet.Trial) *watch {
	w := &watch{site: s, kernels: map[int]*kernelWatch{}}
	if s.router != nil {
		w.router = s.router.begin(t)
		t.Along = append(t.Along, w.router)
	}
	if s.lab != nil && len(s.lab.Emulated()) > 0 {
		w.links = watchLinks(s.lab, t)
		t.Along = append(t.Along, w.links)
	}
	for i, n := range s.nodes {
		if n.kernel == nil {
			continue
		}
		k := watchKernel(n.kernel, engine.WatchOrder{Trial: t.Number, Drops: model.DropsOff, Timing: t.Timing})
		w.kernels[i] = k
		t.Along = append(t.Along, k)
	}
	return w
}

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

// collect returns what was observed. It is called once, before Close.
func (w *watch) collect(out fleet.Outcome) (p path) {
	if w.router != nil {
		w.router.told = *w.router.Account().Observed
	}
	if w.links != nil {
		_ = w.links.Close()
		p.links, p.doubts = w.links.results(w.site.nodes)
	}
	p.slowest = w.site.slowest()
	for i, n := range w.site.nodes {
		one := n.seen()
		switch k := w.kernels[i]; {
		case k != nil && k.Observation == nil:
			one.why = k.account.Why
		case k != nil:
			one.Observation = ofKernel(*k.Account().Observed, out)
		case n.link > 0:
			one.Observation, one.why = w.links.observation(n.link)
		case n.router:
			w.router.tell(&one)
		default:
			one.Observation, one.why = w.byAgent(n, out)
		}
		p.nodes = append(p.nodes, one)
	}
	return p
}

func (n node) seen() seen {
	return seen{Node: ledger.Node{Name: n.name, In: n.in, Out: n.out}, branch: n.branch}
}

// ofKernel is the observation of a namespace on this machine, whose kernel's verdicts are in
// the accounts of the ends.
func ofKernel(o model.Observation, out fleet.Outcome) *model.Observation {
	o.Mode, o.Why = model.DropsOff, nil
	for _, end := range out.Observed {
		if end.Boot == o.Boot && end.Mode != model.DropsOff {
			o.Mode = end.Mode
		}
	}
	return &o
}

// byAgent returns what the agent of an end told of a node: of its own host, or of another
// namespace of the sender's kernel, which has one clock.
func (w *watch) byAgent(n node, out fleet.Outcome) (_ *model.Observation, why model.Reasons) {
	if o, ok := out.Observed[n.agent.ID]; ok {
		return &o, nil
	} else if o, ok := out.Observed[w.site.nodes[0].agent.ID]; ok && n.namespace != 0 {
		return &model.Observation{Boot: o.Boot, Namespace: n.namespace, Mode: o.Mode, Why: o.Why}, nil
	}
	switch {
	case out.Cut.Code != "":
		return nil, model.Reasons{{Code: model.TrialCut, Of: model.Reasons{out.Cut}}}
	case w.site.silent != "":
		return nil, model.Reasons{{Code: model.NoPelt}}
	}
	return nil, model.Reasons{{Code: model.Untold}}
}

// lossSoFar returns what is known by now of a flow's losses, node by node. counts are those that agents told.
func (w *watch) lossSoFar(f model.Flow, counts map[string]model.Observation) (all []seen) {
	for _, n := range w.site.nodes {
		one := n.seen()
		if o, ok := counts[n.agent.ID]; ok && n.end {
			o.Mode = model.DropsCount // its sequences come with the report
			one.Observation = &o
		} else if n.link > 0 {
			one.Observation = w.links.lossSoFar(f, n.link)
		} else if o, ok := counts[w.site.nodes[0].agent.ID]; ok && n.namespace != 0 {
			one.Observation = &model.Observation{Boot: o.Boot, Namespace: n.namespace, Mode: o.Mode}
		}
		if one.Observation == nil {
			one.why = model.Reasons{{Code: model.ToldLater}}
		}
		all = append(all, one)
	}
	return all
}

// linkWatch observes the emulated links of a lab during one trial, and learns from it which
// packets belong to which flow.
type linkWatch struct {
	engine.Passive                // links count from the begin of a trial to its end, and results and observation tell
	watch          *lab.LinkWatch // nil: it has ended
	accounts       []lab.LinkAccount
	err            error   // why accounts are missing
	carries        [2]bool // by way of a link: what the flows measure passes it
	timing         model.Timing

	mu       sync.Mutex
	streams  map[tuple]stream
	measured uint64 // when the measured part began, by userlink.Now
}

// tuple is the ports of a stream of UDP or TCP.
type tuple struct {
	model.Tuple
	tcp bool
}

// stream is one of a flow's.
type stream struct {
	flow    string
	number  int
	streams int // of the flow
}

func watchLinks(l *lab.Lab, t *fleet.Trial) *linkWatch {
	w := &linkWatch{streams: map[tuple]stream{}, carries: waysOf(t.Flows), timing: t.Timing}
	w.watch, w.err = l.WatchLinks(t.Number, len(t.Flows), Identify)
	return w
}

// waysOf says which ways of a lab's links carry what the flows measure: those of the order of Link.Ends, and those
// back. Nothing of a UDP flow is measured on its way back.
func waysOf(flows []fleet.PlacedFlow) (carries [2]bool) {
	for _, f := range flows {
		up := f.Flow.From == model.Sender
		carries[0] = carries[0] || up || f.Flow.Protocol == model.TCP
		carries[1] = carries[1] || !up || f.Flow.Protocol == model.TCP
	}
	return carries
}

// Identify reads what a lab's emulated links must know of a test packet to tell
// which it was, as userlink.Identify.
func Identify(payload []byte) (trial uint16, sequence uint64, warmup, ok bool) {
	h, ok := engine.ParseHeader(payload)
	return h.Trial &^ engine.WarmupBit, h.Sequence, h.Trial&engine.WarmupBit != 0, ok
}

// Do learns which streams are of which flow, and when the measured part begins.
func (w *linkWatch) Do(_ context.Context, s engine.Step, k engine.Known) (l engine.Learned, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s == engine.Go {
		w.measured = userlink.Now() + uint64(k.UntilMeasured(w.timing))
	}
	for _, f := range k.Flows {
		for i, t := range f.Tuples {
			w.streams[tuple{t, f.Protocol == model.TCP}] = stream{f.Name, i, len(f.Tuples)}
		}
	}
	return l, nil
}

// Close ends the watch and reads the accounts; it may be called again.
func (w *linkWatch) Close() error {
	if w.watch != nil {
		w.accounts, w.err = w.watch.Collect()
		w.watch = nil
	}
	return nil
}

// account returns that of a link, by its number.
func (w *linkWatch) account(link int) (a lab.LinkAccount, why model.Reasons) {
	switch {
	case link <= len(w.accounts):
		return w.accounts[link-1], nil
	case w.err != nil:
		return a, model.Reasons{{Code: model.LinkUnread, Of: model.Reasons{bySystem(w.err)}}}
	}
	return a, model.Reasons{{Code: model.LinkUntold}}
}

// results are what the links among the nodes did, and why that is in doubt. Their observations say that an account is
// missing.
func (w *linkWatch) results(nodes []node) (links []model.LinkResult, doubts model.Reasons) {
	var judged []model.LinkResult
	for _, n := range nodes {
		if n.link == 0 {
			continue
		}
		a, why := w.account(n.link)
		if why == nil {
			links = append(links, a.Results[:]...)
			for way, r := range a.Results {
				if w.carries[way] {
					judged = append(judged, r)
				}
			}
		}
		if len(a.Doubt) > 0 {
			doubts = append(doubts, model.Reason{Code: model.LinkUnread, Link: n.name, Of: a.Doubt})
		}
	}
	return links, append(doubts, linkDoubts(judged)...)
}

// lossSoFar returns the link's losses so far, of all flows in f's direction; nil for a link of another process.
func (w *linkWatch) lossSoFar(f model.Flow, link int) *model.Observation {
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
func (w *linkWatch) observation(link int) (_ *model.Observation, why model.Reasons) {
	a, why := w.account(link)
	if why != nil {
		return nil, why
	}
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
		s, known := w.streams[tuple{model.Tuple{From: v.From, To: v.To}, v.TCP}]
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
		switch {
		case v.Warmup || v.TCP && v.Sequence < w.measured:
			counts[s.flow][c].Warmup++
			continue
		case v.TCP:
			counts[s.flow][c].Packets++
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
	return o, nil
}
