package live

import (
	"slices"
	"time"

	"pelt/model"
	"pelt/render/plain"
	"pelt/unit"
	"pelt/words"
)

// flow is a flow of the plan while a trial runs. In a star it has a part for each receiver, and its rates are sums.
type flow struct {
	name  string
	parts []*part
	first time.Time    // of its samples
	sums  [2]time.Time // when the rates of its senders and of its receivers were summed last
}

// part is a flow of the trial, with what its sender and its receiver told last.
type part struct {
	Ends
	heard [2]heard
}

type heard struct {
	at         time.Time // zero: not in this trial
	value, atS float64   // of the sample
}

const sends, receives = 0, 1 // places in part.heard and flow.sums

// sides is which end of a flow tells a metric. Segments of TCP count differently at both ends, so TCP has bits.
var sides = map[string]int{"send_pps": sends, "send_bps": sends, "receive_pps": receives, "receive_bps": receives}

// Sent reports whether a rate is that of a sender.
func (s Sample) Sent() bool { return sides[s.Metric] == sends }

const (
	longSilence = 3 * time.Second        // of an end: samples come once a second at least
	sumEvery    = 100 * time.Millisecond // the rates of many receivers
	slowest     = 2 * time.Second        // after which sums no longer wait for the first sample of each receiver
)

// part finds a flow of the trial; one that was not announced is added.
func (n *Now) part(ends Ends) (*flow, *part) {
	name := model.PlanFlow(ends.Name)
	i := slices.IndexFunc(n.flows, func(f *flow) bool { return f.name == name })
	if i < 0 {
		i, n.flows = len(n.flows), append(n.flows, &flow{name: name})
	}
	f := n.flows[i]
	p := n.parts[ends.Name]
	if p == nil {
		p = &part{Ends: ends}
		f.parts = append(f.parts, p)
		if n.parts == nil {
			n.parts = map[string]*part{}
		}
		n.parts[ends.Name] = p
	}
	return f, p
}

// take notes a sample of a part. It returns the sample of the whole flow that is due then, if one is.
func (f *flow) take(p *part, s Sample, at time.Time) (sum Sample, due bool) {
	side := sides[s.Metric]
	if f.first.IsZero() {
		f.first = at
	}
	p.heard[side], s.Flow = heard{at, s.Value, s.AtS}, f.name
	if len(f.parts) == 1 {
		return s, true
	}
	if last := f.sums[side]; !last.IsZero() && at.Sub(last) < sumEvery {
		return s, false
	}
	s.At = f.node(side)
	var parts int
	s.Value, parts, _ = f.sum(side, at)
	if f.early(parts, at) {
		return s, false
	}
	f.sums[side] = at
	return s, true
}

// early reports whether a sum of so many parts would leave some out that tell something in a moment.
func (f *flow) early(count int, at time.Time) bool {
	return count < len(f.parts) && at.Sub(f.first) < slowest
}

// node is where a flow is sent from, or received.
func (f *flow) node(side int) string {
	node := f.parts[0].at(side)
	for _, p := range f.parts {
		if p.at(side) != node {
			return model.ManyReceivers
		}
	}
	return node
}

// mute reports whether the ends at one side tell nothing while the trial runs.
func (f *flow) mute(side int) bool {
	p := f.parts[0]
	return p.Silent != "" && p.at(side) == p.Silent
}

// at is the node of one end.
func (e Ends) at(side int) string {
	if side == sends {
		return e.From
	}
	return e.To
}

// sum adds what the ends of one side told, without those that were not heard lately. least is the slowest of them.
func (f *flow) sum(side int, at time.Time) (total float64, count int, least *part) {
	for _, p := range f.parts {
		h := p.heard[side]
		if h.at.IsZero() || at.Sub(h.at) >= longSilence {
			continue
		}
		total, count = total+h.value, count+1
		if least == nil || h.value < least.heard[side].value {
			least = p
		}
	}
	return total, count, least
}

// newest is when an end of the flow was heard last. While it certainly sends and nothing is heard, it is this moment.
func (f *flow) newest(at time.Time, trial *Next) time.Time {
	var last heard
	for _, p := range f.parts {
		for _, h := range p.heard {
			if h.at.After(last.at) {
				last = h
			}
		}
	}
	quiet := at.Sub(last.at)
	if quiet >= longSilence && !trial.UntilSent && last.atS+quiet.Seconds() <= trial.MeasuredSeconds {
		return at
	}
	return last.at
}

// silent lists the parts of which one end was not heard for long, and the shortest time of these.
func (f *flow) silent(side int, newest time.Time) (list []*part, since time.Duration) {
	for _, p := range f.parts {
		last := p.heard[side].at
		if last.IsZero() {
			last = f.first
		}
		if quiet := newest.Sub(last); quiet >= longSilence && !f.first.IsZero() {
			if list = append(list, p); since == 0 || quiet < since {
				since = quiet
			}
		}
	}
	return list, since
}

// longestName is how many columns of a node's name a line of progress has.
const longestName = 24

// status tells what a flow sends and what arrives, in parts of which the first matters most; nothing before all is
// known that ends tell.
func (n *Now) status(f *flow, at time.Time) []string {
	at = f.newest(at, n.Next)
	in := n.Language
	name := plain.Cut(in.Say(plain.Text(f.name)), longestName)
	var rates []string
	for side := range f.sums {
		if f.mute(side) {
			continue
		}
		rates = append(rates, f.told(in, side, at))
	}
	if slices.Contains(rates, "") {
		return nil
	}
	if len(f.parts) == 1 {
		return []string{in.Sayf("%s: %s", name, in.Join(rates))}
	}
	way := "%s, from %d receivers: %s"
	if f.node(receives) == model.ManyReceivers {
		way = "%s, to %d receivers: %s"
	}
	all := []string{in.Sayf(way, name, len(f.parts), in.Join(rates))}
	if silent, since := f.silent(receives, at); len(silent) > 0 && len(silent) < len(f.parts) {
		all = append(all, in.Sayf("(%d not heard for %.0f s: %s)", len(silent), whole(since), f.named(silent[0])))
	}
	if _, _, least := f.sum(receives, at); least != nil {
		all = append(all, in.Sayf("(least %s: %s)", f.rate(least.heard[receives].value), f.named(least)))
	}
	return all
}

// quiet lists the sides of flows from which nothing is heard, and how long that lasts.
func (n *Now) quiet(at time.Time) map[string]time.Duration {
	list := map[string]time.Duration{}
	for _, f := range n.flows {
		newest := f.newest(at, n.Next)
		for side := range f.sums {
			if f.mute(side) {
				continue
			}
			_, count, _ := f.sum(side, newest)
			if silent, since := f.silent(side, newest); count == 0 && len(silent) > 0 {
				name := plain.Cut(n.Language.Say(plain.Text(f.name)), longestName)
				list[n.Language.Sayf("%s: %s", name, n.Language.Say(f.side(side)))] = since
			}
		}
	}
	return list
}

// side names the ends at one side of a flow.
func (f *flow) side(side int) string {
	if f.node(side) == model.ManyReceivers {
		return model.ManyReceivers
	}
	return [...]string{sends: "sender", receives: "receiver"}[side]
}

// told tells the rate at one side of a flow, or that it is silent: "61 pps received", "receiver not heard for 3 s".
func (f *flow) told(in words.Language, side int, at time.Time) string {
	total, count, _ := f.sum(side, at)
	if f.early(count, at) {
		return ""
	} else if count > 0 {
		return in.Sayf([...]string{sends: "%s sent", receives: "%s received"}[side], f.rate(total))
	}
	silent, since := f.silent(side, at)
	if len(silent) == 0 {
		return ""
	}
	return in.Sayf("%s not heard for %.0f s", in.Say(f.side(side)), whole(since))
}

// whole is a time in whole seconds.
func whole(d time.Duration) float64 { return d.Truncate(time.Second).Seconds() }

// named is the receiver that a part is for.
func (f *flow) named(p *part) string {
	side := sends
	if f.node(receives) == model.ManyReceivers {
		side = receives
	}
	return plain.Cut(plain.Text(p.at(side)), longestName)
}

// rate prints a rate of the flow.
func (f *flow) rate(value float64) string {
	if f.parts[0].Protocol == model.TCP {
		return unit.BPS.Format(value)
	}
	return unit.FormatPPS(value)
}

// summed sums the accounts of a star's flows.
func summed(flows []model.FlowSoFar) (out []model.FlowSoFar) {
	places := map[string]int{} // of flows of the plan in out
	for _, f := range flows {
		name := model.PlanFlow(f.Name)
		i, known := places[name]
		if name != f.Name {
			f.Name, f.From, f.To, f.Lines = name, model.NodeGroup(f.From), model.NodeGroup(f.To), slices.Clone(f.Lines)
			for k := range f.Lines {
				f.Lines[k].Host = model.NodeGroup(f.Lines[k].Host)
			}
		}
		if !known {
			places[name], out = len(out), append(out, f)
			continue
		}
		sum := &out[i]
		sum.Attempted, sum.Received = sum.Attempted+f.Attempted, sum.Received+f.Received
		for _, l := range f.Lines {
			if k := slices.IndexFunc(sum.Lines, l.SamePlace); k >= 0 {
				sum.Lines[k].Join(l)
			} else {
				sum.Lines = append(sum.Lines, l)
			}
		}
	}
	return out
}
