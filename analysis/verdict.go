package analysis

import (
	"fmt"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// verdict says in two sentences what limits one curve.
func verdict(f fit, used []point, path string) model.Finding {
	fast, wide := best(used, packets), best(used, bits)
	values := map[string]float64{"best_pps": fast.pps, "best_goodput_bps": wide.goodput}
	var text string
	switch {
	case mostly(used) == byOffer:
		text = offeredVerdict(used, path)
	case len(used) == 1:
		text = fmt.Sprintf("%s at %d bytes, which is %s. One size cannot tell whether packets or bits are the limit: measure several.",
			carries(path, used, fast), fast.payload, unit.FormatBits(fast.goodput))
	case f.own:
		values["at_least_pps"], values["at_least_bps"] = fast.pps, wide.goodput
		text = fmt.Sprintf("%s carries at least %s and at least %s of larger ones: next to nothing was lost on it, so the hosts set these rates and not the path.",
			path, inWords(fast.pps), unit.FormatBits(wide.goodput))
		if mostly(used) == byReceiver {
			text = fmt.Sprintf("%s carries at least %s and at least %s of larger ones: what was lost was lost at the receiver, not on the path.",
				path, inWords(fast.pps), unit.FormatBits(wide.goodput))
		}
	case f.shape == frames:
		text = fmt.Sprintf("%s, %s: the number of packets is the limit, not their bits. The most bits it moved are %s at %d bytes.",
			carries(path, used, fast), sizes(used), unit.FormatBits(wide.goodput), wide.payload)
		values[limitName(used)] = fast.pps
	case f.shape == bitsOnly:
		text = fmt.Sprintf("%s carries at most %s: the number of bits is the limit, %s. It took up to %s without that becoming one.",
			path, unit.FormatBits(wide.goodput), sizes(used), inWords(fast.pps))
		values["bit_limit_bps"] = wide.goodput
	case f.shape == both:
		text = kneeVerdict(f, used, path, values)
	default:
		text = unclearVerdict(used, path)
	}
	return model.Finding{Kind: KindVerdict, Text: text, Values: values}
}

// limitName names a packet rate: only a path that was overloaded has shown its limit.
func limitName(points []point) string {
	if mostly(points) == byPath {
		return "frame_limit_pps"
	}
	return "at_least_pps"
}

func offeredVerdict(used []point, path string) string {
	fast, wide := best(used, packets), best(used, bits)
	worst := best(used, func(p point) float64 { return p.loss })
	if worst.loss >= losslessRatio {
		return fmt.Sprintf("%s lost up to %s of what was offered, most at %d bytes. It delivered up to %s and %s.",
			path, percent(worst.loss), worst.payload, inWords(fast.pps), unit.FormatBits(wide.goodput))
	}
	return fmt.Sprintf("%s carried all that was offered, %s: up to %s and %s. Its limit lies higher; --rate max finds it.",
		path, sizes(used), inWords(fast.pps), unit.FormatBits(wide.goodput))
}

func kneeVerdict(f fit, used []point, path string, values map[string]float64) string {
	low, high := used[:f.low], used[f.low:]
	fast, wide := best(low, packets), best(high, bits)
	start := carries(path, low, fast) + "."
	values[limitName(low)] = fast.pps
	switch {
	case len(low) == 1:
		values["bit_limit_bps"] = wide.goodput
		return fmt.Sprintf("%s That is at %d bytes alone; packets from %d bytes on are limited by %s.", start, low[0].payload, high[0].payload, unit.FormatBits(wide.goodput))
	case len(high) == 1:
		return fmt.Sprintf("%s Packets up to %d bytes are limited by that; at %d bytes fewer pass, %s, and one size cannot tell whether bits are the limit there.",
			start, low[len(low)-1].payload, high[0].payload, unit.FormatBits(wide.goodput))
	}
	if f.blurred {
		values["bit_limit_bps"] = wide.goodput
		return fmt.Sprintf("%s Small packets are limited by that, large ones by %s; from which size on is not separable, because the repeats differ too much.", start, unit.FormatBits(wide.goodput))
	}
	knee := kneePayload(f.knee, used)
	values["knee_payload_bytes"], values["bit_limit_bps"] = knee, wide.goodput
	mainly, by := "", unit.FormatBits(wide.goodput)
	if f.gradual {
		mainly = "mostly "
	}
	return fmt.Sprintf("%s Packets smaller than about %s bytes are %slimited by that, larger ones by %s.", start, round(knee), mainly, by)
}

// carries says who set the packet rate: only a path that lost packets has
// shown its own limit.
func carries(path string, points []point, top point) string {
	switch mostly(points) {
	case bySender, byQuiet:
		return fmt.Sprintf("%s carries at least %s (the sender could not send more)", path, inWords(top.pps))
	case byReceiver:
		return fmt.Sprintf("%s carries at least %s (the receiver could not take more)", path, inWords(top.pps))
	case byOffer:
		return fmt.Sprintf("%s carries at least %s (no more was offered)", path, inWords(top.pps))
	}
	return fmt.Sprintf("%s carries at most %s", path, inWords(top.pps))
}

func unclearVerdict(used []point, path string) string {
	first, last := used[0], used[len(used)-1]
	text := fmt.Sprintf("%s carried %s of %d bytes and %s of %d bytes (%s).",
		path, inWords(first.pps), first.payload, inWords(last.pps), last.payload, unit.FormatBits(last.goodput))
	if len(used) == 2 {
		return text + " What limits it changes between these two sizes: measure some between them to see where."
	}
	if float64(last.frame) < sizeRange*float64(first.frame) {
		return text + " The sizes lie too close together to tell whether packets or bits are the limit."
	}
	return text + " Whether packets or bits limit it is not separable: the rates follow neither. Longer --time or more --repeats may tell."
}

// ends says where one of the two ends was the limit and not the path.
func (a *analyst) ends(c curve, f fit, used []point) {
	var busy, quiet, receiver []point
	for i, p := range used {
		bitSide := !f.own && (f.shape == bitsOnly || f.shape == both && i >= f.low)
		switch {
		case p.limit == bySender && !bitSide:
			busy = append(busy, p)
		case p.limit == byQuiet && !bitSide:
			quiet = append(quiet, p)
		case p.limit == byReceiver:
			receiver = append(receiver, p)
		}
	}
	if len(busy) > 0 {
		top := best(busy, packets)
		a.add(KindSenderLimited, map[string]float64{"at_least_pps": top.pps, "sender_thread_ratio": cpu(top, threadRatio), "sender_host_ratio": cpu(top, hostRatio)},
			"The sender itself was the limit at %s: its thread was busy %s of the time%s, and the path lost %s. The path carries at least %s there, maybe far more. To push harder: more --streams, or a faster sending host.",
			list(busy), percent(cpu(top, threadRatio)), hostToo(cpu(top, hostRatio)), nearlyNothing(busy), unit.FormatPPS(top.pps))
	}
	if len(quiet) > 0 {
		top := best(quiet, packets)
		a.add(KindSenderLimited, map[string]float64{"at_least_pps": top.pps, "sender_thread_ratio": cpu(top, threadRatio), "sender_host_ratio": cpu(top, hostRatio)},
			"At %s nothing was lost though the sender's thread was busy only %s of the time: its own network interface, the first link, or other work on its cores held it back. The path carries at least %s there.",
			list(quiet), percent(cpu(top, threadRatio)), unit.FormatPPS(top.pps))
	}
	if len(receiver) > 0 {
		top := best(receiver, packets)
		a.add(KindReceiverLimited, map[string]float64{"at_least_pps": top.pps},
			"The receiver was the limit at %s: most of what was lost had arrived there and found no room. The path carries at least %s. More --streams, or larger socket buffers (net.core.rmem_max) on the receiver, help.",
			list(receiver), unit.FormatPPS(top.pps))
	}
}

func nearlyNothing(points []point) string {
	if worst := best(points, func(p point) float64 { return p.loss }); worst.loss > 0 {
		return "at most " + unit.FormatRatio(worst.loss)
	}
	return "nothing"
}

// hostToo adds the load of the whole host, where it is known.
func hostToo(ratio float64) string {
	if ratio <= 0 {
		return ""
	}
	return ", its host " + percent(ratio)
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

func list(points []point) string {
	var words []string
	for _, p := range points {
		words = append(words, fmt.Sprintf("%d", p.payload))
	}
	if len(words) > 1 {
		words[len(words)-2] += " and " + words[len(words)-1]
		words = words[:len(words)-1]
	}
	return strings.Join(words, ", ") + " bytes"
}

// tcp tells what small writes become: TCP joins them into segments.
func (a *analyst) tcp(c curve) model.Finding {
	wide := best(c.points, bits)
	values := map[string]float64{"best_goodput_bps": wide.goodput}
	for _, p := range c.points {
		var writes, segments, per, rates []float64
		for _, t := range p.trials {
			if x := t.flow.TCP; x != nil && t.flow.DurationS > 0 {
				writes = append(writes, float64(x.Writes)/t.flow.DurationS)
				segments = append(segments, float64(x.SegmentsOut)/t.flow.DurationS)
				per = append(per, float64(x.Writes)/max(1, float64(x.SegmentsOut)))
				rates = append(rates, float64(x.Retransmits)/max(1, float64(x.SegmentsOut)))
			}
		}
		if len(writes) == 0 {
			continue
		}
		at := fmt.Sprintf("_at_%d_payload_bytes", p.payload)
		joined := "each write left as a segment of its own"
		if median(per) > 1.05 {
			joined = fmt.Sprintf("TCP joined %.1f writes into each segment", median(per))
		} else if median(per) < 0.95 {
			joined = fmt.Sprintf("TCP split each write into %.1f segments", 1/median(per))
		}
		again := "nothing had to be sent again"
		if r := median(rates); r > 0 {
			again = unit.FormatRatio(r) + " of the segments were sent again"
		}
		a.add(KindTCP, map[string]float64{"goodput_bps" + at: p.goodput, "writes_per_second" + at: median(writes), "segments_pps" + at: median(segments), "resent_ratio" + at: median(rates)},
			"%s writes of %d bytes a second in %s segments, %s: %s, and %s.",
			thousands(median(writes)), p.payload, thousands(median(segments)), unit.FormatBits(p.goodput), joined, again)
	}
	a.share(c)
	if len(c.points) == 1 || c.bulk {
		return model.Finding{Text: fmt.Sprintf("%s carries %s of TCP.", a.path(), unit.FormatBits(wide.goodput)), Values: values}
	}
	small := c.points[0]
	return model.Finding{Values: values, Text: fmt.Sprintf("%s carries %s of TCP with writes of %d bytes and %s with writes of %d bytes.",
		a.path(), unit.FormatBits(small.goodput), small.payload, unit.FormatBits(wide.goodput), wide.payload)}
}
