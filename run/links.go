package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"pelt/engine"
	"pelt/lab"
	"pelt/lab/impair"
	"pelt/lab/userlink"
	"pelt/model"
	"pelt/unit"
)

// calibrate has the emulated links of a lab measured, once more if chance or a busy
// machine made one look wrong. What cannot be probed is a note, for no test needs it.
func calibrate(ctx context.Context, l *lab.Lab, o Options) ([]model.LinkCalibration, error) {
	if len(l.Emulated()) == 0 {
		return nil, nil
	}
	o.event(Event{Note: "measuring the emulated links"})
	var list []model.LinkCalibration
	for range 2 {
		var err error
		if list, err = l.Calibrate(ctx); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			o.event(Event{Note: fmt.Sprintf("the emulated links are not calibrated: %v", err)})
			return nil, nil
		}
		if !slices.ContainsFunc(list, func(c model.LinkCalibration) bool { return len(c.Off) > 0 }) {
			break
		}
	}
	return list, nil
}

// roads are the emulated links of a lab, and who tells them which packets are whose.
type roads struct {
	links []lab.EmulatedLink

	mu     sync.Mutex
	tuples map[model.Tuple]place // of the present trial
}

type place struct {
	flow    string
	stream  int
	streams int
}

// begin forgets the trial before.
func (r *roads) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tuples = map[model.Tuple]place{}
}

// told wraps the observation of an end, which learns the streams' ports.
func (r *roads) told(see engine.Observe) engine.Observe {
	if len(r.links) == 0 {
		return see
	}
	return func(trial uint16, mode model.DropMode) (engine.Observation, error) {
		o, err := see(trial, mode)
		if err != nil {
			return nil, err
		}
		return listening{o, r}, nil
	}
}

type listening struct {
	engine.Observation
	roads *roads
}

func (l listening) Track(flow model.Flow, tuples []model.Tuple) error {
	l.roads.mu.Lock()
	for i, t := range tuples {
		l.roads.tuples[t] = place{flow.Name, i, len(tuples)}
	}
	l.roads.mu.Unlock()
	return l.Observation.Track(flow, tuples)
}

// road is one link in one trial.
type road struct {
	link    lab.EmulatedLink
	number  uint64 // of it in the lab, from 1
	roads   *roads
	watch   *userlink.Watching
	before  [2]userlink.Counts
	overrun [2]uint64
}

func roadName(ends [2]string) string { return "link " + ends[0] + "-" + ends[1] }

// rails are a link that the kernel emulates, in one trial.
type rails struct {
	link   lab.KernelLink
	before lab.KernelReading
}

func startRails(l lab.KernelLink) (*rails, error) {
	before, err := l.Read()
	if err != nil {
		return nil, err
	}
	return &rails{l, before}, nil
}

// results is the link's own account of the trial, and what its drops are called:
// by interface, those of queueing disciplines and those of programs ahead of them.
func (r *rails) results() (list []model.LinkResult, queues, programs map[string]string, doubt string) {
	now, err := r.link.Read()
	if err != nil {
		return nil, nil, nil, err.Error()
	}
	list = r.link.Since(r.before, now)
	queues, programs = map[string]string{}, map[string]string{}
	for d, one := range list {
		interfaces, causes := r.link.Stages(d, one)
		for i, name := range interfaces {
			queues[name] = causes[i]
		}
		if name := r.link.Program(d); name != "" {
			programs[name] = model.CauseLinkLoss
		}
	}
	return list, queues, programs, ""
}

func (r *roads) watch(i int, trial uint16) (*road, error) {
	l := r.links[i]
	one := &road{link: l, number: uint64(i) + 1, roads: r}
	var err error
	if one.overrun, err = l.Overrun(); err != nil {
		return nil, err
	}
	for d := range one.before {
		one.before[d] = l.Cable.Counts(d)
	}
	one.watch = l.Cable.Watch(trial, func(payload []byte) (uint16, uint64, bool, bool) {
		h, ok := engine.ParseHeader(payload)
		return h.Trial &^ engine.WarmupBit, h.Sequence, h.Trial&engine.WarmupBit != 0, ok
	})
	return one, nil
}

// causes name the sites of a link's verdicts.
var causes = [...]string{
	userlink.Lost: model.CauseLinkLoss, userlink.Fragment: model.CauseLinkFragment, userlink.QueueFull: model.CauseLinkQueue, userlink.Damaged: model.CauseLinkDamage,
}

// observation is what the link did to the trial's packets, as a kernel of its own
// would tell: it saw each of them.
func (r *road) observation() *model.Observation {
	lists, unlisted := r.watch.Collect()
	o := &model.Observation{Boot: fmt.Sprintf("emulated link %d", r.number), Namespace: r.number, Mode: model.DropsSeq, Drops: &model.Drops{}}
	for _, c := range causes {
		o.Drops.Sites = append(o.Drops.Sites, model.Site{Reason: c, Namespace: r.number})
	}
	type lost struct {
		sequence uint64
		cause    userlink.Cause
	}
	streams := map[string][][]lost{}
	counts := map[string][]model.SiteCount{}
	r.roads.mu.Lock()
	defer r.roads.mu.Unlock()
	for _, list := range lists {
		for _, v := range list {
			p, known := r.roads.tuples[model.Tuple{From: v.From, To: v.To}]
			if !known {
				continue // a probe's
			}
			if streams[p.flow] == nil {
				streams[p.flow] = make([][]lost, p.streams)
				for i := range causes {
					counts[p.flow] = append(counts[p.flow], model.SiteCount{Site: i})
				}
			}
			c := v.Cause
			if v.Warmup {
				counts[p.flow][c].Warmup++
				continue
			}
			streams[p.flow][p.stream] = append(streams[p.flow][p.stream], lost{v.Sequence, c})
		}
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
	o.Drops.Overwritten = unlisted[0] + unlisted[1]
	return o
}

// A link whose frames left late (userlink.LateLimit) did not do what was asked, if
// it were this share of them and more than a few.
const (
	maxLateRatio = 0.01
	maxLate      = 20
)

// results is the link's own account of the trial. doubt says why it is not complete.
func (r *road) results() (list []model.LinkResult, doubt string) {
	overrun, err := r.link.Overrun()
	if err != nil {
		doubt = err.Error()
	}
	for d, before := range r.before {
		now := r.link.Cable.Counts(d)
		one := model.LinkResult{
			From: r.link.Ends[d], To: r.link.Ends[1-d],
			Backend: model.BackendUser, Reason: r.link.Reason, Mode: string(cmp.Or(r.link.Ways[d].Mode, impair.Exact)), Seed: r.link.Seeds[d],
			Frames: now.Frames - before.Frames, Refused: now.Refused - before.Refused,
			Overrun: overrun[d] - min(overrun[d], r.overrun[d]), AskedRatio: r.link.Ways[d].LossRatio(),
		}
		lost := now.Lost - before.Lost
		for _, n := range []struct {
			to    **uint64
			value uint64
		}{
			{&one.Passed, now.Passed - before.Passed}, {&one.Lost, lost}, {&one.QueueFull, now.QueueFull - before.QueueFull},
			{&one.Duplicated, now.Duplicated - before.Duplicated}, {&one.Corrupted, now.Corrupted - before.Corrupted},
		} {
			*n.to = &n.value
		}
		late := now.Lateness(before)
		one.LateNS.P50, one.LateNS.P99, one.LateNS.Max = late.P50, late.P99, now.LatestNS
		if one.Frames > 0 {
			ratio := float64(lost) / float64(one.Frames)
			one.LossRatio = &ratio
		}
		if left := now.Left - before.Left; left > 0 {
			one.LateRatio = float64(now.Late-before.Late) / float64(left)
		}
		list = append(list, one)
	}
	return list, doubt
}

// linkDoubt says why what a link did is not what was asked, "" if it is.
func linkDoubt(l model.LinkResult) string {
	switch way := l.From + " to " + l.To; {
	case l.Overrun > 0:
		return fmt.Sprintf("the emulated link %s fell behind: %d frames found no room before it; ask for a lower rate or longer packets", way, l.Overrun)
	case l.LateRatio > maxLateRatio && l.Passed != nil && l.LateRatio*float64(*l.Passed) > maxLate:
		return fmt.Sprintf("the emulated link %s fell behind: %s of its frames left late, by over %v and a tenth of their time on it (99 %% within %s)",
			way, unit.FormatRatio(l.LateRatio), userlink.LateLimit, unit.FormatNanos(float64(l.LateNS.P99)))
	}
	return ""
}
