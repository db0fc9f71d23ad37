package report

import (
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// picture is a drawing of the path with its losses, as the template writes it.
// It needs no script, and its colours are classes that follow the page's.
type picture struct {
	Width, Height string
	Class         string // wide or tall
	Shapes        []shape
}

// shape is one element: a path if D is set, a box if Width is, else a text.
type shape struct {
	Class         string
	D             string
	X, Y          string
	Width, Height string
	Anchor        string // of a text: start, middle, end
	Text          string
	Beside        string // a quieter text behind it
	Stroke        string // width of a path that is a line
	Title         string // what a pointer resting on it is told
}

// canvas collects the shapes of one picture.
type canvas struct{ shapes []shape }

func px(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func (c *canvas) box(class string, x, y, width, height float64) {
	c.shapes = append(c.shapes, shape{Class: class, X: px(x), Y: px(y), Width: px(width), Height: px(height)})
}

func (c *canvas) text(class, anchor string, x, y float64, text string) {
	if text != "" {
		c.shapes = append(c.shapes, shape{Class: class, Anchor: anchor, X: px(x), Y: px(y), Text: text})
	}
}

// pair writes a text and a quieter one behind it.
func (c *canvas) pair(class string, x, y float64, text, beside string) {
	c.shapes = append(c.shapes, shape{Class: class, Anchor: "start", X: px(x), Y: px(y), Text: text, Beside: beside})
}

// bold is how much wider bold letters are.
const bold = 1.12

// path takes letters and numbers of an SVG path in turn.
func (c *canvas) path(class, title string, words ...any) {
	c.shapes = append(c.shapes, shape{Class: class, D: pathData(words...), Title: title})
}

// fall draws a loss: a line as wide as its share, and an arrow's head.
func (c *canvas) fall(l *loss, width float64, line, head []any) {
	class := l.class
	if l.line < 0 && width < 8 {
		class += " unknown" // dashed; a broad one says it by its label
	}
	c.path("fall "+class, l.percent+" "+l.text, line...)
	c.shapes[len(c.shapes)-1].Stroke = px(width)
	c.path("head "+class, "", head...)
}

func pathData(words ...any) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch w := w.(type) {
		case string:
			b.WriteString(w)
		case float64:
			b.WriteString(px(w))
		}
	}
	return b.String()
}

// stop is a place on the path where packets may end: a layer of an end, a node
// between, or the wire. Stops come in travel order.
type stop struct {
	name   string
	losses []loss
}

// loss is one cause at a stop.
type loss struct {
	share   float64 // of the attempted packets, 0..1
	class   string  // its colour
	percent string
	packets string
	text    string
	line    int // index in the row's ledger; -1 for what is unattributed
}

// station is a node with its stops, or a wire between two nodes.
type station struct {
	name   string // "" for a wire
	about  string // how it was observed
	unseen bool   // nothing is known of it
	stops  []stop
}

func (s station) lossy() bool {
	for _, x := range s.stops {
		if len(x.losses) > 0 {
			return true
		}
	}
	return false
}

// route is the path of one flow as it is drawn.
type route struct {
	stations []station
	rest     *loss // what is unattributed, nil if nothing is
	sent     string
	arrived  string
	share    string // that arrived, in words
	got      float64
}

// layerNames are short names of the layers, for a narrow place.
var layerNames = map[string]string{
	model.LayerSendCall: "send", model.LayerSenderQdisc: "queue", model.LayerSenderDevice: "card",
	model.LayerReceiverRing: "ring", model.LayerReceiverXDP: "XDP", model.LayerReceiverTC: "tc", model.LayerReceiverBacklog: "backlog",
	model.LayerReceiverFilter: "filter", model.LayerReceiverIP: "IP", model.LayerReceiverUDP: "UDP", model.LayerReceiverMemory: "memory",
	model.LayerReceiverBuffer: "buffer", model.LayerApplication: "program",
}

// newRoute places a row's losses on its path. classes are the colours of
// causes by their words.
func newRoute(doc model.Document, r rows.Row, classes map[string]string) route {
	out := route{sent: unit.FormatCount(r.Attempted), arrived: unit.FormatCount(r.Attempted - min(r.Lost, r.Attempted)), got: 1}
	if ratio, ok := r.LossRatio(); ok {
		out.got = max(0, 1-ratio)
		out.share = arrivedShare(r)
	}
	at := map[[2]string][]loss{} // layer, and host of those in the network
	for _, p := range words.LossParts(r) {
		l := loss{share: p.Ratio, class: classes[p.Words], percent: p.Amount(), packets: packetCount(p.Packets), text: p.Words, line: p.Line}
		if p.Line < 0 {
			out.rest = &l
			continue
		}
		line := r.Ledger.Lines[p.Line]
		key := [2]string{line.Layer, ""}
		if line.Layer == model.LayerNetwork {
			key[1] = line.Host
		}
		at[key] = append(at[key], l)
	}
	take := func(layer, host string) []loss {
		found := at[[2]string{layer, host}]
		delete(at, [2]string{layer, host})
		return found
	}
	for i, node := range r.Nodes {
		s := station{name: words.Name(node)}
		s.about, s.unseen = watchedBriefly(r, node)
		switch i {
		case 0:
			s.name = endName(doc, node)
			for _, layer := range []string{model.LayerSendCall, model.LayerSenderQdisc, model.LayerSenderDevice} {
				s.stops = append(s.stops, stop{layerNames[layer], take(layer, "")})
			}
		case len(r.Nodes) - 1:
			s.name = endName(doc, node)
			for _, layer := range model.Layers()[4:] {
				s.stops = append(s.stops, stop{layerNames[layer], take(layer, "")})
			}
		default:
			s.stops = []stop{{"", take(model.LayerNetwork, node)}}
		}
		if i > 0 {
			before := r.Nodes[i-1]
			link := take(model.LayerNetwork, "link "+before+"-"+node)
			link = append(link, take(model.LayerNetwork, "link "+node+"-"+before)...)
			out.stations = append(out.stations, station{stops: []stop{{losses: link}}})
		}
		out.stations = append(out.stations, s)
	}
	// What is left lies between the ends: on the wire, of which there may be
	// several, or at a node that is not drawn.
	wire := &out.stations[len(out.stations)-2].stops[0]
	for _, l := range r.Ledger.Lines {
		key := [2]string{l.Layer, ""}
		if l.Layer == model.LayerNetwork {
			key[1] = l.Host
		}
		wire.losses = append(wire.losses, take(key[0], key[1])...)
	}
	out.stations = joinIdle(out.stations)
	return out
}

// mostBetween is how many nodes between the ends are drawn one by one.
const mostBetween = 2

// joinIdle draws nodes between the ends that lost nothing as one, where there
// are many of them.
func joinIdle(all []station) []station {
	if len(all) <= 3+2*mostBetween {
		return all
	}
	var out []station
	idle, unseen := 0, 0
	flush := func() {
		if idle > 0 {
			s := station{name: strconv.Itoa(idle) + " nodes", stops: []stop{{}}, unseen: unseen > 0}
			if unseen > 0 {
				s.about = strconv.Itoa(unseen) + " not observed"
			}
			out = append(out, s, station{stops: []stop{{}}})
			idle, unseen = 0, 0
		}
	}
	for i := 0; i < len(all); i++ {
		between := i > 0 && i < len(all)-1 && all[i].name != ""
		if between && !all[i].lossy() && !all[i+1].lossy() {
			idle++
			if all[i].unseen {
				unseen++
			}
			i++ // and the wire behind it
			continue
		}
		if all[i].name != "" {
			flush()
		}
		out = append(out, all[i])
	}
	return out
}

// endName is an end with its host's name: "sender, desk".
func endName(doc model.Document, node string) string {
	for _, h := range doc.Host {
		if h.Node == node && h.Name != "" && doc.Lab == nil {
			return words.Name(node) + " · " + words.Shorten(words.Plain(h.Name), 20)
		}
	}
	return words.Name(node)
}

// watchedBriefly says in two words how a node was observed.
func watchedBriefly(r rows.Row, node string) (about string, unseen bool) {
	for _, o := range r.Observed {
		if o.Node != node {
			continue
		}
		switch o.Mode {
		case model.DropsSeq:
			return "each drop seen", false
		case model.DropsCount:
			return "drops counted", false
		case model.DropsOff:
			return "counters only", false
		case "":
			return "not observed", true
		}
	}
	return "", false
}

// arrivedShare is the share that arrived, in words.
func arrivedShare(r rows.Row) string {
	ratio, ok := r.LossRatio()
	switch {
	case !ok:
		return ""
	case r.Lost == 0:
		return "all"
	}
	return unit.FormatRatio(max(0, 1-ratio))
}

// widths gives each loss and what arrived its share of the band, but never less
// than can be seen; together they make up the band.
func (r route) widths(band float64) (losses map[*loss]float64, arrived float64) {
	const least = 3.0
	losses = map[*loss]float64{}
	sum := 0.0
	for _, l := range r.all() {
		losses[l] = max(least, min(l.share, 1)*band)
		sum += losses[l]
	}
	if r.got > 0 {
		arrived = max(least, r.got*band)
	}
	if sum+arrived > band {
		// What arrived gives way first: it is the wide part, unless nearly all was lost.
		arrived = max(min(arrived, least), band-sum)
		if room := band - arrived; sum > room {
			for l := range losses {
				losses[l] *= room / sum
			}
		}
	} else if r.got > 0 {
		arrived = band - sum
	}
	return losses, arrived
}

// all lists the losses in travel order, what is unattributed last.
func (r route) all() []*loss {
	var list []*loss
	for i := range r.stations {
		for j := range r.stations[i].stops {
			for k := range r.stations[i].stops[j].losses {
				list = append(list, &r.stations[i].stops[j].losses[k])
			}
		}
	}
	if r.rest != nil {
		list = append(list, r.rest)
	}
	return list
}

// textWidth estimates how wide a text will be in a common sans-serif font, in
// pixels; no font is at hand here, so it errs to the wide side.
func textWidth(text string, size float64) float64 {
	em := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("iljtfrI.,:;'|()[]-· ", r):
			em += 0.34
		case strings.ContainsRune("mwMW%—…", r):
			em += 0.88
		case strings.ContainsRune("<>=+/\\{}&#~^\"", r):
			em += 0.84
		case r >= 'A' && r <= 'Z', r == '_':
			em += 0.68
		case r >= 0x1100: // wide scripts
			em += 1
		default:
			em += 0.565
		}
	}
	return em * size
}

// wrapText breaks a text into at most so many lines of a width; the last one
// says with an ellipsis that there was more. A word too long is cut.
func wrapText(text string, size, width float64, most int) []string {
	var lines []string
	line := ""
	for _, word := range words.Phrases(text) {
		for textWidth(word, size) > width && len([]rune(word)) > 1 {
			word = words.Shorten(strings.TrimSuffix(word, "…"), len([]rune(strings.TrimSuffix(word, "…")))-1)
		}
		next := strings.TrimSpace(line + " " + word)
		if line != "" && textWidth(next, size) > width {
			lines = append(lines, line)
			next = word
		}
		line = next
	}
	lines = append(lines, line)
	if len(lines) > most {
		lines = append(lines[:most-1], lines[most-1]+" …")
	}
	return lines
}
