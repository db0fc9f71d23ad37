package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
	"pelt/unit"
)

// nameRatio is the share of the loss that a cause needs to be told.
const nameRatio = 0.01

// loss tells what was lost and where. Curves whose losses have the same causes
// are told together.
func (a *analyst) loss(all []curve) {
	values := map[string]float64{}
	type account struct {
		sizes    []string
		overload bool
		offered  bool
	}
	accounts := map[string]*account{}
	var order []string
	for _, c := range all {
		var lossy []point
		for _, p := range c.points {
			if p.loss >= losslessRatio && c.protocol != model.TCP {
				lossy = append(lossy, p)
				values[a.valueName(all, c, fmt.Sprintf("loss_ratio_at_%d_payload_bytes", p.payload))] = p.loss
			}
		}
		if len(lossy) == 0 {
			continue
		}
		cause := causes(lossy)
		if accounts[cause] == nil {
			accounts[cause] = &account{}
			order = append(order, cause)
		}
		one := accounts[cause]
		text := shares(lossy)
		if len(all) > 1 {
			text += " (" + c.name + ")"
		}
		one.sizes = append(one.sizes, text)
		one.offered = one.offered || c.offered
		one.overload = one.overload || slices.ContainsFunc(lossy, func(p point) bool { return p.limit == byPath })
	}
	for i, cause := range order {
		one := accounts[cause]
		text := "Lost " + strings.Join(one.sizes, "; ") + ": " + cause + "."
		switch {
		case one.offered:
			text += " A user of this path who sends at that rate loses as much."
		case one.overload:
			text += " At full speed that is overload, not a fault."
		}
		if i > 0 {
			values = nil // once is enough
		}
		a.add(KindLoss, values, "%s", text)
	}
}

// shares lists the losses of up to three sizes, else their range.
func shares(lossy []point) string {
	if len(lossy) > 3 {
		by := func(p point) float64 { return p.loss }
		low, high := unit.FormatRatio(best(lossy, func(p point) float64 { return -p.loss }).loss), unit.FormatRatio(best(lossy, by).loss)
		if low != high {
			high = strings.TrimSuffix(low, " %") + " to " + high
		}
		return fmt.Sprintf("%s at %d sizes %s", high, len(lossy), sizes(lossy))
	}
	var parts []string
	for _, p := range lossy {
		parts = append(parts, fmt.Sprintf("%s at %d B", unit.FormatRatio(p.loss), p.payload))
	}
	return say.And(parts)
}

// causes says where the lost packets of some sizes ended, by the ledger.
func causes(points []point) string {
	named := map[string]uint64{}
	var order []string
	var lost, rest uint64
	for _, p := range points {
		for _, t := range p.trials {
			lost, rest = lost+t.flow.Ledger.Lost, rest+t.flow.Ledger.Unattributed
			for _, l := range t.flow.Ledger.Lines {
				name := where(l)
				if _, ok := named[name]; !ok {
					order = append(order, name)
				}
				named[name] += l.Packets
			}
		}
	}
	order = append(order, "on the way, at no counter seen from here")
	named[order[len(order)-1]] += rest
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(named[b], named[a]) })
	var text []string
	for _, name := range order {
		if r := float64(named[name]) / float64(max(lost, 1)); r >= nameRatio {
			text = append(text, percent(r)+" "+name)
		}
	}
	switch {
	case len(text) == 0:
		return "on the way, at no counter seen from here"
	case len(text) == 1:
		return order[0]
	}
	return "of what was lost, " + strings.Join(text, ", ")
}

// where says one line of a ledger in words a home user understands.
func where(l model.Line) string {
	if to, isQueue := strings.CutPrefix(l.Cause, "queue of the link to "); isQueue { // in runs stored before the ledger named it
		if to, full := strings.CutSuffix(to, " full"); full && l.Host != "" {
			return "queue of the link from " + l.Host + " to " + to + " full"
		}
	}
	return model.Phrase(l.Layer, l.Cause, l.Host)
}

// ends says where one of the two ends was the limit and not the path.
func (a *analyst) ends(all []curve) {
	var busy, quiet, receiver side
	for _, c := range all {
		f, used := a.explain(c)
		if c.protocol == model.TCP {
			continue
		}
		var b, q, r []point
		for i, p := range used {
			bitSide := (speaker{link: a.linkBits()}).atLink(p) || !f.own && (f.shape == bitsOnly || f.shape == both && i >= f.low)
			switch {
			case p.limit == bySender && !bitSide:
				b = append(b, p)
			case p.limit == byQuiet && !bitSide:
				q = append(q, p)
			case p.limit == byReceiver:
				r = append(r, p)
			}
		}
		name := ""
		if len(all) > 1 {
			name = c.name
		}
		key := func(k string) string { return a.valueName(all, c, k) }
		busy.add(b, name, key)
		quiet.add(q, name, key)
		receiver.add(r, name, key)
	}
	if len(busy.points) > 0 {
		a.add(KindSenderLimited, busy.values, "The sender was the limit, not the path, %s; %s was lost. The path may carry far more: try more --streams or a faster sending host.",
			busy.text(true), nearlyNothing(busy.points))
	}
	if len(quiet.points) > 0 {
		a.add(KindSenderLimited, quiet.values, "%s was lost %s, though the sender had time left: its network interface, the first link or other work on its cores held it back.",
			sentence(nearlyNothing(quiet.points)), quiet.text(true))
	}
	if len(receiver.points) > 0 {
		a.add(KindReceiverLimited, receiver.values, "The receiver was the limit, not the path, %s: most of what was lost had arrived there. More --streams, or larger socket buffers (net.core.rmem_max) on the receiver, help.", receiver.text(false))
	}
}

// side collects the sizes of all curves that one end held back.
type side struct {
	points []point
	parts  []sidePart
	values map[string]float64
}

type sidePart struct {
	where, name string
	top         point
}

func (s *side) add(points []point, name string, key func(string) string) {
	if len(points) == 0 {
		return
	}
	if s.values == nil {
		s.values = map[string]float64{}
	}
	top := best(points, packets)
	s.points = append(s.points, points...)
	at := "at " + list(points)
	if len(points) > 3 {
		at = fmt.Sprintf("at %d sizes %s", len(points), sizes(points))
	}
	s.parts = append(s.parts, sidePart{at, name, top})
	s.values[key("at_least_pps")] = top.pps
	s.values[key("sender_thread_ratio")], s.values[key("sender_host_ratio")] = cpu(top, threadRatio), cpu(top, hostRatio)
}

func (s *side) text(load bool) string {
	var text []string
	for _, p := range s.parts {
		var notes []string
		if p.name != "" {
			notes = append(notes, p.name)
		}
		if load {
			notes = append(notes, "thread "+percent(cpu(p.top, threadRatio))+" busy"+hostToo(cpu(p.top, hostRatio)))
		}
		one := p.where
		if len(notes) > 0 {
			one += " (" + strings.Join(notes, "; ") + ")"
		}
		text = append(text, one)
	}
	return strings.Join(text, ", ")
}

func nearlyNothing(points []point) string {
	if worst := best(points, func(p point) float64 { return p.loss }); worst.loss > 0 {
		return "at most " + say.Share(worst.loss)
	}
	return "nothing"
}

// hostToo adds the load of the whole host, where it is known.
func hostToo(ratio float64) string {
	if ratio <= 0 {
		return ""
	}
	return ", host " + percent(ratio)
}
