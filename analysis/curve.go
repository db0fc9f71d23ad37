package analysis

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"pelt/model"
	"pelt/unit"
)

// What held the rate at one size.
type limit int

const (
	byPath     limit = iota // packets were lost on the way, or the link pushed back
	bySender                // nearly all arrived, and the sender or its whole host was busy
	byQuiet                 // all arrived, and the sender was not busy: its own interface pushed back
	byReceiver              // most of the loss is the receiver's own
	byOffer                 // a rate was asked: no more was tried
)

// point is one size of one curve: the valid repeats of a cell.
type point struct {
	payload, frame int // bytes
	engine         string
	fragments      int // IP packets per datagram; 0 and 1 mean whole
	trials         []trial
	received       uint64  // over all repeats
	pps            float64 // median, received
	goodput        float64 // median, payload bit/s received
	loss           float64 // ratio over all repeats
	spread         float64 // (highest - lowest rate) / median; 0 for one repeat
	limit          limit
}

func (p point) arrived() bool { return p.received > 0 && p.pps > 0 }

type trial struct {
	repeat int
	engine string
	flow   model.FlowResult
}

// curve is one flow under one setting of everything but the size.
type curve struct {
	name     string // what tells it from the other curves: "up, both at once"
	label    string // the same at the start of a sentence
	flow     string
	both     bool   // measured with the other direction at once
	setting  string // of other knobs: "with 4 streams"; "" if there are none
	protocol model.Protocol
	bulk     bool
	offered  bool // a rate was asked
	points   []point
}

// curves groups a document's valid trials, in the order of the plan's flows.
func curves(doc model.Document) []curve {
	type group struct {
		curve
		cell  model.Cell
		sizes map[int]*point
	}
	groups := map[string]*group{}
	var order []string
	for _, r := range doc.Results {
		if r.State != model.Valid {
			continue
		}
		for _, f := range r.Flows {
			if !(f.ReceivePPS >= 0) || f.Attempted == 0 {
				continue
			}
			rest := maps.Clone(r.Cell)
			delete(rest, "payload_bytes")
			delete(rest, "frame_bytes")
			key := f.Name + " " + rest.Key()
			g := groups[key]
			if g == nil {
				g = &group{curve: curve{flow: f.Name, protocol: f.Protocol}, cell: rest, sizes: map[int]*point{}}
				g.call(rest)
				g.offered, g.bulk = asked(doc.Plan, f.Name, rest)
				groups[key] = g
				order = append(order, key)
			}
			p := g.sizes[f.PayloadBytes]
			if p == nil {
				p = &point{payload: f.PayloadBytes, frame: max(f.FrameBytes, f.PayloadBytes, 1)}
				g.sizes[f.PayloadBytes] = p
			}
			p.trials = append(p.trials, trial{r.Repeat, r.Engine, f})
		}
	}
	slices.Sort(order)
	slices.SortStableFunc(order, func(a, b string) int { // as the plan lists them, "up" before "down"
		return cmp.Or(compareCells(doc.Plan, groups[a].cell, groups[b].cell), cmp.Compare(place(doc.Plan, groups[a].flow), place(doc.Plan, groups[b].flow)))
	})
	var all []curve
	for _, key := range order {
		g := groups[key]
		for _, size := range slices.Sorted(maps.Keys(g.sizes)) {
			p := g.sizes[size]
			p.ofOneEngine()
			p.measure(g.offered)
			g.points = append(g.points, *p)
		}
		all = append(all, g.curve)
	}
	return all
}

// ofOneEngine keeps the repeats of the engine that carried most of them, the
// latest if two carried as many: what another measured is another thing.
func (p *point) ofOneEngine() {
	count := map[string]int{}
	for _, t := range p.trials {
		if count[t.engine]++; count[t.engine] >= count[p.engine] {
			p.engine = t.engine
		}
	}
	p.trials = slices.DeleteFunc(p.trials, func(t trial) bool { return t.engine != p.engine })
}

// compareCells orders cells by the places of their levels in the plan.
func compareCells(p model.Plan, a, b model.Cell) int {
	for _, f := range p.Factors {
		if c := cmp.Compare(slices.Index(f.Levels, a[f.Knob]), slices.Index(f.Levels, b[f.Knob])); c != 0 {
			return c
		}
	}
	return 0
}

func place(p model.Plan, flow string) int {
	return slices.IndexFunc(p.Flows, func(f model.Flow) bool { return f.Name == flow })
}

// asked says whether a flow was told a rate, in the plan or by a factor.
func asked(p model.Plan, flow string, cell model.Cell) (offered, bulk bool) {
	if i := place(p, flow); i >= 0 {
		offered, bulk = !p.Flows[i].Rate.IsMax(), p.Flows[i].Bulk
	}
	if v, ok := cell["rate_pps"]; ok {
		offered = v.Text != "max"
	}
	if v, ok := cell["interval_ns"]; ok {
		offered = v.Number > 0
	}
	return offered, bulk
}

// call says what tells the curve from others of its run.
func (c *curve) call(cell model.Cell) {
	rest := maps.Clone(cell)
	c.both = cell["direction"].Text == "both"
	delete(rest, "direction")
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(rest)) {
		switch v := rest[k]; {
		case k == "streams" && v.Number == 1:
			parts = append(parts, "with 1 stream")
		case k == "streams":
			parts = append(parts, "with "+v.String()+" streams")
		case k == "rate_pps" && v.Text == "":
			parts = append(parts, "at "+unit.FormatPPS(v.Number))
		case k == "interval_ns" && v.Text == "":
			parts = append(parts, "every "+unit.FormatNanos(v.Number))
		default:
			parts = append(parts, "with "+k+"="+v.String())
		}
	}
	c.setting = strings.Join(parts, " ")
	c.name = c.flow
	if c.both {
		c.name += ", both at once"
	}
	if c.setting != "" {
		c.name += " " + c.setting
	}
	c.label = sentence(c.name)
}

// sentence begins with a capital.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 || first == utf8.RuneError {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// Below this share of lost packets a rate counts as carried whole: single
// losses happen to a path that is far from its limit.
const losslessRatio = 0.001

// A path that loses less than this share of what a busy sender sends may lose it
// to bursts or at random: only more is a sign that its limit was passed.
const overloadRatio = 0.05

// A sender's thread busier than this had no time left to send more.
const busyRatio = 0.9

// A host busier than this had no core left for its sender.
const fullRatio = 0.95

func (p *point) measure(offered bool) {
	var pps, goodput, thread, host []float64
	var attempted, lost, receiver, sender, refused uint64
	for _, t := range p.trials {
		p.received, p.fragments = p.received+t.flow.Received, max(p.fragments, t.flow.Fragments)
		pps, goodput = append(pps, t.flow.ReceivePPS), append(goodput, t.flow.GoodputBPS)
		thread, host = append(thread, t.flow.SenderCPU.ThreadRatio), append(host, t.flow.SenderCPU.HostRatio)
		attempted, lost = attempted+t.flow.Attempted, lost+t.flow.Lost
		for _, l := range t.flow.Ledger.Lines {
			switch l.Layer {
			case model.LayerSendCall, model.LayerSenderQdisc, model.LayerSenderDevice:
				sender += l.Packets
			case model.LayerReceiverXDP, model.LayerReceiverTC, model.LayerReceiverFilter, model.LayerReceiverIP, model.LayerReceiverUDP:
				refused += l.Packets // by a rule or as broken: at any rate, and not for want of time
			case model.LayerReceiverBacklog, model.LayerReceiverMemory, model.LayerReceiverBuffer, model.LayerApplication:
				receiver += l.Packets
			}
		}
	}
	p.pps, p.goodput = median(pps), median(goodput)
	rates := pps
	if f := p.trials[0].flow; f.TCP != nil && f.Connections == nil {
		rates = goodput // how TCP joins small writes into segments varies of itself
	}
	if m := median(rates); m > 0 {
		p.spread = (slices.Max(rates) - slices.Min(rates)) / m
	}
	if attempted > 0 {
		p.loss = float64(lost) / float64(attempted)
	}
	whole := p.loss < losslessRatio
	lost -= min(refused, lost)
	overload := float64(lost) / float64(max(attempted, 1))
	lossy := overload >= losslessRatio
	busy := median(thread) >= busyRatio || median(host) >= fullRatio
	switch {
	case offered:
		p.limit = byOffer
	case lossy && receiver*2 >= lost:
		p.limit = byReceiver
	case lossy && sender*2 >= lost:
		p.limit = bySender
	case busy && overload < overloadRatio:
		p.limit = bySender
	case lossy || !whole:
		p.limit = byPath
	default:
		p.limit = byQuiet
	}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func best(points []point, by func(point) float64) point {
	return slices.MaxFunc(points, func(a, b point) int { return cmp.Compare(by(a), by(b)) })
}

func packets(p point) float64 { return p.pps }
func bits(p point) float64    { return p.goodput }

// fewest is the smallest number of valid repeats of any size.
func (c curve) fewest() int {
	n := len(c.points[0].trials)
	for _, p := range c.points {
		n = min(n, len(p.trials))
	}
	return n
}

// noise is the usual spread between repeats, as a share of the rate.
func (c curve) noise() float64 {
	var all []float64
	for _, p := range c.points {
		if len(p.trials) > 1 {
			all = append(all, p.spread)
		}
	}
	return median(all)
}
