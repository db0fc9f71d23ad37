package analysis

import (
	"fmt"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
	"pelt/unit"
)

// answer is what one curve adds to the verdict.
type answer struct {
	text    string // whole, when it is the only curve
	bound   string // "at least", "at most" or ""; of figures
	figures string // short, beside other curves: "216 kpps and 972 Mbit/s"
	pps     float64
	bits    float64
	values  map[string]float64
}

// verdict joins the answers of all curves in one or two sentences.
func verdict(all []curve, answers []answer) string {
	if len(all) == 1 {
		return answers[0].text
	}
	type entry struct{ name, text string }
	var entries []entry
	for i := 0; i < len(all); i++ {
		c, a := all[i], answers[i]
		name := strings.TrimSpace(c.flow + " " + c.setting)
		text := a.bounded()
		if c.both {
			name = strings.TrimSpace("both at once " + c.setting)
			text += " " + c.flow
			if j := i + 1; j < len(all) && all[j].both && all[j].setting == c.setting {
				i = j
				text += ", " + strings.TrimPrefix(answers[j].bounded(), a.bound+" ") + " " + all[j].flow
			}
		}
		entries = append(entries, entry{name, text})
	}
	if len(entries) > mostEntries {
		return summary(all, answers)
	}
	var parts []string
	for _, e := range entries {
		parts = append(parts, e.name+": "+e.text)
	}
	return sentence(strings.Join(parts, "; ")) + "."
}

// mostEntries is how many settings a verdict names; more are a table's work.
const mostEntries = 3

func summary(all []curve, answers []answer) string {
	by := func(get func(answer) float64) int {
		top := 0
		for i := range answers {
			if get(answers[i]) > get(answers[top]) {
				top = i
			}
		}
		return top
	}
	fast, wide := by(func(a answer) float64 { return a.pps }), by(func(a answer) float64 { return a.bits })
	most := func(i int, what, figure string) string {
		return strings.TrimSpace(what + " " + figure + " " + all[i].name)
	}
	if answers[fast].pps <= 0 {
		return fmt.Sprintf("Of %d settings, the most bits %s.", len(all), most(wide, "were", unit.FormatBits(answers[wide].bits)))
	}
	return fmt.Sprintf("Of %d settings, %s and %s.", len(all),
		most(fast, "the most packets were", unit.FormatPPS(answers[fast].pps)), most(wide, "the most bits", unit.FormatBits(answers[wide].bits)))
}

func (a answer) bounded() string { return strings.TrimSpace(a.bound + " " + a.figures) }

// speaker words the answer of one curve.
type speaker struct {
	path  string
	link  float64 // slowest known link, bit/s; 0 if none is
	used  []point
	fit   fit
	rough string // "roughly " where repeats of a size differ much
}

// answer says what limits one curve, leading with its figures.
func (s speaker) answer() answer {
	fast, wide := best(s.used, packets), best(s.used, bits)
	for _, p := range s.used {
		if p.spread > doubtSpread {
			s.rough = "roughly "
		}
	}
	a := answer{pps: fast.pps, bits: wide.goodput, values: map[string]float64{"best_pps": fast.pps, "best_goodput_bps": wide.goodput},
		figures: s.rough + unit.FormatPPS(fast.pps) + " and " + unit.FormatBits(wide.goodput)}
	a.bound = s.bound(s.used)
	switch {
	case mostly(s.used) == byOffer:
		s.offered(&a, fast, wide)
	case len(s.used) == 1:
		a.figures = s.rough + unit.FormatPPS(fast.pps) + " (" + unit.FormatBits(fast.goodput) + ")"
		a.text = fmt.Sprintf("%s carries %s at %d B, which is %s", s.path, s.rate(s.used, fast), fast.payload, unit.FormatBits(fast.goodput))
		if mostly(s.used) == byPath {
			a.text += ". One size alone cannot tell whether packets or bits are the limit."
		} else {
			a.text += "; " + s.blame(s.used) + "."
		}
	case s.fit.own:
		a.bound, a.values["at_least_pps"], a.values["at_least_bps"] = "at least", fast.pps, wide.goodput
		a.text = fmt.Sprintf("%s carries at least %s and at least %s; ", s.path, s.rough+unit.FormatPPS(fast.pps), unit.FormatBits(wide.goodput))
		if mostly(s.used) == byReceiver {
			a.text += "what was lost was lost at the receiver, not on the path."
		} else {
			a.text += "the hosts set both, not the path, for next to nothing was lost on it."
		}
	case s.fit.shape == frames:
		a.values[limitName(s.used)] = fast.pps
		a.text = fmt.Sprintf("%s carries %s %s, up to %s; ", s.path, s.rate(s.used, fast), sizes(s.used), unit.FormatBits(wide.goodput))
		if mostly(s.used) == byPath {
			a.text += "the number of packets is the limit, not their bits."
		} else {
			a.text += s.blame(s.used) + "."
		}
	case s.fit.shape == bitsOnly:
		a.values["bit_limit_bps"], a.bound = wide.goodput, "at most"
		a.text = fmt.Sprintf("%s carries at most %s; bits are the limit %s, and up to %s fit in.",
			s.path, s.rough+unit.FormatBits(wide.goodput), sizes(s.used), unit.FormatPPS(fast.pps))
	case s.fit.shape == both:
		s.knee(&a)
	default:
		s.unclear(&a)
	}
	return a
}

// bound says how a figure relates to what the path can do: only a path that
// lost packets has shown its limit.
func (s speaker) bound(points []point) string {
	if mostly(points) == byPath {
		return "at most"
	}
	return "at least"
}

func (s speaker) rate(points []point, top point) string {
	return s.bound(points) + " " + s.rough + unit.FormatPPS(top.pps)
}

// limitName names a packet rate: only a path that was overloaded has shown its limit.
func limitName(points []point) string {
	if mostly(points) == byPath {
		return "frame_limit_pps"
	}
	return "at_least_pps"
}

func (s speaker) offered(a *answer, fast, wide point) {
	a.bound = ""
	worst := best(s.used, func(p point) float64 { return p.loss })
	carried := s.rough + unit.FormatPPS(fast.pps) + " and " + unit.FormatBits(wide.goodput)
	if worst.loss >= losslessRatio {
		a.figures += " (" + unit.FormatRatio(worst.loss) + " lost)"
		if len(s.used) == 1 {
			a.text = fmt.Sprintf("%s lost %s of what was sent at %d B; %s arrived.", s.path, unit.FormatRatio(worst.loss), worst.payload, carried)
			return
		}
		a.text = fmt.Sprintf("%s lost up to %s of what was sent, most at %d B; up to %s arrived.", s.path, unit.FormatRatio(worst.loss), worst.payload, carried)
		return
	}
	upTo, all := "up to ", "all that was sent"
	switch {
	case worst.loss > 0 && len(s.used) == 1:
		all = "all but " + say.Share(worst.loss) + " of what was sent"
	case worst.loss > 0:
		all = "all but at most " + say.Share(worst.loss) + " of what was sent"
	}
	if len(s.used) == 1 {
		upTo = ""
	}
	a.figures += ", " + all
	a.text = fmt.Sprintf("%s carried %s %s: %s%s. Its limit lies higher; --rate max finds it.", s.path, all, sizes(s.used), upTo, carried)
}

func (s speaker) knee(a *answer) {
	f, low, high := s.fit, s.used[:s.fit.low], s.used[s.fit.low:]
	fast, wide := best(low, packets), best(high, bits)
	a.bound = s.bound(low)
	a.values[limitName(low)] = fast.pps
	start, by, bitRate := s.path+" carries "+s.rate(low, fast), smallBy(low), unit.FormatBits(wide.goodput)
	proven := len(high) > 1 || s.atLink(high[0])
	if proven {
		a.values["bit_limit_bps"] = wide.goodput
	}
	switch {
	case len(low) == 1 && proven:
		a.text = fmt.Sprintf("%s; that is at %d B, payloads from %d B on are limited by %s.", start, low[0].payload, high[0].payload, bitRate)
	case len(high) == 1 && proven:
		a.text = fmt.Sprintf("%s; payloads up to %d B are limited by %s, those of %d B by %s.", start, low[len(low)-1].payload, by, high[0].payload, bitRate)
	case len(high) == 1:
		a.bound = "at least"
		a.text = fmt.Sprintf("%s; payloads up to %d B are limited by %s, those of %d B reach %s.", start, low[len(low)-1].payload, by, high[0].payload, bitRate)
	case f.blurred:
		a.text = fmt.Sprintf("%s; small payloads are limited by %s, large ones by %s. From which size on is not separable: the repeats differ too much.", start, by, bitRate)
	default:
		knee := kneePayload(f.knee, s.used)
		a.values["knee_payload_bytes"] = knee
		mainly := ""
		if f.gradual {
			mainly = "mostly "
		}
		a.text = fmt.Sprintf("%s; payloads under about %s B are %slimited by %s, larger ones by %s.", start, round(knee), mainly, by, bitRate)
	}
}

// smallBy names what held the small sizes, in the words of the verdict.
func smallBy(low []point) string {
	switch mostly(low) {
	case bySender:
		return "the sender"
	case byQuiet:
		return "the sending side"
	case byReceiver:
		return "the receiver"
	}
	return "packets"
}

// unclear tells rates that neither limit explains, and claims only what is known of who set them.
func (s speaker) unclear(a *answer) {
	first, last := s.used[0], s.used[len(s.used)-1]
	carries := "carried"
	if !slices.ContainsFunc(s.used, func(p point) bool { return p.limit == byPath }) {
		carries = "carries at least"
	}
	if a.bound = "at most"; carries != "carried" || slices.ContainsFunc(s.used, func(p point) bool { return p.limit != byPath }) {
		a.bound = "at least"
	}
	a.text = fmt.Sprintf("%s %s %s%s at %d B and %s at %d B (%s)", s.path, carries, s.rough, unit.FormatPPS(first.pps), first.payload,
		unit.FormatPPS(last.pps), last.payload, unit.FormatBits(last.goodput))
	switch who := s.blame(s.used); {
	case who != "":
		a.text += "; " + who + "."
	case len(s.used) == 2:
		a.text += ". Two sizes cannot tell what limits it between them: measure more."
	case float64(last.frame) < sizeRange*float64(first.frame):
		a.text += ". The sizes lie too close together to tell packets from bits as the limit."
	default:
		a.text += ". Whether packets or bits limit it is not separable: the rates follow neither."
	}
}

// atLink reports whether one size filled the slowest known link.
func (s speaker) atLink(p point) bool {
	return s.link > 0 && p.limit != byReceiver && p.pps*8*float64(p.frame) >= nearLink*s.link
}

// blame says who the limit was where that is known; "" where the path was at every size.
func (s speaker) blame(points []point) string {
	var names []string
	at := map[string][]point{}
	for _, p := range points {
		name := map[limit]string{bySender: "the sender", byQuiet: "the sending side", byReceiver: "the receiver"}[p.limit]
		if name == "" {
			name = "the path"
		}
		if s.atLink(p) {
			name = "the link's rate"
		}
		if at[name] == nil {
			names = append(names, name)
		}
		at[name] = append(at[name], p)
	}
	if len(names) == 1 {
		switch {
		case names[0] == "the path":
			return ""
		case names[0] == "the link's rate", names[0] == "the sending side": // which may be the first link
			return names[0] + " was the limit"
		case len(points) == 2:
			return names[0] + " was the limit at both, not the path"
		case len(points) > 2:
			return names[0] + " was the limit at every size, not the path"
		}
		return names[0] + " was the limit, not the path"
	}
	var parts []string
	for _, name := range names {
		where := list(at[name])
		if len(at[name]) > 3 {
			where = fmt.Sprintf("%d other sizes", len(at[name]))
			if len(parts) == 0 {
				where = fmt.Sprintf("%d sizes", len(at[name]))
			}
		}
		parts = append(parts, name+" at "+where)
	}
	return strings.Replace(strings.Join(parts, ", "), " at ", " was the limit at ", 1)
}

func list(points []point) string {
	var words []string
	for _, p := range points {
		words = append(words, fmt.Sprintf("%d", p.payload))
	}
	return say.And(words) + " B"
}

// tcp tells what small writes become: TCP joins them into segments.
func (a *analyst) tcp(c curve) answer {
	if out, ok := a.connections(c); ok {
		return out
	}
	wide := best(c.points, bits)
	out := answer{bits: wide.goodput, figures: unit.FormatBits(wide.goodput), values: map[string]float64{"best_goodput_bps": wide.goodput}}
	for _, p := range c.points {
		a.segments(p)
	}
	if len(c.points) == 1 || c.bulk {
		out.text = fmt.Sprintf("%s carries %s of TCP.", a.path(), unit.FormatBits(wide.goodput))
		return out
	}
	small := c.points[0]
	out.figures = fmt.Sprintf("%s with writes of %d B, %s with %d B", unit.FormatBits(small.goodput), small.payload, unit.FormatBits(wide.goodput), wide.payload)
	out.text = fmt.Sprintf("%s carries %s of TCP with writes of %d B, and %s with writes of %d B.",
		a.path(), unit.FormatBits(small.goodput), small.payload, unit.FormatBits(wide.goodput), wide.payload)
	return out
}

func (a *analyst) segments(p point) {
	var writes, segments, per, rates []float64
	for _, t := range p.trials {
		x := t.flow.TCP
		if x == nil || !(t.flow.DurationS > 0) {
			continue
		}
		n := float64(x.SegmentsIn) // as the tables count them
		if n == 0 {
			n = float64(x.SegmentsOut)
		}
		writes, segments = append(writes, float64(x.Writes)/t.flow.DurationS), append(segments, n/t.flow.DurationS)
		per = append(per, float64(x.Writes)/max(1, n))
		rates = append(rates, float64(x.Retransmits)/max(1, float64(x.SegmentsOut)))
	}
	if len(writes) == 0 {
		return
	}
	at := fmt.Sprintf("_at_%d_payload_bytes", p.payload)
	joined := ", one write each"
	if median(per) > 1.05 {
		joined = fmt.Sprintf(", %.1f writes each", median(per))
	} else if median(per) < 0.95 {
		joined = fmt.Sprintf(", %.1f for each write", 1/median(per))
	}
	again := "nothing was sent again"
	if r := median(rates); r > 0 {
		again = unit.FormatRatio(r) + " of the segments were sent again"
	}
	a.add(KindTCP, map[string]float64{"goodput_bps" + at: p.goodput, "writes_per_second" + at: median(writes), "segments_pps" + at: median(segments), "resent_ratio" + at: median(rates)},
		"Writes of %d B: %s left as %s segments%s; %s.", p.payload, perSecond(median(writes)), perSecond(median(segments)), joined, again)
}

// perSecond prints a count per second as the tables do: "158 k/s".
func perSecond(n float64) string { return strings.TrimSuffix(unit.FormatPPS(n), "pps") + "/s" }

// ranged prints a range of packet rates, the unit once where it is the same.
func ranged(low, high float64) string {
	a, b := unit.FormatPPS(low), unit.FormatPPS(high)
	number, scale, _ := strings.Cut(a, " ")
	switch {
	case a == b:
		return a
	case strings.HasSuffix(b, " "+scale):
		return number + " to " + b
	}
	return a + " to " + b
}

func threadRatio(c model.CPU) float64 { return c.ThreadRatio }
func hostRatio(c model.CPU) float64   { return c.HostRatio }

// cpu is the sender's load at one size.
func cpu(p point, of func(model.CPU) float64) float64 {
	var all []float64
	for _, t := range p.trials {
		all = append(all, of(t.flow.SenderCPU))
	}
	return median(all)
}
