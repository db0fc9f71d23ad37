package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// Bounds of what the limit of a row is taken for.
const (
	fullCore    = 0.95 // a core that is busier has nothing left, but for what ticks of the clock miss
	fullLink    = 0.95 // of a link's rate, in frames: the rest is preambles, gaps and what a shaper takes
	fullLinkTCP = 0.9  // of a link's rate, in payload: headers and acknowledgements take the rest
	hardlyBusy  = 0.1  // of all processors
	hardlyCore  = 0.25 // of the busiest one: there a kernel that forwards is seen, however many others have nothing to do
	bypassed    = 0.05 // share of the packets that the kernel forwarded itself, at most, if another way took them
	mostLoss    = 0.5  // share of the losses at one place, if that is the limit
)

// bound is what held a row.
type bound int

const (
	unknownBound bound = iota
	askedBound         // what was asked came through
	cpuBound
	linkBound
	offloadBound
	senderBound
	receiverBound
)

// what says of a bound what it is.
func (l bound) what() string {
	return map[bound]string{
		askedBound: "As much as was asked", cpuBound: "CPU-bound", linkBound: "Link-bound", offloadBound: "Offloaded",
		senderBound: "Limited by the sender, so the router may carry more", receiverBound: "Limited by the receiver, so the router may carry more",
		unknownBound: "Limited by neither the router's processors nor a link that is known",
	}[l]
}

func (l bound) kind() string {
	return map[bound]string{
		askedBound: KindRouterAsked, cpuBound: KindRouterCPU, linkBound: KindRouterLink, offloadBound: KindRouterOffload,
		senderBound: KindSenderLimited, receiverBound: KindReceiverLimited, unknownBound: KindRouterUnknown,
	}[l]
}

// held finds what held a row.
func (a *analyst) held(b benched) bound {
	link := a.linkBits()
	full := link > 0 && (b.wire >= fullLink*link || b.tcp && b.goodput/float64(b.directions()) >= fullLinkTCP*link)
	aside := b.busy.kernel < bypassed || b.busy.known && !b.busy.lab && b.busy.all.Busy() < hardlyBusy && b.busy.core.Busy() < hardlyCore
	switch {
	case b.fullCPU():
		return cpuBound
	case full && aside:
		return offloadBound
	case full:
		return linkBound
	case b.lostAtReceiver():
		return receiverBound
	case b.asked && b.loss < losslessRatio:
		return askedBound
	case b.senderFull():
		return senderBound
	case aside && b.loss < losslessRatio:
		return offloadBound
	}
	return unknownBound
}

func (b benched) directions() int {
	if b.direction == "both" {
		return 2
	}
	return 1
}

// fullCPU reports whether a core of the router had nothing left. In a lab only the
// router's own thread tells: all cores are shared with the ends.
func (b benched) fullCPU() bool {
	if b.busy.lab {
		return b.busy.thread >= fullCore || !math.IsNaN(b.busy.thread) && b.ringFull()
	}
	return b.busy.known && b.busy.core.Busy() >= fullCore
}

// ringFull reports whether most of what was lost found a lab's router too slow to
// take it in: its thread had all that this machine gave it.
func (b benched) ringFull() bool {
	return b.lostAt(func(l model.Line, f model.FlowResult) bool {
		return l.Layer == "network" && l.Cause == "ring-full" && l.Host != f.From && l.Host != f.To
	})
}

func (b benched) senderFull() bool {
	for _, t := range b.trials {
		for _, f := range t.Flows {
			if f.SenderCPU.ThreadRatio < busySender {
				return false
			}
		}
	}
	return b.loss < losslessRatio
}

// busySender is from what share of a core on a sender's thread is full.
const busySender = 0.9

func (b benched) lostAtReceiver() bool {
	return b.lostAt(func(l model.Line, f model.FlowResult) bool {
		return strings.HasPrefix(l.Layer, "receiver-") && l.Host == f.To
	})
}

// lostAt reports whether most of a row's losses, and not only a few, are in lines
// that is picks.
func (b benched) lostAt(is func(model.Line, model.FlowResult) bool) bool {
	var lost, there uint64
	for _, t := range b.trials {
		for _, f := range t.Flows {
			lost += f.Ledger.Lost
			for _, l := range f.Ledger.Lines {
				if is(l, f) {
					there += l.Packets
				}
			}
		}
	}
	return !b.tcp && b.loss >= losslessRatio && float64(there) > mostLoss*float64(lost)
}

// routerLimits says of each bound which rows it held, and what shows it.
func (a *analyst) routerLimits(rows []benched) {
	byBound := map[bound][]benched{}
	for _, b := range rows {
		if !b.idle {
			l := a.held(b)
			byBound[l] = append(byBound[l], b)
		}
	}
	for _, l := range []bound{cpuBound, linkBound, offloadBound, senderBound, receiverBound, askedBound, unknownBound} {
		held := byBound[l]
		if len(held) == 0 {
			continue
		}
		values := map[string]float64{}
		for _, b := range held {
			values[b.slug()+"_pps"], values[b.slug()+"_goodput_bps"] = b.pps, b.goodput
			if b.busy.known {
				values[b.slug()+"_router_idle_ratio"], values[b.slug()+"_router_busiest_core_ratio"] = b.busy.all.Idle, b.busy.core.Busy()
			}
			if !math.IsNaN(b.busy.thread) {
				values[b.slug()+"_router_thread_ratio"] = b.busy.thread
			}
		}
		a.add(l.kind(), values, "%s: %s%s.", l.what(), listRows(held), evidence(l, held))
	}
}

// limitOf says in a few words what held the smallest frames in a direction.
func (a *analyst) limitOf(rows []benched, direction string) string {
	for _, b := range rows {
		if b.idle || b.direction != direction || b.tcp {
			continue
		}
		if l := a.held(b); l == cpuBound || l == linkBound || l == offloadBound {
			return fmt.Sprintf("%s at %s%s", strings.ToLower(l.what()[:1])+l.what()[1:], b.load(), evidence(l, []benched{b}))
		}
		return ""
	}
	return ""
}

// listRows names rows and their rates, those of one variant and direction together.
func listRows(rows []benched) string {
	var groups []string
	parts := map[string][]string{}
	for _, b := range rows {
		g := named(b.variant, across(b.direction))
		if parts[g] == nil {
			groups = append(groups, g)
		}
		parts[g] = append(parts[g], b.load()+" "+b.speed())
	}
	for i, g := range groups {
		groups[i] = g + " " + strings.Join(parts[g], ", ")
	}
	return strings.Join(groups, "; ")
}

// evidence says what the router's processors did in rows that one thing held.
func evidence(l bound, rows []benched) string {
	var known []benched
	for _, b := range rows {
		if b.busy.known || b.busy.lab && !math.IsNaN(b.busy.thread) {
			known = append(known, b)
		}
	}
	if len(known) == 0 {
		return ""
	}
	least, most := known[0], known[0]
	for _, b := range known {
		if b.used() < least.used() {
			least = b
		}
		if b.used() > most.used() {
			most = b
		}
	}
	b := most
	switch {
	case l == offloadBound && b.busy.kernel < bypassed:
		return fmt.Sprintf(": the router's kernel forwarded %s of the packets itself%s", percent(b.busy.kernel), b.rest())
	case b.busy.lab && !math.IsNaN(b.busy.thread) && l == cpuBound:
		text := fmt.Sprintf(": the router's own thread took %s of a core", span(least.busy.thread, most.busy.thread))
		if least.busy.thread < fullCore {
			text += ", which other work on this machine shared"
		}
		if most.busy.kernel < bypassed {
			text += ", in its fast path"
		}
		return text
	case b.busy.lab && !math.IsNaN(b.busy.thread):
		return fmt.Sprintf(", the router's own thread took %s of a core", span(least.busy.thread, most.busy.thread))
	case b.busy.lab:
		return ""
	case l == cpuBound:
		core := "a core"
		if least.busy.core.Core >= 0 {
			core = fmt.Sprintf("core %d", least.busy.core.Core)
		}
		return fmt.Sprintf(": %s is %s busy, %s", core, percent(least.busy.core.Busy()), mostlyOf(least.busy.core))
	}
	return fmt.Sprintf(", CPU %s idle", span(most.busy.all.Idle, least.busy.all.Idle))
}

// used is how much of its processors a router needed for a row.
func (b benched) used() float64 {
	if b.busy.lab {
		return b.busy.thread
	}
	return b.busy.all.Busy()
}

// rest says what a router that others worked for had left.
func (b benched) rest() string {
	if b.busy.lab {
		if math.IsNaN(b.busy.thread) {
			return ""
		}
		return fmt.Sprintf("; its thread took %s of a core", percent(b.busy.thread))
	}
	return fmt.Sprintf("; %s idle", percent(b.busy.all.Idle))
}

func span(low, high float64) string {
	if percent(low) == percent(high) {
		return percent(low)
	}
	return strings.TrimSuffix(percent(low), " %") + " to " + percent(high)
}

// mostlyOf names what took the most of a core's time.
func mostlyOf(c model.CPUSplit) string {
	best, name := c.Softirq, "softirq"
	for _, o := range []struct {
		name  string
		ratio float64
	}{{"system", c.System}, {"user", c.User}, {"irq", c.IRQ}, {"nice", c.Nice}, {"stolen by its hypervisor", c.Steal}} {
		if o.ratio > best {
			best, name = o.ratio, o.name
		}
	}
	return fmt.Sprintf("%s %s", percent(best), name)
}

// otherFrames are the sizes that a limit is foretold for, in bytes.
var otherFrames = []int{64, 128, 256, 512, 1024, 1280, 1518}

// routerSizes foretells what rows that the processor holds would carry at other
// sizes: a packet takes a time, and each of its bytes another.
func (a *analyst) routerSizes(rows []benched) {
	type key struct{ variant, direction string }
	var order []key
	held := map[key][]benched{}
	for _, b := range rows {
		if b.idle || b.tcp || b.direction == "both" || b.pps <= 0 || a.held(b) != cpuBound {
			continue
		}
		k := key{b.variant, b.direction}
		if held[k] == nil {
			order = append(order, k)
		}
		held[k] = append(held[k], b)
	}
	values := map[string]float64{}
	var text []string
	for _, k := range order {
		packet, perByte := costOf(held[k])
		fitted := slices.ContainsFunc(held[k], func(b benched) bool { return b.frame != held[k][0].frame })
		var parts []string
		for _, n := range otherFrames {
			if slices.ContainsFunc(rows, func(b benched) bool {
				return b.variant == k.variant && b.direction == k.direction && b.frame == n && !b.idle
			}) {
				continue
			}
			payload := model.PayloadOf(held[k][0].family, n)
			if payload <= 0 { // no such frame
				continue
			}
			pps, mark, bound := 1/(packet+perByte*float64(n)), "", ""
			if !fitted { // what a byte takes is not known
				if bound = "at most "; n < held[k][0].frame {
					bound = "at least "
				}
			}
			if link := a.linkBits(); link > 0 && pps*8*float64(n+wireExtra) > link {
				pps, mark = link/(8*float64(n+wireExtra)), ", the link"
				if bound == "at least " {
					bound = "" // the link is the limit then
				}
			}
			values[slug(strings.TrimSpace(k.variant+" "+k.direction))+fmt.Sprintf("_%d_frame_bytes_pps", n)] = pps
			parts = append(parts, fmt.Sprintf("%d B %s%s (%s%s)", n, bound, unit.FormatPPS(pps), unit.FormatBits(pps*8*float64(payload)), mark))
		}
		if len(parts) == 0 {
			continue
		}
		from := fmt.Sprintf("%s a packet", duration(packet))
		if perByte > 0 {
			from += fmt.Sprintf(" and %s a byte", duration(perByte))
		}
		text = append(text, fmt.Sprintf("%s, from %s: %s", named(k.variant, across(k.direction)), from, strings.Join(parts, ", ")))
	}
	if len(text) > 0 {
		with := ""
		if strings.HasPrefix(a.doc.Plan.Target, "lab:") {
			with = " with a core of its own"
		}
		a.add(KindRouterSizes, values, "At other sizes the router would carry%s: %s.", with, strings.Join(text, "; "))
	}
}

const wireExtra = 20 // preamble and gap of Ethernet, in bytes

// costOf is the time of a packet and that of a byte, in seconds, that explain the
// rates best, by least squares of the relative deviations; bytes take no negative time.
func costOf(rows []benched) (packet, perByte float64) {
	var n, sx, sy, sxx, sxy float64
	for _, b := range rows {
		if b.pps <= 0 {
			continue
		}
		x, y := float64(b.frame), 1/b.pps
		if b.busy.lab && b.busy.thread > 0 {
			y *= b.busy.thread
		}
		w := 1 / (y * y)
		n, sx, sy, sxx, sxy = n+w, sx+w*x, sy+w*y, sxx+w*x*x, sxy+w*x*y
	}
	if d := n*sxx - sx*sx; len(rows) > 1 && d > 0 {
		perByte = max(0, (n*sxy-sx*sy)/d)
	}
	return max(0, (sy-perByte*sx)/n), perByte
}

// routerCost says how much a percent of the router's processors carries.
func (a *analyst) routerCost(rows []benched) {
	values := map[string]float64{}
	parts := map[string][]string{}
	var order []string
	lab := false
	for _, b := range rows {
		if b.idle || !(b.busy.busyPercents >= leastPercents) {
			continue
		}
		lab = b.busy.lab
		values[b.slug()+"_goodput_bps_per_cpu_percent"] = b.goodput / b.busy.busyPercents
		g := named(b.variant, across(b.direction))
		if parts[g] == nil {
			order = append(order, g)
		}
		text := fmt.Sprintf("%s %s", b.load(), unit.FormatBits(b.goodput/b.busy.busyPercents))
		if lab && b.pps > 0 && !b.tcp {
			values[b.slug()+"_router_seconds_per_packet"] = b.busy.thread / b.pps
			text += fmt.Sprintf(" (%s a packet)", duration(b.busy.thread/b.pps))
		}
		parts[g] = append(parts[g], text)
	}
	if len(order) == 0 {
		return
	}
	of := "of the router's processors"
	if lab {
		of = "of a core in the router's own thread"
	}
	for i, g := range order {
		order[i] = g + " " + strings.Join(parts[g], ", ")
	}
	a.add(KindRouterCost, values, "One percent %s carries: %s.", of, strings.Join(order, "; "))
}

// leastPercents are needed for a share of them to mean anything: ticks are coarse.
const leastPercents = 1
