// Package ledger says where each attempted packet of a flow ended.
//
// What both ends and the kernels along the path counted comes in, a balanced
// account goes out: lost packets are always the sum of the named lines and the
// unattributed rest. Verdicts about the very sequence come first, then counts of
// the flow's own sockets, then those of rules, namespaces, devices and hosts,
// and last the differences between hosts. No packet is counted twice, although
// one lost packet may move five counters, and none is put to a cause without a
// verdict or a counter that moved. Figures may be wrong: hosts are not trusted to
// tell the truth. What cannot be was taken out where it came in.
package ledger

import (
	"cmp"
	"math"
	"slices"

	"pelt/model"
)

// How sure a line is, the surest first. A line of several parts is as sure as
// the least sure of them.
const (
	ExactSeq   = "exact-seq"   // a verdict for each of the very packets
	ExactCount = "exact-count" // a count of the flow's own packets
	Bounded    = "bounded"     // a counter of the namespace, device or host: about, and no more than this
	Inferred   = "inferred"    // a difference between two hosts, or two places of one
)

// order is the travel order of the layers.
var order = model.Layers()

func layerPlace(layer string) int { return slices.Index(order, layer) }

func surest(confidence string) int {
	return slices.Index([]string{ExactSeq, ExactCount, Bounded, Inferred}, confidence)
}

// LessSure returns the confidence of a line of two parts.
func LessSure(a, b string) string {
	if surest(a) < surest(b) {
		return b
	}
	return a
}

// Precedence of claims: a lower one takes first.
const (
	bySequence = 10 * iota
	byReceiver // the receiving end saw the packet itself, but could not use it
	bySender   // errors of the sender whose sequences found no room in a list
	byVerdict  // verdicts whose sequences found no room in a list
	byFragment
	byWaiting // reassembly that timed out
	bySocket
	byRule
	byAnswer // somebody else answered the very packets with an error
	byNamespace
	byDevice
	byTransmit // a device's output counters, which later places move as well
	byHost
	byDifference
	byElimination
)

// claim is one part of a line: what one verdict or counter says was lost there.
type claim struct {
	layer, host, cause string
	function, iface    string
	confidence         string
	order              int
	sure, upper        uint64 // datagrams: of the measured part; with the warm-up and what is uncertain
	evidence           model.Evidence
	factor             int // datagrams per unit of the counter, at most
	spans              []model.Span
	steps              []uint64          // of what is known by sequence: by step of the sender's series
	covers             func(*claim) bool // claims whose packets moved this counter, too; nil: none
	taken              uint64
	verdicts           map[int]uint64 // sites that confirm it, with packets
	refusedBy          *site          // ENOBUFS: the site whose count explains it
	hole               bool           // of a watched kernel: may only fill a small hole in what the watch saw
	unbound            uint64         // what a counter moved by that others move, too, less its background; 0: none
	open               uint64         // packets that are left unattributed, and may have been lost here
}

// told is a claim by what a verdict, an errno or an end told of packets themselves; of gives it their number.
func told(order int, layer, host, cause, counter string) claim {
	return claim{order: order, layer: layer, host: host, cause: cause, confidence: ExactCount,
		evidence: model.Evidence{Counter: counter, Host: host, Scope: "packet", Unit: "datagram"}}
}

func (c claim) of(n uint64) claim {
	c.sure, c.upper, c.evidence.Delta = n, n, n
	return c
}

// ofSocket is of by a count of sockets.
func (c claim) ofSocket(n uint64) claim {
	c.evidence.Scope = "socket"
	return c.of(n)
}

// book is the account while it is made.
type book struct {
	in         Input
	path       *path
	join       *join
	lost       uint64
	remaining  uint64
	warmupLost uint64
	claims     []*claim
	holes      bool // the claims being entered are holes
}

// Balance makes the account. Its lines stand in travel order; it depends on
// nothing but its input, and takes memory for the lists of one stream at a time.
func Balance(in Input) model.Ledger {
	account, _ := BalanceOverTime(in)
	return account
}

// BalanceOverTime makes the account, and says of the packets whose sequences are
// known in which step they had been sent: of all that were lost first, then of each
// line in its order. Without Input.PerStep, or where nothing was lost, it says nothing.
func BalanceOverTime(in Input) (model.Ledger, []Course) {
	b := &book{in: in, path: newPath(in), lost: minus(in.Attempted, in.Received),
		warmupLost: minus(in.WarmupSent, in.WarmupReceived)}
	b.remaining = b.lost
	b.join = b.path.join(in)
	b.join.close()
	b.verdictClaims()
	b.errnoClaims()
	b.endClaims()
	b.answerClaims()
	for _, v := range b.path.nodes {
		b.nodeClaims(v)
	}
	slices.SortStableFunc(b.claims, func(x, y *claim) int {
		return cmp.Or(cmp.Compare(x.order, y.order), cmp.Compare(layerPlace(x.layer), layerPlace(y.layer)))
	})
	sure, upper := func(c *claim) uint64 { return c.sure }, func(c *claim) uint64 { return c.upper }
	b.take(b.claims, sure)
	var gaps []*claim
	if !in.TCP { // devices count several segments as one
		gaps = b.gapClaims()
	}
	b.take(gaps, sure)
	b.take(b.claims, upper)
	b.take(gaps, upper)
	b.weigh()
	if !in.TCP {
		b.eliminate(gaps)
	}
	b.contest()
	b.refine()
	lines := b.lines()
	account := model.Ledger{Lost: b.lost, Unattributed: b.remaining, Lines: lines, Possible: b.possible(),
		Checks: []model.Check{}, Pacing: b.pacing()}
	if !in.TCP {
		account.Checks = b.checks(lines)
	}
	return account, b.courses(lines)
}

// take gives claims, in their order, what is still lost, up to a limit: first what they are
// sure of, later what their counters allow at most.
func (b *book) take(claims []*claim, limit func(*claim) uint64) {
	if b.in.TCP {
		b.share(claims, limit)
	}
	for _, c := range claims {
		seen := b.covered(c)
		n := minus(limit(c), plus(c.taken, seen))
		if c.hole && !smallHole(n, seen) {
			continue
		}
		n = min(n, b.remaining)
		c.taken += n
		b.remaining -= n
	}
}

// share divides what TCP sent again among the places that dropped its segments, if they dropped more: in proportion,
// and at least one for each while there is room. Nobody knows which of the dropped segments was sent again when.
func (b *book) share(claims []*claim, limit func(*claim) uint64) {
	wants := func(c *claim) uint64 { return minus(limit(c), plus(c.taken, b.covered(c))) }
	var places []*claim
	all := 0.0 // float64, as the counts of a host that lies may be of any size
	for _, c := range claims {
		if n := wants(c); c.order == byVerdict && n > 0 {
			places, all = append(places, c), all+float64(n)
		}
	}
	if all <= float64(b.remaining) {
		return
	}
	slices.SortStableFunc(places, func(x, y *claim) int { return cmp.Compare(wants(y), wants(x)) })
	for i, c := range places {
		want := wants(c)
		n := count(math.Round(float64(b.remaining) * (float64(want) / all)))
		n = max(1, min(n, want, minus(b.remaining, uint64(len(places)-1-i))))
		n = min(n, b.remaining)
		all -= float64(want)
		if n > 0 {
			c.taken, c.confidence = plus(c.taken, n), LessSure(c.confidence, Bounded)
		}
		b.remaining -= n
	}
}

// smallHole reports whether a counter may stand in for n verdicts that a kernel under load
// did not give. A counter that moved much more counts other packets.
func smallHole(n, seen uint64) bool { return n <= max(seen/50, min(seen/4, 8)) }

// weigh notes how much each counter moved beyond the flow's own loss, and lowers the
// confidence of claims whose counter moved too much.
func (b *book) weigh() {
	socket := false // its sockets dropped more than was lost
	for _, c := range b.claims {
		if c.order == byWaiting && surest(c.confidence) < surest(Bounded) && b.covered(c) > 0 {
			c.confidence, c.spans, c.steps = Bounded, nil, nil // which of them had lost a fragment there is not known
		}
		if c.order == bySequence {
			continue
		}
		// What the counter saw beyond our own loss, the warm-up's included.
		ours := plus(plus(c.taken, b.covered(c)), b.warmupLost)
		if c.evidence.Scope == "socket" || c.evidence.Scope == "packet" {
			ours = plus(c.taken, b.covered(c)) // these count the measured part only
		}
		if b.in.Fragments > 1 && (c.evidence.Unit == "fragment" || c.evidence.Scope == "device" ||
			c.evidence.Scope == "host") {
			ours = times(ours, b.in.Fragments) // these count each piece of a datagram
		}
		if b.in.TCP && c.order == byVerdict {
			ours = c.evidence.Delta // nobody else's, though it may be more than was sent again
		}
		c.evidence.Excess = minus(times(c.evidence.Delta, c.factor), ours) / uint64(max(c.factor, 1))
		if c.confidence == ExactCount && (c.evidence.Excess > 0 || c.taken > minus(c.sure, b.covered(c))) {
			c.confidence = Bounded
			socket = socket || c.order == bySocket
		}
	}
	for _, c := range b.claims { // its parts are of one count: which of them is over is not known
		if socket && c.order == bySocket {
			c.confidence = Bounded
		}
	}
}

func (b *book) covered(c *claim) (n uint64) {
	if c.covers == nil {
		return 0
	}
	for _, o := range b.claims {
		if o != c && o.taken > 0 && c.covers(o) {
			n += o.taken
		}
	}
	return n
}

// add enters a claim that does not come from a counter.
func (b *book) add(c claim) *claim {
	c.factor = max(c.factor, 1)
	if c.upper == 0 || c.layer == "" {
		return &c
	}
	c.evidence.Role = "primary"
	b.claims = append(b.claims, &c)
	return &c
}

// counter enters a claim by a counter of a node. covers: other claims whose packets moved
// the counter too.
func (b *book) counter(at int, layer, host, cause string, r reading, covers func(*claim) bool) {
	if r.whole == 0 {
		return
	}
	c := claim{order: at, layer: layer, host: host, cause: cause, confidence: Bounded, covers: covers, factor: 1,
		hole: b.holes,
		sure: max(r.measure, minus(r.whole, b.warmupLost)), upper: r.whole, evidence: r.evidence(host, "primary")}
	c.sure = minus(c.sure, count(math.Ceil(r.idleHz*b.in.DurationS)))
	c.upper = minus(c.upper, b.background(r))
	if c.unbound = minus(c.upper, r.stray); b.in.TCP && r.measure > 0 {
		c.unbound = min(c.upper, r.measure) // what the warm-up sent again is not known
	}
	switch {
	case r.unit != "skb" && r.unit != "frame" && r.unit != "fragment":
	case b.in.Segments > 1:
		// A buffer of several datagrams passes as one, or has been cut up.
		c.factor, c.upper = b.in.Segments, times(c.upper, b.in.Segments)
		if r.unit == "skb" {
			c.sure = times(c.sure, b.in.Segments)
		}
	case b.in.Fragments > 1:
		// Several of them may have been of one datagram.
		c.sure = c.sure/uint64(b.in.Fragments) + min(1, c.sure%uint64(b.in.Fragments))
	}
	b.add(c)
}

// lines makes lines of the claims that took packets, in travel order.
func (b *book) lines() []model.Line {
	type key struct{ layer, host, cause string }
	places := map[key]int{}
	lines := []model.Line{}
	biggest := []uint64{}
	spans := [][]model.Span{}
	for _, c := range b.claims {
		if c.taken == 0 {
			continue
		}
		k := key{c.layer, c.host, c.cause}
		i, known := places[k]
		if !known {
			i = len(lines)
			places[k] = i
			lines = append(lines, model.Line{Layer: c.layer, Host: c.host, Cause: c.cause, Confidence: c.confidence,
				Evidence: []model.Evidence{}})
			biggest, spans = append(biggest, 0), append(spans, nil)
		}
		l := &lines[i]
		l.Packets += c.taken
		l.Confidence = LessSure(l.Confidence, c.confidence)
		if (c.function != "" || c.iface != "") && c.taken > biggest[i] {
			biggest[i], l.Function, l.Interface = c.taken, c.function, c.iface
		}
		l.Most = plus(l.Most, plus(c.taken, c.open))
		spans[i] = spansOf(spans[i], c.spans)
		l.Evidence = append(l.Evidence, c.evidence)
		l.Evidence = append(l.Evidence, b.verdictsBehind(c)...)
	}
	for i := range lines {
		if lines[i].Most = min(lines[i].Most, lines[i].Packets+b.remaining); lines[i].Most == lines[i].Packets {
			lines[i].Most = 0
		}
		lines[i].Sequences = spans[i]
		lines[i].Evidence = append(lines[i].Evidence, b.support(lines[i])...)
		lines[i].Evidence = append(lines[i].Evidence, b.facts(lines[i])...)
	}
	slices.SortStableFunc(lines, func(x, y model.Line) int {
		return cmp.Or(cmp.Compare(layerPlace(x.Layer), layerPlace(y.Layer)),
			cmp.Compare(b.place(x.Host), b.place(y.Host)),
			cmp.Compare(x.Host, y.Host), cmp.Compare(x.Cause, y.Cause))
	})
	return lines
}

// place returns a host's position on the path; a host that is no node comes last.
func (b *book) place(host string) int {
	for _, v := range b.path.nodes {
		if v.Name == host {
			return v.place
		}
	}
	return len(b.path.nodes)
}
