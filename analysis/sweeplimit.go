package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/analysis/internal/links"
	"pelt/model"
	"pelt/unit"
)

// way is what a lab's links let through toward the far end of a flow.
type way struct {
	receivers int
	rate      float64 // bit/s of each receiver's own link; 0 is not limited
	overhead  int     // bytes that link adds to each frame
	shared    float64 // bit/s of the link that all share; 0 is not limited
	sharedTax int     // its overhead
	differ    bool    // single receivers have rates of their own: rate is their mean
}

const (
	etherHeader = 14 // of a frame without its FCS, as emulated links and the kernel's count it
	etherLeast  = 60 // shortest such frame, IEEE 802.3 clause 4.4.2
	udpHeader   = 8
)

// wireBytes are what one datagram takes on such a link: each fragment has a
// header of IP, of Ethernet, and the link's overhead. A short last one is padded.
func wireBytes(s spot, overhead int) float64 {
	ip, n := 20, max(s.fragments, 1)
	if s.family == 6 {
		if ip = 40; n > 1 {
			ip += 8 // fragment header, RFC 8200 section 4.5
		}
	}
	data := s.payload + udpHeader
	last := data - (n-1)*((s.packet-ip)/8*8) // of the last fragment; the others are as full as multiples of 8 B can be
	padding := 0
	if n == 1 || s.packet > ip && last > 0 {
		padding = max(0, etherLeast-last-ip-etherHeader)
	}
	return float64(data + n*(ip+etherHeader+overhead) + padding)
}

// allows is the most payload bits per second that a way lets through at a size;
// 0 if it has no limit.
func (w way) allows(s spot) float64 {
	most := math.Inf(1)
	payload := float64(s.payload)
	if w.rate > 0 {
		most = float64(w.receivers) * w.rate * payload / wireBytes(s, w.overhead)
	}
	if w.shared > 0 {
		most = min(most, w.shared*payload/wireBytes(s, w.sharedTax))
	}
	if math.IsInf(most, 0) {
		return 0
	}
	return most
}

// wayOf reads the plan's links as the lab does: a later one overrides an earlier
// one field by field. ok is false where no rate toward the receivers is known.
func (a *analyst) wayOf(s spot) (w way, ok bool) {
	p := a.doc.Plan
	p.Links = links.Of(p, s.cell)
	if !strings.HasPrefix(p.Target, "lab:") || s.protocol != model.UDP || s.payload <= 0 || !a.allUp(s) {
		return w, false
	}
	w.receivers = max(p.Receivers, 1)
	star := p.Receivers > 0 || strings.HasPrefix(p.Target, "lab:star")
	for _, t := range s.trials {
		for _, f := range t.result.Flows {
			w.receivers = max(w.receivers, len(f.Receivers))
			star = star || len(f.Receivers) > 0
		}
	}
	if v, set := s.cell["receivers"]; set && v.Text == "" && v.Number >= 1 {
		w.receivers = int(v.Number)
	}
	if !star {
		w.shared, w.sharedTax = links.Slowest(p.Links, links.Nodes(a.doc))
		return w, w.shared > 0
	}
	many := func(name string) bool { return name == model.Receiver || strings.HasPrefix(name, model.Receiver+"-") }
	own := map[string]model.Link{}
	var every, sender model.Link
	for _, l := range p.Links {
		toEach := l.Toward == "" || l.Toward == model.Receiver
		switch {
		case many(l.Node) && l.Node != model.Receiver:
			if toEach || l.Toward == l.Node {
				own[l.Node] = links.Over(cmp.Or(own[l.Node], every), l)
			}
		case l.Toward != "" && l.Toward != model.Receiver && many(l.Toward) && l.Node != model.Sender:
			own[l.Toward] = links.Over(cmp.Or(own[l.Toward], every), l)
			if l.Node != model.Receiver {
				sender = links.Over(sender, l)
			}
		default:
			if (l.Node == "" || l.Node == "switch" || l.Node == model.Receiver) && toEach {
				every = links.Over(every, l)
				for name := range own {
					own[name] = links.Over(own[name], l)
				}
			}
			if (l.Node == "" || l.Node == "switch" || l.Node == model.Sender) && (l.Toward == "" || l.Toward == "switch" || many(l.Toward)) {
				sender = links.Over(sender, l)
			}
		}
	}
	maps.DeleteFunc(own, func(name string, _ model.Link) bool { // a trial is of the first ones
		n, err := strconv.Atoi(strings.TrimPrefix(name, model.Receiver+"-"))
		return err == nil && n > w.receivers
	})
	w.shared, w.sharedTax = links.Rate(sender), links.Overhead(sender)
	w.rate, w.overhead = links.Rate(every), links.Overhead(every)
	w.ownRates(every, own)
	return w, w.rate > 0 || w.shared > 0
}

// ownRates takes receivers with a rate of their own into the mean. It is
// known only if every receiver has a rate.
func (w *way) ownRates(every model.Link, own map[string]model.Link) {
	sum, others := 0.0, w.receivers
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if own[name].Rate == links.Unlimited {
			w.rate = 0
			return
		}
		if own[name].Rate == 0 || others == 0 {
			continue
		}
		w.differ = w.differ || own[name].Rate != every.Rate
		sum += float64(own[name].Rate)
		others--
		w.overhead = min(w.overhead, links.Overhead(own[name]))
	}
	switch {
	case !w.differ:
	case others > 0 && links.Rate(every) == 0:
		w.rate = 0
	default:
		w.rate = (sum + float64(others)*float64(every.Rate)) / float64(w.receivers)
	}
}

// allUp reports whether a cell's flows all lead to the receiver's side: what goes
// the other way has other links.
func (a *analyst) allUp(s spot) bool {
	for _, t := range s.trials {
		for _, f := range t.result.Flows {
			if f.To != model.Receiver && !strings.HasPrefix(f.To, model.Receiver) {
				return false
			}
		}
	}
	return len(s.trials) > 0
}

// limit tells what the links allow at the best cell's size, how much of it was
// reached there, and at which size that fits one packet least was reached.
func (a *analyst) limit(all []spot, best int) {
	b := all[best]
	w, ok := a.wayOf(b)
	if !ok {
		return
	}
	most := w.allows(b)
	values := b.values()
	values["limit_bps"], values["goodput_bps"], values["limit_ratio"] = most, b.speed, b.speed/most
	values["receivers"], values["link_rate_bps"] = float64(w.receivers), cmp.Or(w.rate, w.shared)
	text := fmt.Sprintf("%s let at most %s of %d B payloads through, headers counted; the best setting reaches %s of that.", w.words(b), speedText(most), b.payload, onePercent(b.speed/most))
	if b.speed > 1.01*most {
		text += " That is more than they let through: doubt the length of the trials, or the links' rate."
	}
	sizes := a.saturated(all)
	cells := []model.Cell{b.cell}
	if len(sizes) > 0 {
		share := func(s spot) float64 { w, _ := a.wayOf(s); return s.speed / w.allows(s) }
		for _, s := range sizes {
			values[fmt.Sprintf("limit_ratio_at_%d_payload_bytes", s.payload)] = share(s)
		}
		worst := slices.MinFunc(sizes, func(a, b spot) int { return cmp.Compare(share(a), share(b)) })
		values["worst_payload_bytes"], values["worst_limit_ratio"] = float64(worst.payload), share(worst)
		if len(sizes) > 1 {
			text += fmt.Sprintf(" Of the %d sizes that fit one packet and were sent faster than their limit, %d B comes least near to it: %s.", len(sizes), worst.payload, onePercent(share(worst)))
		}
	}
	a.tell(KindSweepLimit, cells, values, "%s", text)
}

// words names the links that hold a cell.
func (w way) words(s spot) string {
	rate := unit.FormatBits(w.rate)
	switch ownLimit := (way{receivers: w.receivers, rate: w.rate, overhead: w.overhead}).allows(s); {
	case w.rate == 0 || ownLimit > w.allows(s) && w.receivers > 1:
		return "Links of " + unit.FormatBits(w.shared)
	case w.receivers == 1:
		return "Links of " + rate
	case w.differ:
		return fmt.Sprintf("%d receivers on links of %s in the mean", w.receivers, rate)
	}
	return fmt.Sprintf("%d receivers on links of %s each", w.receivers, rate)
}

// saturated returns of every size that fits one packet its best cell among those
// that sent more than the links let through, the least loss anywhere taken off.
func (a *analyst) saturated(all []spot) (sizes []spot) {
	loss := 1.0
	for _, s := range all {
		if s.whole() {
			loss = min(loss, s.loss())
		}
	}
	bySize := map[int]spot{}
	for _, s := range all {
		w, ok := a.wayOf(s)
		if !ok || !s.whole() || s.sent*(1-loss) < w.allows(s) {
			continue
		}
		if t, seen := bySize[s.payload]; !seen || s.speed > t.speed {
			bySize[s.payload] = s
		}
	}
	for _, payload := range slices.Sorted(maps.Keys(bySize)) {
		sizes = append(sizes, bySize[payload])
	}
	return sizes
}
