package words

import (
	"fmt"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// Headline names what was run: "pelt curve lab:router".
func Headline(doc model.Document) string {
	words := "pelt " + Plain(doc.Plan.Command) + " " + Plain(doc.Plan.Target)
	if doc.Plan.Command == "" && doc.Plan.Target == "" {
		return "pelt run"
	}
	return strings.Join(strings.Fields(words), " ")
}

// Run names the run itself.
func Run(doc model.Document) string {
	var parts []string
	if doc.ID != "" {
		parts = append(parts, "run "+Name(doc.ID))
	}
	if doc.Tool.Version != "" {
		parts = append(parts, "pelt "+Name(doc.Tool.Version))
	}
	if !doc.Started.IsZero() {
		parts = append(parts, doc.Started.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if !doc.Complete {
		parts = append(parts, "not complete")
	}
	return strings.Join(parts, ", ")
}

// Plan says what each trial was: "UDP up at full rate; 8 sizes, 3 trials
// of 3 s each after 500 ms of warm-up".
func Plan(doc model.Document) string {
	var parts []string
	var levels []string
	paced := false    // by a factor, so that the flow's own rate means nothing
	controls := false // likewise the flow's own control
	for _, f := range doc.Plan.Factors {
		controls = controls || f.Knob == "control"
		paced = paced || f.Knob == "rate_pps" || f.Knob == "interval_ns"
		if len(f.Levels) > 1 {
			levels = append(levels, fmt.Sprintf("%d %s", len(f.Levels), knobPlural(f.Knob)))
		}
	}
	for _, f := range doc.Plan.Flows {
		if controls {
			f.Control = ""
		}
		parts = append(parts, flowWords(f, paced))
	}
	if n := len(doc.Plan.Design.Cells); n > 0 && len(parts) > 0 { // each says its own flows
		parts = []string{fmt.Sprintf("%d settings", n)}
	}
	t := doc.Plan.Timing
	if len(parts) == 0 || t.MeasureSeconds <= 0 {
		return engineWords(doc)
	}
	size := Each(doc.Plan)
	if n := doc.Plan.Flows[0].Packets; n > 0 {
		size = unit.FormatCount(n) + " packets"
		if doc.Plan.Receivers > 1 {
			size += " to each receiver"
		}
	}
	trials := fmt.Sprintf("%d trials of %s", doc.Plan.Design.Repeats, size)
	if most := doc.Plan.Design.MostRepeats; most > doc.Plan.Design.Repeats {
		trials = fmt.Sprintf("%d to %d trials of %s", doc.Plan.Design.Repeats, most, size)
	}
	if max(doc.Plan.Design.Repeats, doc.Plan.Design.MostRepeats) <= 1 {
		trials = size
	}
	if t.WarmupSeconds > 0 {
		trials += " after " + Seconds(t.WarmupSeconds) + " of warm-up"
	}
	text := strings.Join(append([]string{strings.Join(parts, " and ")}, append(levels, trials)...), ", ")
	if reason := engineWords(doc); reason != "" {
		text += "; " + reason
	}
	return text
}

// Each says how long each trial is: "3 s each", "1 000 packets each".
func Each(p model.Plan) string {
	if len(p.Flows) > 0 && p.Flows[0].Packets > 0 {
		return unit.FormatCount(p.Flows[0].Packets) + " packets each"
	}
	if len(p.Flows) > 0 && p.Flows[0].Bytes > 0 {
		return Bytes(p.Flows[0].Bytes) + " each, within " + Seconds(p.Timing.MeasureSeconds)
	}
	return Seconds(p.Timing.MeasureSeconds) + " each"
}

func knobPlural(knob string) string {
	switch knob {
	case "payload_bytes":
		return "payload sizes"
	case "frame_bytes":
		return "frame sizes"
	case "rate_pps":
		return "offered rates"
	case "interval_ns":
		return "intervals"
	case "streams":
		return "numbers of streams"
	case "receivers":
		return "numbers of receivers"
	case "send_buffer_bytes":
		return "send buffers"
	case "receive_buffer_bytes":
		return "receive buffers"
	case "profile":
		return "profiles"
	case "loss_ratio":
		return "loss ratios"
	case "direction":
		return "directions"
	case "control":
		return "congestion controls"
	}
	if what, _, link := model.LinkKnobWords(knob, model.Value{}); link {
		return "levels of " + Name(what)
	}
	return "levels of " + Name(knob)
}

// flowWords says one flow's profile: "UDP up at 150kpps, 4 streams".
func flowWords(f model.Flow, paced bool) string {
	text := strings.ToUpper(Name(string(f.Protocol))) + " " + Name(f.Name)
	switch {
	case paced:
	case f.Protocol == model.TCP && f.Bulk:
		text += " in bulk"
		if f.Commands != nil {
			text = "the user's own transfer " + Name(f.Name)
		} else if f.HTTP {
			text += " over HTTP"
		}
	case f.Rate.IsMax():
		text += " at full rate"
	default:
		text += " at " + f.Rate.String() + profileWords(f)
	}
	if f.Streams > 1 {
		text += fmt.Sprintf(", %d streams", f.Streams)
	}
	if f.Control != "" {
		text += ", " + Plain(f.Control)
	}
	if f.StaggerSeconds > 0 {
		text += ", each " + Seconds(f.StaggerSeconds) + " after the one before"
	}
	if f.DSCP > 0 {
		text += fmt.Sprintf(", DSCP %d", f.DSCP)
	}
	if f.DontFragment {
		text += ", not fragmented"
	}
	return text
}

// engineWords names the engines that really ran, once each.
func engineWords(doc model.Document) string {
	seen := map[string]bool{}
	for _, r := range doc.Results {
		if r.Engine != "" {
			seen[Shorten(Plain(r.Engine), 40)] = true
		}
	}
	if len(seen) == 0 {
		return ""
	}
	return "engine " + strings.Join(sortedKeys(seen), ", ")
}

// Way is a path's nodes in travel order; of very many, the first and the last.
func Way(nodes []string) string {
	const most = 8
	if n := len(nodes); n > most {
		nodes = append(slices.Clone(nodes[:3]), "…", nodes[n-1])
	}
	return strings.Join(nodes, " – ")
}

// Path says where it ran: "desk (192.168.1.20) to nas (192.168.2.5)".
func Path(doc model.Document) string {
	if doc.Lab != nil {
		nodes := make([]string, len(doc.Lab.Nodes))
		for i, n := range doc.Lab.Nodes {
			nodes[i] = Name(n)
		}
		return "lab " + Name(doc.Lab.Topology) + ": " + Way(nodes)
	}
	var ends []string
	for _, node := range []string{model.Sender, model.Receiver} {
		for _, h := range doc.Host {
			if h.Node != node {
				continue
			}
			text := Name(h.Name)
			if h.Address != "" {
				text += " (" + Plain(h.Address) + ")"
			}
			ends = append(ends, strings.TrimSpace(text))
		}
	}
	return strings.Join(ends, " to ")
}

func Lab(doc model.Document) []string {
	if doc.Lab == nil {
		return nil
	}
	var lines []string
	for _, b := range doc.Lab.Backends {
		lines = append(lines, Plain(b))
	}
	for _, c := range doc.Lab.Links {
		lines = append(lines, calibrated(c))
	}
	return lines
}

// calibrated says what probes found of emulated links, as
// "measured before the test, a to b: loss 0.98 % (0.7 % to 1.4 %, expected 1 %), ...".
func calibrated(c model.LinkCalibration) string {
	way := Plain(c.From) + " to " + Plain(c.To)
	if c.Directions > 1 {
		way += fmt.Sprintf(" and %d more", c.Directions-1)
	}
	var parts []string
	say := func(what string, g *model.Gauged, form func(float64) string) {
		if g != nil {
			parts = append(parts, fmt.Sprintf("%s %s (%s to %s; expected %s)", what, form(g.Value), form(g.Low), form(g.High), form(g.Expected)))
		}
	}
	say("loss", c.Loss, unit.FormatRatio)
	say("delay", c.DelayP50, seconds)
	if c.DelayP5 != nil && c.DelayP95 != nil && c.DelayKS != nil {
		parts = append(parts, fmt.Sprintf("90 %% of delays %s to %s (expected %s to %s)",
			seconds(c.DelayP5.Value), seconds(c.DelayP95.Value), seconds(c.DelayP5.Expected), seconds(c.DelayP95.Expected)))
	}
	say("rate", c.Rate, unit.FormatBits)
	for _, u := range c.Unmeasured {
		parts = append(parts, "not measured: "+Plain(u))
	}
	return fmt.Sprintf("measured before the test, %s: %s", way, strings.Join(parts, ", "))
}

func seconds(s float64) string { return unit.FormatNanos(s * 1e9) }

// Phrases splits text where a line may break: never between a number and its unit, or
// within a number whose thousands stand apart.
func Phrases(text string) []string {
	var out []string
	for _, word := range strings.Fields(text) {
		last := len(out) - 1
		if last >= 0 && strings.ContainsAny(out[last][len(out[last])-1:], "0123456789") && (isUnit(strings.TrimRight(word, ",.;:)")) || isGroup(out[last], strings.TrimRight(word, ",.;:)"))) {
			out[last] += " " + word
			continue
		}
		out = append(out, word)
	}
	return out
}

// isGroup reports whether a word goes on with the number that a text ends with.
func isGroup(text, word string) bool {
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	head := strings.TrimLeft(text[strings.LastIndexByte(text, ' ')+1:], "(")
	return len(word) == 3 && digits(word) && len(head) <= 3 && digits(head)
}

func isUnit(word string) bool {
	switch word {
	case "unattributed", "%", "B", "s", "ms", "µs", "ns", "min", "h", "pps", "kpps", "Mpps", "Gpps", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "KiB/s":
		return true
	}
	return false
}
