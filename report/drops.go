package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/unit"
)

// DropsView shows what a host drops as it goes on. It keeps what it was given;
// it is for one goroutine.
type DropsView struct {
	what    string // the traffic that is watched, in words
	all     bool
	known   map[string]model.LiveDrop
	seconds float64
	now     model.LiveDrops
}

// NewDropsView makes an empty one; what names the traffic that is watched. all
// shows ordinary drops one by one: else they are counted in one line.
func NewDropsView(what string, all bool) *DropsView {
	return &DropsView{what: what, all: all, known: map[string]model.LiveDrop{}}
}

// Add takes what an interval brought.
func (v *DropsView) Add(d model.LiveDrops) {
	v.now = d
	v.seconds += d.IntervalS
	for k, x := range v.known {
		x.PPS, x.Packets, x.Bytes = 0, 0, 0
		v.known[k] = x
	}
	for _, x := range d.Drops {
		v.known[dropIdentity(x)] = x
	}
}

func dropIdentity(x model.LiveDrop) string {
	return strings.Join([]string{x.Layer, x.Reason, x.Function, x.Interface, x.Namespace, x.Protocol, x.From, x.To, icmpWords(x), fmt.Sprint(x.Received, x.Rest)}, "\x00")
}

// Table is the state as lines for a terminal of that width, at most so many.
func (v *DropsView) Table(width, lines int, colour bool) string {
	s := newScreen(width, colour)
	s.wrap(styleBold, "", v.heading())
	foot := v.feet()
	shown, ordinary := v.split()
	room := max(lines-strings.Count(s.text.String(), "\n")-2-len(foot), 1)
	if ordinary.Total > 0 {
		room--
	}
	more := model.LiveDrop{}
	hidden := 0
	if len(shown) > room {
		room = max(room-1, 1)
		hidden = len(shown) - room
		for _, x := range shown[room:] {
			more.PPS += x.PPS
			more.Total += x.Total
		}
		shown = shown[:room]
	}
	s.dropRows(shown, true)
	if hidden > 0 {
		s.clipped(styleDim, fmt.Sprintf("and %d more: %s, %s in all", hidden, unit.FormatPPS(more.PPS), unit.FormatCount(more.Total)))
	}
	if ordinary.Total > 0 {
		s.clipped(styleDim, fmt.Sprintf("ordinary: %s, %s in all (copies for taps, TCP's old segments, neighbour discovery, messages within the host); --all lists them",
			unit.FormatPPS(ordinary.PPS), unit.FormatCount(ordinary.Total)))
	}
	for _, f := range foot {
		s.clipped(styleYellow, f)
	}
	all := strings.SplitAfter(s.text.String(), "\n")
	return strings.Join(all[:min(len(all), lines)], "")
}

// clipped writes one line, cut to the width: a line that wraps would break the
// redrawing.
func (s *screen) clipped(style, text string) { s.line(style, words.Shorten(text, s.width)) }

func (v *DropsView) heading() string {
	text := "pelt drops, " + v.what + ": "
	if v.now.Total == 0 {
		return text + fmt.Sprintf("nothing dropped in %s", words.Seconds(float64(int(v.seconds+0.5))))
	}
	pps := 0.0
	if v.now.IntervalS > 0 {
		pps = float64(v.now.Packets) / v.now.IntervalS
	}
	return text + fmt.Sprintf("%s now, %s in %s", unit.FormatPPS(pps), packetCount(v.now.Total), words.Seconds(float64(int(v.seconds+0.5))))
}

// feet tell what the watch could not see.
func (v *DropsView) feet() []string { return unseen(v.now) }

func unseen(d model.LiveDrops) []string {
	var list []string
	if d.SitesLost > 0 {
		list = append(list, packetCount(d.SitesLost)+" beside: their places found no room in the table")
	}
	if d.Unwatched > 0 {
		list = append(list, "not seen: "+unit.FormatCount(d.Unwatched)+" drops that happened while the watch was busy on that processor")
	}
	if d.Why != "" {
		list = append(list, words.Plain(d.Why))
	}
	return list
}

// split sorts the entries by rate, and sums up the ordinary ones.
func (v *DropsView) split() (shown []model.LiveDrop, ordinary model.LiveDrop) {
	for _, x := range v.known {
		if x.Ordinary && !v.all {
			ordinary.PPS += x.PPS
			ordinary.Total += x.Total
			ordinary.Packets += x.Packets
			continue
		}
		shown = append(shown, x)
	}
	slices.SortFunc(shown, func(a, b model.LiveDrop) int {
		return cmp.Or(cmp.Compare(b.PPS, a.PPS), cmp.Compare(b.Total, a.Total), strings.Compare(dropIdentity(a), dropIdentity(b)))
	})
	return shown, ordinary
}

// dropRows writes the table of entries; live adds the rate of the moment.
func (s *screen) dropRows(all []model.LiveDrop, live bool) {
	if len(all) == 0 {
		return
	}
	column := func(head string, drop int, left bool, cell func(model.LiveDrop) string) field {
		f := field{head: head, drop: drop, left: left}
		for _, x := range all {
			f.cells = append(f.cells, words.Shorten(cell(x), 36))
		}
		return f
	}
	rate := column("now", 0, false, func(x model.LiveDrop) string {
		if x.PPS == 0 {
			return "–"
		}
		return unit.FormatPPS(x.PPS)
	})
	fields := []field{
		column("dropped", 0, false, func(x model.LiveDrop) string { return unit.FormatCount(x.Total) }),
		column("layer", 3, true, func(x model.LiveDrop) string { return cmp.Or(words.Name(x.Layer), "copy") }),
		column("reason", 0, true, func(x model.LiveDrop) string {
			if x.Reason == "NOT_SPECIFIED" && x.Function != "" && s.width < 110 {
				return "in " + words.Name(x.Function) // its own column has no room then
			}
			return words.Name(x.Reason)
		}),
		column("function", 4, true, func(x model.LiveDrop) string { return words.Name(x.Function) }),
		column("namespace", 6, true, func(x model.LiveDrop) string { return words.Name(x.Namespace) }),
		column("interface", 5, true, func(x model.LiveDrop) string { return words.Name(x.Interface) }),
	}
	if live {
		fields = append([]field{rate}, fields...)
	}
	const gap = "  "
	least := 0
	for _, x := range all {
		least = max(least, min(len([]rune(flowWords(x))), 38))
	}
	fields = fit(fields, s.width-least-len(gap)*4)
	used := 0
	for _, f := range fields {
		used += f.width() + len(gap)
	}
	flow := field{head: "flow", left: true}
	for _, x := range all {
		flow.cells = append(flow.cells, words.Shorten(flowWords(x), max(s.width-used, 8)))
	}
	fields = append(fields, flow)
	s.clipped(styleDim, lay(fields, func(f field) string { return f.head }, gap))
	for i, x := range all {
		style := ""
		if live && x.PPS == 0 {
			style = styleDim
		}
		s.clipped(style, lay(fields, func(f field) string { return f.cells[i] }, gap))
	}
}

// flowWords is "udp 10.0.0.1:5201 > 10.0.0.2:40000".
func flowWords(x model.LiveDrop) string {
	if x.Rest {
		return "flows beyond the table's room"
	}
	text := words.Name(x.Protocol)
	if x.From != "" || x.To != "" {
		text += " " + words.Plain(x.From) + " > " + words.Plain(x.To)
	}
	if i := icmpWords(x); i != "" {
		text += " " + i
	}
	return strings.TrimSpace(text)
}

func icmpWords(x model.LiveDrop) string {
	if x.ICMPType == nil || x.ICMPCode == nil {
		return ""
	}
	return fmt.Sprintf("type %d code %d", *x.ICMPType, *x.ICMPCode)
}

// mostLines bounds the entries of one interval where lines are only appended.
const mostLines = 20

// Lines is what the last interval brought, as lines to be appended to a log; ""
// if nothing was dropped.
func (v *DropsView) Lines() string {
	var b strings.Builder
	at := v.now.At.Local().Format("15:04:05")
	n, rest := 0, model.LiveDrop{}
	for _, x := range v.now.Drops {
		if x.Ordinary && !v.all {
			continue
		}
		if n++; n > mostLines {
			rest.PPS += x.PPS
			rest.Packets += x.Packets
			continue
		}
		place := strings.TrimSpace(words.Name(x.Namespace) + " " + words.Name(x.Interface))
		fmt.Fprintf(&b, "%s  %s  %s  %s  %s  %s  %s\n", at, unit.FormatPPS(x.PPS), packetCount(x.Packets),
			strings.TrimSpace(cmp.Or(words.Name(x.Layer), "copy")+" "+words.Name(x.Reason)), cmp.Or(words.Name(x.Function), "–"), cmp.Or(place, "–"), flowWords(x))
	}
	if n > mostLines {
		fmt.Fprintf(&b, "%s  %s  %s  %d more places or flows\n", at, unit.FormatPPS(rest.PPS), packetCount(rest.Packets), n-mostLines)
	}
	return b.String()
}

// DropsSum writes what a whole watch saw, the most first, and what it could not see.
func DropsSum(w io.Writer, d model.LiveDrops, what string, all bool, width int, colour bool) error {
	v := NewDropsView(what, all)
	v.Add(d)
	s := newScreen(width, colour)
	span := words.Seconds(float64(int(d.IntervalS*10+0.5)) / 10)
	if d.Packets == 0 {
		s.wrap(styleBold, "", fmt.Sprintf("In %s nothing was dropped: %s.", span, what))
	} else {
		s.wrap(styleBold, "", fmt.Sprintf("In %s this host dropped %s: %s.", span, packetCount(d.Packets), what))
	}
	shown, ordinary := v.split()
	s.dropRows(shown, false)
	if ordinary.Total > 0 {
		s.wrap(styleDim, "", fmt.Sprintf("Beside them %s in the ordinary course (copies for taps, TCP's old segments, neighbour discovery, messages within the host); --all lists them.", packetCount(ordinary.Total)))
	}
	for _, f := range unseen(d) {
		s.wrap(styleYellow, "! ", f)
	}
	if err := s.flush(w); err != nil {
		return fmt.Errorf("writing the drops: %w", err)
	}
	return nil
}

// DropsJSON writes one interval as one line.
func DropsJSON(w io.Writer, d model.LiveDrops) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(model.Finite(d)); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}
