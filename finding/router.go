package finding

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/plan"
	"pelt/table"
	"pelt/unit"
)

// routerKind is a bench of a router: what it carries of each traffic, and what that costs it.
func routerKind() Kind {
	return Kind{
		Preset: plan.Router,
		Use:    "router LAN..WAN | HOST | lab:NAME",
		Short:  "Test a router: both directions, UDP sizes and TCP, with the load of its CPU",
		Long: `router sends UDP frames of several sizes and TCP from LAN to WAN, back, and both ways, and
shows what came through beside the load of the router's processors.

LAN..WAN are the hosts beside the router, HOST[:PORT] each, where pelt serve runs. One host
alone is the WAN side, and this host the LAN side. The LAN side calls, so NAT is no
obstacle; on another host, pelt serve --calls WAN allows it.

--dut ssh://... watches the router through your ssh; BusyBox is enough. --dut pelt://... asks
a pelt serve --observe-only there, which also names the packets that its kernel dropped; its
code is the last of several, with commas between.

Several --variant take turns.`,
		Example: `  pelt router lab:nat --variant plain --variant rules=1000+log --frame 64,1518
  pelt router 192.168.1.20..192.168.2.10 --dut ssh://root@192.168.1.1`,
		Title:   "Router test",
		Rules:   []Rule{routerRule, searchRule(false, benchSettings), routerWatch},
		Repeats: "goodput_bps",
	}
}

// Parts of sentences.
const (
	routerRates = ` {receive_pps:small} ({small})[ and {goodput_bps:large} ({also})]`
	routerTCP   = `[¶TCP carries {goodput_bps:tcp}.]`
	factLater   = `[{later}: ]`
	routerGap   = `The router was not watched [from {gap_s:from moment} to {gap_s:to moment} of|` +
		`after {gap_s:from moment} of|throughout] a trial`
)

var routerSentences = map[string]string{
	"router.flood": `{name} saturates at` + routerRates + `, {way}.` + routerTCP,
	"router.least": `{name} carries at least` + routerRates + `, {way}.` + routerTCP,
	"router.kept":  `{name} carries the asked rate, {way}.¶Received:` + routerRates + `.` + routerTCP,
	"router.short": `{name} cannot carry the asked rate: {loss_ratio:worst} lost with {worst} frames.¶Lost, {way}[: ` +
		`{place}].` + routerTCP,
	"router.loses": `{name} loses up to {loss_ratio:worst} with {worst} frames, {way}.[¶Lost: {place}.]` + routerTCP,
	"router.tcp":   `{name} carries[{least ?} at least] {goodput_bps:tcp} of TCP, {way}.`,
	"router.core":  `The router's busiest core at {where} was {busiest}: {core_busy_ratio} busy, {*part} in {doing}.`,
	"router.offload.cpu": `The router's cores together were at most {router_busy_ratio} busy with {where}: its ` +
		`hardware may forward the packets.`,
	"router.offload.kernel": `The router's kernel forwarded {router_kernel_ratio} of the packets of {where}: the ` +
		`others took its fast path.`,
	"router.idle": `{what} of the idle path[ ({where})]: {*p50:idle}, 99 % within {*p99:idle}.`,
	"router.delay": `{what}[ ({where})]: {*p50:idle} idle, {*p50:full} at full load ({load}), 99 % within ` +
		`{*p99:full}.`,
	"router.connections.rate": `[{variant}: n|N]ew TCP connections: {connections_per_s}[, set up in ` +
		`{set_up_p50_ns}]; [{none ?}none failed|{connections_failed} failed in a trial].`,
	"router.connections.keep": `[{variant}: ]{connections_open_max} TCP connections were open at once[, set up in ` +
		`{set_up_p50_ns}].`,
	"router.variants": `Goodput against {base}, at {where}: {list}.`,
	"router.tracked": `The router tracked {router_connections} connections and has room for ` +
		`{router_connections_max}: it may have refused new ones.`,
	"router.dut": `Watch the router's processor, too:¶$ pelt router {target argument} --dut ssh://USER@ROUTER`,
	"router.unseen": `The router was not watched in [{all ?}any trial|{unseen_count} of {trials_count} trials]: what ` +
		`its ` +
		`processor did there is not known.`,
	"router.fact.setting": factLater + `{name} = {value}`,
	"router.fact.offload": factLater + `its settings turn {by} {state} ({name})`,
	"router.fact.flowtable": factLater + `its nft flowtable {name} takes flows of [{devices}|no device] past the ` +
		`rules in {by}`,
	"router.fact.no-flowtable": factLater + `its nftables offloads no flow (no flowtable)`,
	"router.fact.xdp": factLater + `an XDP program sees the packets that {device} receives before the ` +
		`kernel's own path does`,
	"router.fact.connections": factLater + `{count} tracked connections were offloaded in {by}`,
	"router.fact.untold":      factLater + `[{name}|not all: {why}]`,
	"router.fact.other":       `told by another version of pelt`,
	"router.gap.closed":       routerGap + `: the connection was closed[ ({said})].`,
	"router.gap.late":         routerGap + `: it did not answer in time.`,
	"router.gap.garbled":      routerGap + `: its answer was not understood[ ({said})].`,
	"router.gap.long":         routerGap + `: a trial keeps no more samples.`,
	"router.gap.other":        routerGap + `.`,
	"router.gap.restarted":    `The router restarted[ between {gap_s:from moment} and {gap_s:to moment}] in a trial.`,
	"router.gap.unbegun":      `The router was not watched: the measured part did not begin.`,
	"router.gap.short":        `The measured part was too short to tell what the router's processor did.`,
	"router.gap.cores":        `The load of the router's single cores over time found no room in its report.`,
	"router.watched": `The router was watched through {source} in [{all ?}each trial|{seen_count} of {trials_count} ` +
		`trials], {samples_count} samples[; watching took {router_cost_ratio} of one of its cores].`,
}

func routerRule(rows []table.Row) []Finding {
	rows = table.Usable(rows)
	if len(rows) == 0 {
		return nil
	}
	var out []Finding
	if loaded := RouterLoaded(rows); len(loaded) > 0 {
		l := RouterLayout(rows, loaded)
		full := table.Groups(l.Tried())
		limits := routerLimits(full)
		out = append(out, carried(full), limits[0])
		out = append(out, variantFindings(l.Conditions[0])...)
		out = append(out, limits[1:]...)
		frames := only(foremostFlow(full), func(g table.Group) bool {
			return protocolOf(g) != model.TCP && !g.Asked()
		})
		if len(frames) > 0 && frames[0].Middle("loss_ratio") >= table.Lossless && rows[0].Doc.Plan.Design.Search == nil {
			more := flooded(frames[0])
			more[1] = more[1].with("frame", strconv.Itoa(frames[0].Rows[0].Flow.FrameBytes))
			out = append(out, more...)
		}
	}
	out = append(out, sessions(rows)...)
	out = append(out, routerDelay(rows)...)
	if len(out) > 0 && len(Of(out, Answer)) == 0 { // only connections, or only the idle path
		out[0].Level = Answer
	}
	return out
}

// RouterLayout lays out some rows of a bench by what varies among all: a condition is traffic, and its way.
// Variants are compared with the plan's first one by the payload that arrived, whatever was sent.
func RouterLayout(all, some []table.Row) table.Layout {
	l := table.LayBy(some, append(table.Varying(all, wayKey), trafficKey), table.Varying(all, table.KeyOf("variant")))
	l.Compare(table.MetricOf("goodput_bps"))
	return l
}

// RouterTrialKeys are the keys of figures that a trial has once, however many ways it sends.
func RouterTrialKeys(rows []table.Row) []table.Key { return sides(RouterLayout(rows, rows).Keys()) }

// trialWayKey is the way of a trial through the router.
var trialWayKey = table.Key{Name: wayKey.Name, Label: wayKey.Label, Unit: wayKey.Unit,
	Of: func(r table.Row) table.Level {
		l := wayKey.Of(r)
		if r.Trial.Cell["direction"].Text == "both" {
			l.Value = model.Value{Number: 3, Text: r.Say("both ways")}
		}
		return l
	}}

// wayKey is the way of a flow through the router. Of two flows at once each has its own.
var wayKey = table.Key{Name: "direction", Label: "Direction", Unit: unit.Word, Of: func(r table.Row) table.Level {
	place := 1.0
	if r.Flow.Name == "down" {
		place++
	}
	if r.Trial.Cell["direction"].Text == "both" {
		place += 2
	}
	return table.Level{Value: model.Value{Number: place, Text: wayOfRow(r, "both, to WAN", "both, to LAN")}, Known: true}
}}

// wayOfRow names the way of a flow through the router; of two flows at once each has a name of its own.
func wayOfRow(r table.Row, bothUp, bothDown string) string {
	ways := map[string]string{"up": "LAN to WAN", "down": "WAN to LAN"}
	if r.Trial.Cell["direction"].Text == "both" {
		ways = map[string]string{"up": bothUp, "down": bothDown}
	}
	text := cmp.Or(ways[r.Flow.Name], r.Flow.Name)
	if r.Doc.Lab != nil && r.Doc.Lab.Topology == "switch" { // it has no such sides
		text = strings.NewReplacer("LAN to WAN", "up", "WAN to LAN", "down", "to WAN", "up", "to LAN",
			"down").Replace(text)
	}
	return r.Say(text)
}

// trafficKey is what was sent: frames of a size, TCP, connections, or frames at a low rate.
var trafficKey = table.Key{Name: "traffic", Label: "Traffic", Unit: unit.Word, Of: func(r table.Row) table.Level {
	const tcp, connections, idle = 1e6, 2e6, 3e6 // places behind all sizes
	v := model.Value{Number: float64(r.Flow.FrameBytes), Text: unit.FormatSize(r.Flow.FrameBytes)}
	rate, paced := r.Trial.Cell["rate_pps"]
	switch mode := r.Trial.Cell["connections"].Text; {
	case mode != "":
		v = model.Value{Number: connections, Text: table.KeyOf("connections").FormatIn(r.Language(),
			table.Level{Value: model.Word(mode), Known: true})}
	case r.Flow.Protocol == model.TCP:
		v = model.Value{Number: tcp, Text: "TCP"}
	case paced && rate.Text != "max":
		v.Number += idle
		v.Text = r.Sayf("%s at %s", v.Text, unit.PPS.Exact(rate.Number))
	}
	return table.Level{Value: v, Known: true}
}}

// RouterLoaded are the rows that were sent as fast as the plan says: not those of the idle
// path's delay, nor of connections.
func RouterLoaded(rows []table.Row) []table.Row {
	return only(rows, func(r table.Row) bool { return r.Trial.Cell["connections"].Text == "" && !paced(r) })
}

// paced reports whether a cell asks for a rate: its trials measure the delay of the idle path.
func paced(r table.Row) bool {
	v, ok := r.Trial.Cell["rate_pps"]
	return ok && v.Text != "max"
}

// foremostFlow are the groups of the first way and the first variant, which the answer is about.
func foremostFlow(full []table.Group) []table.Group {
	way := wayKey.Of(full[0].Rows[0])
	out := only(full, func(g table.Group) bool { return wayKey.Of(g.Rows[0]) == way })
	first := table.By(table.RowsOf(out), table.KeyOf("variant"))[0].Levels[0]
	return only(out, func(g table.Group) bool { return g.Level("variant") == first || !g.Level("variant").Known })
}

func carried(full []table.Group) Finding {
	var frames []table.Group
	all := foremostFlow(full)
	f := say("router.tcp", Answer, "", all[0], "name", routerName(full[0].Rows[0]), "way",
		wayOfRow(all[0].Rows[0], "to WAN, with traffic both ways", "to LAN, with traffic both ways"))
	for _, g := range all {
		if protocolOf(g) == model.TCP {
			f = f.with("tcp", g)
		} else {
			frames = append(frames, g)
		}
	}
	if v := all[0].Level("variant"); v.Known {
		f.Words["name"] = all[0].Sayf("%s (%s)", f.Words["name"], v.Text)
	}
	if len(frames) == 0 {
		return f.with("least", when(atLeast(all[0].Limit(), all[0]), "yes"))
	}
	small, large := frames[0], frames[len(frames)-1]
	f = f.with("small", small, "large", large, "small", traffic(small), "largest", traffic(large),
		"also", when(len(frames) > 1, traffic(large)))
	worst := largest(frames, "loss_ratio")
	switch asked, limit := small.Asked(), small.Limit(); {
	case asked && worst.Middle("loss_ratio") >= table.Lossless:
		f = f.loses("router.", worst.Limit(), worst).with("worst", traffic(worst))
	case asked && len(heldRule(table.RowsOf(frames))) > 0:
		f.Code = "router.least" // the sender's own host let out less than was asked
	case asked:
		f.Code = "router.kept"
	case atLeast(limit, small):
		f.Code = "router.least" // an end was the limit: the router may carry more
	default:
		f.Code = "router.flood"
	}
	return f
}

func routerName(r table.Row) string {
	switch f := r.Doc.Router; {
	case f != nil && f.Model != "":
		return f.Model
	case strings.HasPrefix(r.Doc.Plan.Target, "lab:"):
		return r.Doc.Plan.Target
	}
	return r.Say("The router")
}

func protocolOf(g table.Group) model.Protocol { return g.Rows[0].Flow.Protocol }

func traffic(g table.Group) string { return g.Level("traffic").Text }

func routerDelay(rows []table.Row) []Finding {
	var out []Finding
	keys := []table.Key{wayKey, table.KeyOf("variant")}
	for _, idle := range table.By(only(rows, paced), keys...) {
		same := only(RouterLoaded(rows), func(r table.Row) bool {
			return wayKey.Of(r) == wayKey.Of(idle.Rows[0]) && keys[1].Of(r) == keys[1].Of(idle.Rows[0])
		})
		of, what := "delay", "Delay"
		if math.IsNaN(idle.Middle("delay_p50_ns")) {
			of, what = "round_trip", "Round trip"
		}
		p50, p99 := of+"_p50_ns", of+"_p99_ns"
		f := say("router.idle", Fact, "idle", idle, "p50", p50, "p99", p99, "what", idle.Say(what),
			"where", table.By(idle.Rows, table.Varying(rows, keys...)...)[0].Name())
		if full := table.By(same, trafficKey); len(full) > 0 {
			if worst := largest(full, p50); !math.IsNaN(worst.Middle(p50)) {
				f.Code, f.Words["load"] = "router.delay", traffic(worst)
				f = f.with("full", worst)
			}
		}
		if f.Has(p50, "idle") {
			out = append(out, f)
		}
	}
	return out
}

func sessions(rows []table.Row) []Finding {
	var out []Finding
	opened := only(rows, func(r table.Row) bool { return r.Flow.Connections != nil })
	for _, g := range table.By(opened, table.KeyOf("connections"), table.KeyOf("variant")) {
		f := say("router.connections."+g.Level("connections").Text, Fact, "", g, "variant", g.Level("variant").Text)
		if n, _ := f.Number("connections_failed", ""); n > 0 {
			f.Level = Answer
		} else {
			f = f.with("none", "yes")
		}
		if f.Has("connections_per_s", "") {
			out = append(out, f)
		}
	}
	out = append(out, unacceptedRule(opened)...)
	all := table.Group{Rows: rows}
	most := slices.Max(append(all.Sample(table.MetricOf("router_connections")).Values, 0))
	if room := all.Middle("router_connections_max"); room > 0 && most > fullTable*room {
		out = append(out, say("router.tracked", Doubt, "router_connections", most, "router_connections_max", room))
	}
	return out
}

// fullTable is the share of a router's table of connections from which on it may refuse new ones.
const fullTable = 0.9

// variantFindings compares the variants under one condition with the first one.
func variantFindings(under table.Condition) []Finding {
	var list []string
	l := under.Language()
	for _, p := range under.Tried() {
		e, name := p.Effects[table.MetricOf("goodput_bps")], p.Choice.Name()
		switch {
		case e.Verdict == "", math.IsNaN(e.Change):
			continue
		case e.Verdict == table.Tied:
			name = l.Sayf("%s is tied", name)
		default:
			name += " " + l.Say(unit.Change(e.Change, e.Points))
		}
		if e.Verdict == table.TooFew {
			name = l.Sayf("%s (not proven)", name)
		}
		list = append(list, name)
	}
	if len(list) == 0 {
		return nil
	}
	return []Finding{say("router.variants", Answer, "base", under.Places[0].Choice.Name(),
		"where", traffic(under.Group), "list", l.Join(list))}
}
