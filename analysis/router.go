package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
	"pelt/unit"
)

// isRouter reports whether a run is a router's bench: rates beside its processors.
func isRouter(doc model.Document) bool { return doc.Plan.Command == "router" }

// benched is one row of a bench: the valid trials of a cell.
type benched struct {
	variant, direction string
	tcp                bool
	idle               bool // of a low rate, for the delay of the idle path
	frame              int  // bytes; 0 of TCP
	family             int  // 4 or 6
	asked              bool // a rate was asked
	trials             []model.Result

	pps, goodput float64 // of all flows together, means
	loss         float64 // ratio, over all repeats
	wire         float64 // bit/s of frames in the direction that has most; 0 of TCP
	p50, p99     float64 // of the delay in seconds, means of the flow that has most; NaN if there is none
	roundTrip    bool    // that is one of round trips
	busy         busyness
}

// busyness is what the router's processors did, means over the repeats.
type busyness struct {
	known        bool
	all          model.CPUSplit
	core         model.CPUSplit // the busiest of each trial; its number is -1 where it is not always the same
	cores        int
	thread       float64 // of a lab's router: its busiest own thread, ratio of a core; NaN if it has none
	lab          bool
	kernel       float64 // share of the received packets that a lab's router forwarded in its kernel's usual way; NaN of others
	busyPercents float64 // percents of all its processors' time; of a lab, of one core
}

// bench groups a document's valid trials, in the order of the plan.
func bench(doc model.Document) []benched {
	var rows []benched
	for _, c := range doc.Plan.Design.Cells {
		if c["connections"].Text != "" { // see routerConnections
			continue
		}
		b := benched{variant: c["variant"].Text, direction: c["direction"].Text, tcp: c["protocol"].Text == string(model.TCP), frame: int(c["frame_bytes"].Number)}
		_, b.idle = c["rate_pps"]
		b.asked = b.idle || !b.tcp && len(doc.Plan.Flows) > 0 && !doc.Plan.Flows[0].Rate.IsMax()
		for _, r := range doc.Results {
			if r.State == model.Valid && r.Cell.Equal(c) {
				b.trials = append(b.trials, r)
			}
		}
		if len(b.trials) > 0 {
			b.sum(doc)
			rows = append(rows, b)
		}
	}
	return rows
}

func (b *benched) sum(doc model.Document) {
	n := float64(len(b.trials))
	var attempted, lost, p50s, p99s float64
	for _, t := range b.trials {
		wire, p50, p99 := 0.0, math.NaN(), math.NaN()
		for _, f := range t.Flows {
			b.family = familyOf(f)
			b.pps += f.ReceivePPS / n
			b.goodput += f.GoodputBPS / n
			attempted += float64(f.Attempted)
			lost += float64(f.Lost)
			wire = max(wire, f.ReceivePPS*8*float64(f.FrameBytes))
			d := f.Delay
			if d == nil {
				d = f.RoundTrip
				b.roundTrip = d != nil
			}
			if d != nil && !(d.P50/1e9 <= p50) {
				p50, p99 = d.P50/1e9, d.P99/1e9
			}
		}
		if !b.tcp {
			b.wire += wire / n
		}
		p50s, p99s = p50s+p50, p99s+p99
	}
	b.p50, b.p99 = p50s/n, p99s/n
	b.loss = lost / max(attempted, 1)
	b.busy = busied(doc, b.trials)
}

func busied(doc model.Document, trials []model.Result) busyness {
	b := busyness{thread: math.NaN(), kernel: math.NaN(), lab: strings.HasPrefix(doc.Plan.Target, "lab:")}
	var watched, threads, told float64
	var forwarded, received, cored float64
	cores := map[int]bool{}
	for _, t := range trials {
		w := t.Router
		if w == nil {
			continue
		}
		if w.ThreadRatio != nil {
			if math.IsNaN(b.thread) {
				b.thread = 0
			}
			b.thread += *w.ThreadRatio
			threads++
		}
		if n, ok := forwardedBy(t, w.Node); ok && b.lab && doc.Plan.Target != "lab:switch" {
			forwarded += n
			for _, f := range t.Flows {
				received += float64(f.Received)
			}
			told++
		}
		if w.CPU == nil {
			continue
		}
		watched++
		addSplit(&b.all, *w.CPU)
		var busiest model.CPUSplit
		for i, c := range w.Cores {
			cores[c.Core] = true
			if i == 0 || c.Busy() > busiest.Busy() {
				busiest = c
			}
		}
		if len(w.Cores) > 0 {
			if cored++; cored == 1 {
				b.core.Core = busiest.Core
			} else if b.core.Core != busiest.Core {
				b.core.Core = -1
			}
			addSplit(&b.core, busiest)
		}
	}
	if threads > 0 {
		b.thread /= threads
	}
	if told > 0 && received > 0 {
		b.kernel = forwarded / received
	}
	if watched == 0 {
		return b
	}
	b.known, b.cores = true, len(cores)
	b.all = scaled(b.all, 1/watched)
	b.core = scaled(b.core, 1/max(cored, 1))
	b.busyPercents = 100 * b.all.Busy()
	if b.lab {
		b.busyPercents = 100 * b.thread
	}
	return b
}

// forwardedBy is how many packets the kernel of a node forwarded in a trial, by its
// own count; ok is false where it does not forward IP.
func forwardedBy(t model.Result, node string) (n float64, ok bool) {
	for _, c := range t.Counters {
		if c.Host == node && !c.Reset && (c.Name == "Ip.ForwDatagrams" || c.Name == "Ip6.OutForwDatagrams") {
			n, ok = n+float64(c.Measure), true
		}
	}
	return n, ok
}

func addSplit(to *model.CPUSplit, c model.CPUSplit) {
	to.User, to.System, to.Nice, to.Idle = to.User+c.User, to.System+c.System, to.Nice+c.Nice, to.Idle+c.Idle
	to.IOWait, to.IRQ, to.Softirq, to.Steal = to.IOWait+c.IOWait, to.IRQ+c.IRQ, to.Softirq+c.Softirq, to.Steal+c.Steal
}

func scaled(c model.CPUSplit, by float64) model.CPUSplit {
	c.User, c.System, c.Nice, c.Idle = c.User*by, c.System*by, c.Nice*by, c.Idle*by
	c.IOWait, c.IRQ, c.Softirq, c.Steal = c.IOWait*by, c.IRQ*by, c.Softirq*by, c.Steal*by
	return c
}

// router draws the findings of a bench.
func router(doc model.Document) []model.Finding {
	rows := bench(doc)
	a := &analyst{doc: doc}
	if len(rows) == 0 {
		if text := a.routerConnections(); text != "" {
			first := model.Finding{Kind: KindVerdict, Text: text, Values: map[string]float64{}}
			a.lab()
			a.invalid()
			return append([]model.Finding{first}, a.found...)
		}
		return a.nothing()
	}
	a.routerLimits(rows)
	a.routerSizes(rows)
	a.routerCost(rows)
	a.routerDelay(rows)
	a.routerLoss(rows)
	a.changed()
	connections := a.routerConnections()
	a.engines()
	a.lab()
	a.invalid()
	a.routerRepeats(rows)
	values := map[string]float64{}
	for _, b := range rows {
		values[b.slug()+"_pps"], values[b.slug()+"_goodput_bps"] = b.pps, b.goodput
	}
	first := model.Finding{Kind: KindVerdict, Text: strings.TrimSpace(a.routerVerdict(rows) + " " + connections), Values: values}
	return append([]model.Finding{first}, a.found...)
}

// across names a direction as people who own a router do.
func across(direction string) string {
	switch direction {
	case "up":
		return "LAN to WAN"
	case "down":
		return "WAN to LAN"
	}
	return "both ways at once"
}

// load names what was sent.
func (b benched) load() string {
	if b.tcp {
		return "TCP"
	}
	return fmt.Sprintf("%d B", b.frame)
}

func (b benched) slug() string {
	text := b.variant + " " + b.direction + " " + b.load()
	if b.tcp {
		text = b.variant + " " + b.direction + " tcp"
	}
	if b.idle {
		text += " idle"
	}
	return slug(strings.TrimSpace(text))
}

// speed is a row's rate in the unit that says most of it.
func (b benched) speed() string {
	if b.tcp || b.frame >= largeFrame {
		return unit.FormatBits(b.goodput)
	}
	return unit.FormatPPS(b.pps)
}

// largeFrame is from where on people ask for bits rather than packets, in bytes.
const largeFrame = 1024

// routerVerdict says what each way to set the router up carries in the first direction.
func (a *analyst) routerVerdict(rows []benched) string {
	direction := rows[0].direction
	var variants []string
	parts := map[string][]string{}
	for _, b := range rows {
		if b.idle || b.direction != direction {
			continue
		}
		if !slices.Contains(variants, b.variant) {
			variants = append(variants, b.variant)
		}
		text := b.speed() + " at " + b.load()
		if b.tcp {
			text = b.speed() + " of TCP"
		}
		parts[b.variant] = append(parts[b.variant], text)
	}
	if len(variants) == 0 {
		return sentence(across(direction)) + " only the delay of the idle path was measured."
	}
	name := "This router"
	switch f := a.doc.Router; {
	case f != nil && f.Model != "":
		name = f.Model
	case strings.HasPrefix(a.doc.Plan.Target, "lab:"):
		name = a.doc.Plan.Target
	}
	var all []string
	for _, v := range variants {
		text := fewest(parts[v])
		if v != "" {
			text = v + ": " + text
		}
		all = append(all, text)
	}
	colon := ""
	if variants[0] != "" {
		colon = ":"
	}
	text := fmt.Sprintf("%s carries%s %s, %s", name, colon, strings.Join(all, "; "), across(direction))
	if limit := a.limitOf(rows, direction); limit != "" {
		text += ". " + sentence(limit)
	}
	return text + "."
}

// fewest keeps the first and the last two of a list.
func fewest(parts []string) string {
	if len(parts) > 3 {
		parts = append(parts[:1:1], parts[len(parts)-2:]...)
	}
	return say.And(parts)
}

// routerDelay sets the delay of the loaded path beside that of the idle one.
func (a *analyst) routerDelay(rows []benched) {
	values := map[string]float64{}
	var text []string
	for _, idle := range rows {
		if !idle.idle || math.IsNaN(idle.p50) {
			continue
		}
		values[idle.slug()+"_delay_p50_s"], values[idle.slug()+"_delay_p99_s"] = idle.p50, idle.p99
		what := "delay"
		if idle.roundTrip {
			what = "round trip"
		}
		one := fmt.Sprintf("%s: %s of the idle path %s, 99 %% within %s", named(idle.variant, across(idle.direction)), what, duration(idle.p50), duration(idle.p99))
		var worst *benched
		for _, b := range rows {
			if b.idle || b.variant != idle.variant || b.direction != idle.direction || math.IsNaN(b.p50) || b.roundTrip != idle.roundTrip {
				continue
			}
			values[b.slug()+"_delay_p50_s"], values[b.slug()+"_delay_p99_s"] = b.p50, b.p99
			if worst == nil || b.p50 > worst.p50 {
				worst = &b
			}
		}
		if worst != nil {
			one += fmt.Sprintf("; under full load at most %s (%s), 99 %% within %s", duration(worst.p50), worst.load(), duration(worst.p99))
		}
		text = append(text, one)
	}
	if len(text) > 0 {
		a.add(KindRouterDelay, values, "%s.", sentence(strings.Join(text, "; ")))
	}
}

func named(variant, text string) string {
	if variant == "" {
		return text
	}
	return variant + ", " + text
}

// duration prints seconds with three digits.
func duration(s float64) string {
	switch {
	case s < 1e-6:
		return fmt.Sprintf("%.3g ns", s*1e9)
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

// routerLoss says where the packets of UDP beyond the limit ended: those of one
// cause together.
func (a *analyst) routerLoss(rows []benched) {
	values := map[string]float64{}
	said := map[string][]string{}
	var order []string
	for _, b := range rows {
		if b.tcp || b.loss < losslessRatio {
			continue
		}
		values[b.slug()+"_loss_ratio"] = b.loss
		p := point{loss: b.loss}
		for _, t := range b.trials {
			for _, f := range t.Flows {
				p.trials = append(p.trials, trial{t.Repeat, t.Engine, f})
			}
		}
		cause := causes([]point{p})
		if said[cause] == nil {
			order = append(order, cause)
		}
		said[cause] = append(said[cause], fmt.Sprintf("%s %s", named(b.variant, across(b.direction)+" "+b.load()), unit.FormatRatio(b.loss)))
	}
	for i, cause := range order {
		if i > 0 {
			values = nil // once is enough
		}
		list := said[cause]
		if n := len(list); n > 4 {
			list = append(list[:3:3], fmt.Sprintf("%d others", n-3))
		}
		a.add(KindLoss, values, "Lost %s: %s.", say.And(list), cause)
	}
}

func (a *analyst) routerRepeats(rows []benched) {
	few := 0
	for _, b := range rows {
		if len(b.trials) < 2 {
			few++
		}
	}
	if few == 0 {
		return
	}
	text := fmt.Sprintf("%d of %d rows were measured only once", few, len(rows))
	if few == len(rows) {
		text = "Each row was measured only once"
	}
	a.add(KindTooFewRepeats, map[string]float64{"rows": float64(few)}, "%s: how much the rates vary is unknown; --repeats 3 tells, and pelt compare needs it.", text)
}

// routerDoubts are doubts about the watch over the router, one line each.
func routerDoubts(doc model.Document) []string {
	var list []string
	count := map[string]int{}
	unwatched := 0
	for _, r := range doc.Results {
		if r.Router == nil {
			continue
		}
		if r.Router.CPU == nil {
			unwatched++
		}
		for _, g := range r.Router.Gaps {
			if count[g]++; count[g] == 1 {
				list = append(list, g)
			}
		}
	}
	for i, g := range list {
		list[i] = fmt.Sprintf("router %s (%d of %d trials)", g, count[g], len(doc.Results))
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(b, a) })
	if n := len(list); n > 3 {
		list = append(list[:3:3], fmt.Sprintf("router: %d other gaps in its watch, which the trials name", n-3))
	}
	if unwatched > 0 {
		list = append(list, fmt.Sprintf("the router's processors are not known in %d of %d trials: what limited these is not told from its side", unwatched, len(doc.Results)))
	}
	return list
}
