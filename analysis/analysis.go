package analysis

import (
	"fmt"
	"math"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// Analyze returns what a run showed: the verdict first, then what it rests on.
func Analyze(doc model.Document) []model.Finding {
	all := curves(doc)
	a := &analyst{doc: doc}
	if len(all) == 0 {
		return a.nothing()
	}
	verdicts := []string{}
	values := map[string]float64{}
	for _, c := range all {
		prefix := ""
		if len(all) > 1 {
			prefix = c.label + ": "
		}
		v := a.curve(c, prefix)
		verdicts = append(verdicts, prefix+v.Text)
		for k, x := range v.Values {
			if len(all) > 1 {
				k = slug(c.label) + "_" + k
			}
			values[k] = x
		}
	}
	a.asymmetry(all)
	a.lab()
	a.invalid()
	a.repeats(all)
	verdict := model.Finding{Kind: KindVerdict, Text: strings.Join(verdicts, " "), Values: values}
	return append([]model.Finding{verdict}, a.found...)
}

type analyst struct {
	doc   model.Document
	found []model.Finding
}

func (a *analyst) add(kind string, values map[string]float64, format string, args ...any) {
	if values == nil {
		values = map[string]float64{}
	}
	a.found = append(a.found, model.Finding{Kind: kind, Text: fmt.Sprintf(format, args...), Values: values})
}

// slug makes a label part of a value's name.
func slug(label string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, label), "_")
}

// nothing is the answer to a run without a valid trial.
func (a *analyst) nothing() []model.Finding {
	text := "Nothing was measured: no trial has finished."
	for _, r := range a.doc.Results {
		if r.State == model.Invalid {
			text = "Nothing can be said about the path: no trial is valid."
			break
		}
	}
	a.add(KindVerdict, nil, "%s", text)
	a.invalid()
	return a.found
}

// curve adds the findings of one flow and returns its part of the verdict.
func (a *analyst) curve(c curve, prefix string) model.Finding {
	before := len(a.found)
	var verdict model.Finding
	if c.protocol == model.TCP {
		verdict = a.tcp(c)
	} else {
		verdict = a.udp(c)
	}
	for i := range a.found[before:] {
		f := &a.found[before+i]
		f.Text = prefix + f.Text
		if prefix != "" {
			values := map[string]float64{}
			for k, x := range f.Values {
				values[slug(c.label)+"_"+k] = x
			}
			f.Values = values
		}
	}
	return verdict
}

func (a *analyst) udp(c curve) model.Finding {
	w, t, used := c.times()
	if len(used) == 0 {
		a.loss(c)
		return model.Finding{Kind: KindVerdict, Text: "Nothing arrived at any size."}
	}
	var f fit
	if !c.offered { // an asked rate shows no limit of its own
		f = fitShape(w, t, c.noise())
		f.blur(c, used)
		f.own = a.ownBytes(f, used)
	}
	v := verdict(f, used, a.path())
	switch {
	case f.own:
	case f.shape == frames:
		a.frameBound(used)
	case f.shape == bitsOnly:
		a.bitBound(used)
	case f.shape == both:
		if f.low >= 2 {
			a.frameBound(used[:f.low])
		}
		if len(used)-f.low >= 2 {
			a.bitBound(used[f.low:])
		}
		a.knee(c, f, used)
	}
	a.share(c)
	a.ends(c, f, used)
	a.loss(c)
	a.fragmentation(c)
	return v
}

// nearLink is how close to a known link's rate a path without loss must come
// for the link to be what holds it: shapers and preambles take the rest.
const nearLink = 0.9

// ownBytes reports whether a rate that falls with the size shows the hosts' own
// cost of bytes. A link shows itself by loss, or by holding the sender back at
// its own rate.
func (a *analyst) ownBytes(f fit, used []point) bool {
	if f.shape != both && f.shape != bitsOnly {
		return false
	}
	link := a.linkBits()
	var proven int
	high := used[f.low:]
	for _, p := range high {
		switch {
		case p.limit == byPath,
			p.limit != byReceiver && link > 0 && p.pps*8*float64(p.frame) >= nearLink*link,
			p.limit == byQuiet && link == 0:
			proven++
		}
	}
	return proven*2 < len(high)
}

// linkBits is the slowest link that is known, in bits per second; 0 if none is.
func (a *analyst) linkBits() float64 {
	slowest := 0.0
	know := func(bits uint64) {
		if b := float64(bits); bits > 0 && (slowest == 0 || b < slowest) {
			slowest = b
		}
	}
	for _, l := range a.doc.Plan.Links {
		know(uint64(l.Rate))
	}
	for _, h := range a.doc.Host {
		if h.Node == model.Sender || h.Node == model.Receiver {
			know(h.LinkSpeedBits)
		}
	}
	return slowest
}

func (a *analyst) path() string {
	if strings.HasPrefix(a.doc.Plan.Target, "lab:") {
		return "This lab path"
	}
	return "Your path"
}

func sizes(points []point) string {
	first, last := points[0].payload, points[len(points)-1].payload
	if first == last {
		return fmt.Sprintf("at %d bytes", first)
	}
	return fmt.Sprintf("from %d to %d bytes", first, last)
}

// mostly is what held most of the points.
func mostly(points []point) limit {
	count := map[limit]int{}
	for _, p := range points {
		count[p.limit]++
	}
	most := points[0].limit
	for _, l := range []limit{byPath, bySender, byQuiet, byReceiver, byOffer} {
		if count[l] > count[most] {
			most = l
		}
	}
	return most
}

// flatRatio is how much a rate may fall over a range of sizes and still be called the same.
const flatRatio = 0.85

func (a *analyst) frameBound(low []point) {
	top, least := best(low, packets), best(low, func(p point) float64 { return -p.pps })
	values := map[string]float64{
		"frame_limit_pps": top.pps, "from_payload_bytes": float64(low[0].payload), "up_to_payload_bytes": float64(low[len(low)-1].payload),
	}
	how := "whatever their size"
	if least.pps < flatRatio*top.pps {
		how = "less as they grow"
	}
	a.add(KindFrameBound, values, "For payloads %s the number of packets is the limit: %s to %s, %s.",
		sizes(low), unit.FormatPPS(least.pps), unit.FormatPPS(top.pps), how)
}

func (a *analyst) bitBound(high []point) {
	top := best(high, bits)
	a.add(KindBitBound, map[string]float64{"bit_limit_bps": top.goodput, "from_payload_bytes": float64(high[0].payload), "up_to_payload_bytes": float64(high[len(high)-1].payload)},
		"For payloads %s the number of bits is the limit: up to %s of payload; smaller packets spend more of it on headers.", sizes(high), unit.FormatBits(top.goodput))
}

func (a *analyst) knee(c curve, f fit, used []point) {
	below, above := used[f.low-1], used[f.low]
	values := map[string]float64{"knee_above_payload_bytes": float64(below.payload), "knee_below_payload_bytes": float64(above.payload)}
	between := fmt.Sprintf("between %d and %d bytes", below.payload, above.payload)
	if f.low < 2 || len(used)-f.low < 2 {
		a.add(KindKnee, values, "The limit changes from packets to bits %s; too few sizes lie beside it to say where. Measure more sizes there.", between)
		return
	}
	knee := kneePayload(f.knee, used)
	if f.blurred {
		a.add(KindKnee, values, "The limit changes from packets to bits; where is not separable: the repeats put it at %s to %s bytes. More --repeats or a longer --time would tell.",
			round(kneePayload(f.lowest, used)), round(kneePayload(f.highest, used)))
		return
	}
	values["knee_payload_bytes"] = knee
	text := fmt.Sprintf("The limit changes from packets to bits at a payload of about %s bytes", round(knee))
	if f.highest > 0 {
		low, high := kneePayload(min(f.lowest, f.knee), used), kneePayload(max(f.highest, f.knee), used)
		values["knee_low_payload_bytes"], values["knee_high_payload_bytes"] = low, high
		text += fmt.Sprintf(" (%s to %s in the repeats)", twoDigits(low, math.Floor), twoDigits(high, math.Ceil))
	}
	if f.gradual {
		text += "; it is gradual: there a packet costs the path as much time as its bytes do"
	}
	a.add(KindKnee, values, "%s.", text)
}

// kneePayload turns bytes of frame into bytes of payload.
func kneePayload(frame float64, used []point) float64 {
	last := used[len(used)-1]
	return max(1, frame-float64(last.frame-last.payload))
}

// round prints a number of bytes with the two digits that such an estimate has.
func round(v float64) string { return twoDigits(v, math.Round) }

func twoDigits(v float64, way func(float64) float64) string {
	step := max(1, math.Pow(10, math.Floor(math.Log10(max(v, 1)))-1))
	return fmt.Sprintf("%.0f", way(v/step)*step)
}

func (a *analyst) share(c curve) {
	if len(c.points) < 2 {
		return
	}
	fast, wide := best(c.points, packets), best(c.points, bits)
	if fast.pps <= 0 || wide.goodput <= 0 {
		return
	}
	values := map[string]float64{}
	var p, b []string
	for _, x := range c.points {
		values[fmt.Sprintf("pps_ratio_at_%d_payload_bytes", x.payload)] = x.pps / fast.pps
		values[fmt.Sprintf("goodput_ratio_at_%d_payload_bytes", x.payload)] = x.goodput / wide.goodput
		p = append(p, fmt.Sprintf("%d B %s", x.payload, percent(x.pps/fast.pps)))
		b = append(b, fmt.Sprintf("%d B %s", x.payload, percent(x.goodput/wide.goodput)))
	}
	text := fmt.Sprintf("Share of the best bit rate (%s at %d B): %s.", unit.FormatBits(wide.goodput), wide.payload, strings.Join(b, ", "))
	if c.protocol != model.TCP {
		text = fmt.Sprintf("Share of the best packet rate (%s at %d B): %s. ", unit.FormatPPS(fast.pps), fast.payload, strings.Join(p, ", ")) + text
	}
	a.add(KindShare, values, "%s", text)
}

// percent prints a share with whole percents, or one digit below ten.
func percent(ratio float64) string {
	if v := ratio * 100; v >= 9.95 {
		return fmt.Sprintf("%.0f %%", v)
	}
	return fmt.Sprintf("%.1f %%", ratio*100)
}

// nameRatio is the share of the loss that a cause needs to be told.
const nameRatio = 0.01

func (a *analyst) loss(c curve) {
	values := map[string]float64{}
	var where []string             // each account of the causes once
	sizes := map[string][]string{} // of each
	overload := false
	for _, p := range c.points {
		if p.loss < losslessRatio {
			continue
		}
		values[fmt.Sprintf("loss_ratio_at_%d_payload_bytes", p.payload)] = p.loss
		cause := causes(p)
		if sizes[cause] == nil {
			where = append(where, cause)
		}
		sizes[cause] = append(sizes[cause], fmt.Sprintf("%s at %d B", percent(p.loss), p.payload))
		overload = overload || p.limit == byPath
	}
	if len(where) == 0 {
		return
	}
	var parts []string
	for _, cause := range where {
		parts = append(parts, strings.Join(sizes[cause], ", ")+": "+cause)
	}
	why := ""
	switch {
	case c.offered:
		why = " At the asked rate that is loss a user of this path would see."
	case overload:
		why = " Sent as fast as the sender could, the packets beyond what the path carries are lost: that is overload, not a fault."
	}
	a.add(KindLoss, values, "Lost %s.%s", strings.Join(parts, "; "), why)
}

// causes says where the lost packets of one size ended, by the ledger.
func causes(p point) string {
	named := map[string]uint64{}
	var order []string
	var lost, rest uint64
	for _, t := range p.trials {
		lost, rest = lost+t.flow.Ledger.Lost, rest+t.flow.Ledger.Unattributed
		for _, l := range t.flow.Ledger.Lines {
			name := l.Cause + " in " + l.Layer + " of " + l.Host
			if _, ok := named[name]; !ok {
				order = append(order, name)
			}
			named[name] += l.Packets
		}
	}
	var text []string
	for _, name := range order {
		if r := float64(named[name]) / float64(max(lost, 1)); r >= nameRatio {
			text = append(text, percent(r)+" by "+name)
		}
	}
	if r := float64(rest) / float64(max(lost, 1)); r >= nameRatio || len(text) == 0 {
		where := "on the way, at no counter seen from here"
		if len(text) > 0 {
			where = percent(r) + " " + where
		}
		text = append(text, where)
	}
	return strings.Join(text, ", ")
}

func (a *analyst) fragmentation(c curve) {
	var split []string
	values := map[string]float64{}
	for _, p := range c.points {
		if n := p.fragments; n > 1 {
			split = append(split, fmt.Sprintf("%d B into %d", p.payload, n))
			values[fmt.Sprintf("fragments_at_%d_payload_bytes", p.payload)] = float64(n)
		}
	}
	if len(split) > 0 {
		a.add(KindFragmentation, values, "Larger than the path's packets, these are split on the way: %s packets. One lost piece loses the whole, and each piece counts against the packet limit.", strings.Join(split, ", "))
	}
}
