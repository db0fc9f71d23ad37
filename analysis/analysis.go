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
	if isSweep(doc) {
		return sweep(doc)
	}
	if isRouter(doc) {
		return router(doc)
	}
	if isControl(doc) {
		return control(doc)
	}
	if isSoak(doc) {
		return soak(doc)
	}
	all := curves(doc)
	a := &analyst{doc: doc}
	if len(all) == 0 {
		return a.nothing()
	}
	var answers []answer
	values := map[string]float64{}
	for _, c := range all {
		prefix := ""
		if len(all) > 1 {
			prefix = c.label + ": "
		}
		one := a.curve(c, prefix)
		answers = append(answers, one)
		for k, x := range one.values {
			values[a.valueName(all, c, k)] = x
		}
	}
	a.ends(all)
	a.share(all)
	a.loss(all)
	a.changed()
	a.asymmetry(all)
	a.unfit()
	a.swallowed()
	a.engines()
	a.lab()
	a.invalid()
	a.repeats(all)
	first := model.Finding{Kind: KindVerdict, Text: verdict(all, answers), Values: values}
	return append([]model.Finding{first}, a.found...)
}

// valueName tells the values of several curves apart.
func (a *analyst) valueName(all []curve, c curve, name string) string {
	if len(all) > 1 {
		return slug(c.label) + "_" + name
	}
	return name
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
	if big := misfits(a.doc); len(big.payloads) > 0 {
		a.add(KindVerdict, nil, "Nothing was measured: %s", big.text())
		a.invalid()
		return a.found
	}
	a.add(KindVerdict, nil, "%s", text)
	a.changed()
	a.invalid()
	return a.found
}

// curve adds the findings of one curve alone and returns its part of the verdict.
func (a *analyst) curve(c curve, prefix string) answer {
	before := len(a.found)
	var out answer
	if c.protocol == model.TCP {
		out = a.tcp(c)
	} else {
		out = a.udp(c)
	}
	for i := range a.found[before:] {
		f := &a.found[before+i]
		if prefix != "" {
			f.Text = prefix + strings.ToLower(f.Text[:1]) + f.Text[1:]
			values := map[string]float64{}
			for k, x := range f.Values {
				values[slug(c.label)+"_"+k] = x
			}
			f.Values = values
		}
	}
	return out
}

func (a *analyst) udp(c curve) answer {
	f, used := a.explain(c)
	if len(used) == 0 {
		return answer{text: "Nothing arrived at any size.", figures: "nothing arrived"}
	}
	switch {
	case f.own:
	case f.shape == frames:
		a.frameBound(used)
	case f.shape == bitsOnly:
		a.bitBound(used)
	case f.shape == both:
		a.knee(f, used)
	}
	a.fragmentation(c)
	return speaker{path: a.path(), link: a.linkBits(), used: used, fit: f}.answer()
}

// explain fits a curve's rates to the two limits.
func (a *analyst) explain(c curve) (f fit, used []point) {
	w, t, used := c.times()
	if len(used) > 0 && !c.offered { // an asked rate shows no limit of its own
		f = fitShape(w, t, c.noise())
		f.blur(c, used)
		f.own = a.ownBytes(f, used)
	}
	return f, used
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
		return fmt.Sprintf("at %d B", first)
	}
	return fmt.Sprintf("from %d to %d B", first, last)
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

// trend says how packet rates go with the size, as far as the repeats allow to tell.
func trend(points []point) string {
	least, most := lowest(points), best(points, packets).pps
	if least >= flatRatio*most {
		return ", whatever the size"
	}
	noise := 0.0
	for _, p := range points {
		noise = max(noise, p.spread)
	}
	for i, p := range points[1:] {
		if p.pps > points[i].pps*(1+noise/2) {
			return ""
		}
	}
	if first, last := points[0].pps, points[len(points)-1].pps; last > flatRatio*first || first-last < noise*first {
		return ""
	}
	return ", less as they grow"
}

func lowest(points []point) float64 {
	return best(points, func(p point) float64 { return -p.pps }).pps
}

func (a *analyst) frameBound(low []point) {
	top := best(low, packets)
	values := map[string]float64{
		"frame_limit_pps": top.pps, "from_payload_bytes": float64(low[0].payload), "up_to_payload_bytes": float64(low[len(low)-1].payload),
	}
	a.add(KindFrameBound, values, "%s packets count, not bits: %s%s.", sentence(sizes(low)), ranged(lowest(low), top.pps), trend(low))
}

func (a *analyst) bitBound(high []point) {
	top := best(high, bits)
	a.add(KindBitBound, map[string]float64{"bit_limit_bps": top.goodput, "from_payload_bytes": float64(high[0].payload), "up_to_payload_bytes": float64(high[len(high)-1].payload)},
		"%s bits count: up to %s of payload; smaller packets spend more on headers.", sentence(sizes(high)), unit.FormatBits(top.goodput))
}

// knee tells both sides of a knee, and where it is.
func (a *analyst) knee(f fit, used []point) {
	low, high := used[:f.low], used[f.low:]
	below, above := low[len(low)-1], high[0]
	wide := best(high, bits)
	values := map[string]float64{"knee_above_payload_bytes": float64(below.payload), "knee_below_payload_bytes": float64(above.payload),
		limitName(low): best(low, packets).pps, "bit_limit_bps": wide.goodput}
	text := fmt.Sprintf("Payloads %s: %s%s; %s: up to %s. ", sizes(low), ranged(lowest(low), best(low, packets).pps), trend(low), sizes(high), unit.FormatBits(wide.goodput))
	if len(low) == 1 {
		text = fmt.Sprintf("Payloads %s: %s; %s: up to %s. ", sizes(low), unit.FormatPPS(low[0].pps), sizes(high), unit.FormatBits(wide.goodput))
	}
	switch {
	case len(low) < 2 || len(high) < 2:
		text += fmt.Sprintf("Between %d and %d B the packet rate begins to fall; more sizes there would tell where.", below.payload, above.payload)
	case f.blurred:
		text += fmt.Sprintf("Where packets give way to bits is not separable: the repeats put it at %s to %s B; more --repeats or a longer --time would tell.",
			round(kneePayload(f.lowest, used)), round(kneePayload(f.highest, used)))
	default:
		values["knee_payload_bytes"] = kneePayload(f.knee, used)
		text += "Packets give way to bits as the limit at about " + round(kneePayload(f.knee, used)) + " B"
		if f.highest > 0 {
			from, to := kneePayload(min(f.lowest, f.knee), used), kneePayload(max(f.highest, f.knee), used)
			values["knee_low_payload_bytes"], values["knee_high_payload_bytes"] = from, to
			if a, b := twoDigits(from, math.Floor), twoDigits(to, math.Ceil); a != b {
				text += fmt.Sprintf(" (%s to %s in the repeats)", a, b)
			}
		}
		if f.gradual {
			text += ", gradually: there a packet costs the path as much time as its bytes do"
		}
		text += "."
	}
	a.add(KindKnee, values, "%s", text)
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

// share compares each size with the best: in words only the ends of the first
// curve of each flow, for the tables have the rest.
func (a *analyst) share(all []curve) {
	values := map[string]float64{}
	var text []string
	told := map[string]bool{}
	for _, c := range all {
		if len(c.points) < 2 {
			continue
		}
		fast, wide := best(c.points, packets), best(c.points, bits)
		if fast.pps <= 0 || wide.goodput <= 0 {
			continue
		}
		for _, x := range c.points {
			values[a.valueName(all, c, fmt.Sprintf("pps_ratio_at_%d_payload_bytes", x.payload))] = x.pps / fast.pps
			values[a.valueName(all, c, fmt.Sprintf("goodput_ratio_at_%d_payload_bytes", x.payload))] = x.goodput / wide.goodput
		}
		if told[c.flow] || c.offered {
			continue // equal packet rates were asked for
		}
		told[c.flow] = true
		small, large := c.points[0], c.points[len(c.points)-1]
		name := ""
		if len(all) > 1 {
			name = c.label + ": "
		}
		one := fmt.Sprintf("%s%d B carries %s of the best bit rate", name, small.payload, percent(small.goodput/wide.goodput))
		if c.protocol != model.TCP && large.pps > 0 {
			one += fmt.Sprintf(", %d B %s of the best packet rate", large.payload, percent(large.pps/fast.pps))
		}
		text = append(text, one+".")
	}
	if len(text) > 0 {
		a.add(KindShare, values, "%s", strings.Join(text, " "))
	}
}

// percent prints a share with whole percents, or one digit below ten.
func percent(ratio float64) string {
	if v := ratio * 100; v >= 9.95 {
		return fmt.Sprintf("%.0f %%", v)
	}
	return fmt.Sprintf("%.1f %%", ratio*100)
}

func (a *analyst) fragmentation(c curve) {
	var split []string
	values := map[string]float64{}
	for _, p := range c.points {
		if n := p.fragments; n > 1 {
			split = append(split, fmt.Sprintf("%d B into %d packets", p.payload, n))
			values[fmt.Sprintf("fragments_at_%d_payload_bytes", p.payload)] = float64(n)
		}
	}
	if len(split) > 0 {
		a.add(KindFragmentation, values, "Larger than the path's packets, these are split: %s. One lost piece loses the whole, and each piece counts as a packet.", strings.Join(split, ", "))
	}
}
