package analysis

import (
	"fmt"
	"math"
	"slices"
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
	f := fitShape(w, t, c.noise())
	v := verdict(f, used, a.path())
	switch {
	case allLimited(used, byOffer):
	case f.shape == frames:
		a.frameBound(used, used)
	case f.shape == bitsOnly:
		a.bitBound(used)
	case f.shape == both:
		a.frameBound(used[:f.low], used)
		a.bitBound(used[f.low:])
		a.knee(c, f, used)
	}
	a.share(c)
	a.ends(c, f, used)
	a.loss(c)
	a.fragmentation(c)
	return v
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

func allLimited(points []point, by limit) bool {
	return !slices.ContainsFunc(points, func(p point) bool { return p.limit != by })
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

func (a *analyst) frameBound(low, all []point) {
	top := best(low, packets)
	values := map[string]float64{
		"frame_limit_pps": top.pps, "from_payload_bytes": float64(low[0].payload), "up_to_payload_bytes": float64(low[len(low)-1].payload),
	}
	least := low[0].pps
	for _, p := range low {
		least = min(least, p.pps)
	}
	a.add(KindFrameBound, values, "Payloads %s are limited by the number of packets: %s to %s, whatever their size.",
		sizes(low), unit.FormatPPS(least), unit.FormatPPS(top.pps))
}

func (a *analyst) bitBound(high []point) {
	top := best(high, bits)
	a.add(KindBitBound, map[string]float64{"bit_limit_bps": top.goodput, "from_payload_bytes": float64(high[0].payload), "up_to_payload_bytes": float64(high[len(high)-1].payload)},
		"Payloads %s are limited by the number of bits: up to %s of payload, and smaller packets spend more of it on headers.", sizes(high), unit.FormatBits(top.goodput))
}

// kneeSeparable is how far apart repeats may put the knee: beyond, its number
// would say more than was measured.
const kneeSeparable = 2

func (a *analyst) knee(c curve, f fit, used []point) {
	below, above := used[f.low-1], used[f.low]
	values := map[string]float64{"knee_above_payload_bytes": float64(below.payload), "knee_below_payload_bytes": float64(above.payload)}
	between := fmt.Sprintf("between %d and %d bytes", below.payload, above.payload)
	if f.low < 2 || len(used)-f.low < 2 {
		a.add(KindKnee, values, "The limit changes from packets to bits %s; too few sizes lie beside it to say where. Measure more sizes there.", between)
		return
	}
	knee := kneePayload(f.knee, used)
	low, high, ok := c.kneeInterval(f.gradual)
	if ok && high > kneeSeparable*low {
		a.add(KindKnee, values, "The limit changes from packets to bits; where is not separable: the repeats put it at %s to %s bytes. More --repeats or a longer --time would tell.",
			round(kneePayload(low, used)), round(kneePayload(high, used)))
		return
	}
	values["knee_payload_bytes"] = knee
	text := fmt.Sprintf("The limit changes from packets to bits at a payload of about %s bytes", round(knee))
	if ok {
		low, high = kneePayload(min(low, f.knee), used), kneePayload(max(high, f.knee), used)
		values["knee_low_payload_bytes"], values["knee_high_payload_bytes"] = low, high
		text += fmt.Sprintf(" (%.0f to %.0f in the repeats)", low, high)
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
func round(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.0f", v)
	}
	step := math.Pow(10, math.Floor(math.Log10(v))-1)
	return fmt.Sprintf("%.0f", math.Round(v/step)*step)
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
	a.add(KindShare, values, "Share of the best packet rate (%s at %d B): %s. Share of the best bit rate (%s at %d B): %s.",
		unit.FormatPPS(fast.pps), fast.payload, strings.Join(p, ", "), unit.FormatBits(wide.goodput), wide.payload, strings.Join(b, ", "))
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
	var lines []string
	for _, p := range c.points {
		if p.loss < losslessRatio {
			continue
		}
		values[fmt.Sprintf("loss_ratio_at_%d_payload_bytes", p.payload)] = p.loss
		lines = append(lines, fmt.Sprintf("%d B %s (%s)", p.payload, percent(p.loss), causes(p)))
	}
	if len(lines) == 0 {
		return
	}
	why := "Sent as fast as the sender could, the packets beyond what the path carries are lost: that is overload, not a fault."
	if c.offered {
		why = "At the asked rate that is loss a user of this path would see."
	}
	a.add(KindLoss, values, "Lost: %s. %s", strings.Join(lines, ", "), why)
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
			text = append(text, percent(r)+" of it "+name)
		}
	}
	if r := float64(rest) / float64(max(lost, 1)); r >= nameRatio || len(text) == 0 {
		where := "between the ends, at no counter seen from here"
		if len(text) > 0 {
			where = percent(r) + " of it " + where
		}
		text = append(text, where)
	}
	return strings.Join(text, ", ")
}

func (a *analyst) fragmentation(c curve) {
	var split []string
	values := map[string]float64{}
	for _, p := range c.points {
		if n := p.trials[0].flow.Fragments; n > 1 {
			split = append(split, fmt.Sprintf("%d B into %d", p.payload, n))
			values[fmt.Sprintf("fragments_at_%d_payload_bytes", p.payload)] = float64(n)
		}
	}
	if len(split) > 0 {
		a.add(KindFragmentation, values, "Larger than the path's packets, these are split on the way: %s packets each. One lost piece loses the whole, and each piece counts against the packet limit.", strings.Join(split, ", "))
	}
}
