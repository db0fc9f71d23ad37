package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

func routerPage(rows []table.Row, found []finding.Finding) []Section {
	everything, loaded := finding.RouterLayout(rows, rows), finding.RouterLoaded(rows)
	keys, all := everything.Keys(), table.Groups(everything.Tried())
	places := finding.RouterLayout(rows, loaded).Tried()
	full := table.Groups(places)
	delay := "delay_p50_ns"
	if len(withFigure(all, delay)) == 0 { // the clocks do not agree
		delay = "round_trip_p50_ns"
	}
	delayed, opened := withFigure(all, delay), withFigure(all, "connections_per_s")
	trialKeys := finding.RouterTrialKeys(rows)
	trials := table.By(rows, trialKeys...)

	out := []Section{routerTiles(found)}
	if len(full) > 0 {
		out = append(out, hero(packetsChart(places)), routerCores(full, first(found, "router.")))
	}
	out = append(out, losses("Packets lost by setting", table.Groups(overUDP(places))),
		intervals("Delay, idle and at full load", delayed, delay, nil))
	out = append(out, paths(loaded)...)
	processor := metricColumns("router_busy_ratio", "total_goodput_bps", "router_packet_ns", "router_work_cores",
		"router_kernel_ratio", "router_softirq_ratio", "router_system_ratio", "router_user_ratio",
		"router_irq_ratio", "router_steal_ratio")
	health := metricColumns("router_connections", "router_temperature_c", "router_clock_hz",
		"router_softnet_squeezed", "router_connections_max", "router_cost_ratio")
	out = append(out, trafficTable(places, keys))
	if searches := finding.TypicalSearches(rows); len(searches) > 0 {
		out = append(out, searchTable(searches, finding.RouterSearchKeys(searches)))
	}
	out = append(out,
		rowsOf("Delay, idle and at full load", delayed, keyColumns(keys...),
			metricColumns("delay_p50_ns", "delay_p99_ns", "round_trip_p50_ns", "round_trip_p99_ns"),
			details(metricColumns("jitter_ns"))),
		rowsOf("Connections", opened, keyColumns(keys...),
			metricColumns("connections_per_s", "connections_open_max", "connections_failed", "set_up_p50_ns"),
			details(metricColumns("router_connections"))),
		rowsOf("The router's processor", trials, keyColumns(trialKeys...),
			metricColumns("goodput_per_core_bps", "router_busiest_core_ratio"), details(bare(processor))),
		rowsOf("The router's queues, clock and heat", trials, keyColumns(trialKeys...),
			metricColumns("router_softnet_dropped_packets"), details(bare(health))))
	return slices.Concat(out, ledgers(loaded), routerFacts(rows[0].Language(), rows[0].Doc.Router))
}

func routerTiles(found []finding.Finding) Tiles {
	answer, delay, limit := first(found, "router."), first(found, "router.delay"), first(found, "limit.")
	saturates := map[string]string{"router.kept": "Carries", "router.short": "Received",
		"router.least": "At least"}[answer.Code]
	small := tile(cmp.Or(saturates, "Saturates at"), answer, "{receive_pps:small}", "{small} frames")
	large := tile("Largest frames", answer, "{goodput_bps:large}", "{largest}[, {link_ratio:large} of the link]")
	if small.Value == "" {
		small = Tile{Label: "Saturates at", Note: "no small frames were sent"}
		large = tile("TCP", answer, "{goodput_bps:tcp}", "")
	}
	wait := tile("Delay, idle to full", delay, "{*p50:idle} → {*p50:full}", "median at full load, {load}")
	if free := first(found, "free."); free.Code != "" {
		return Tiles{small, freeTile(free), large, wait, limitTile(limit)}
	}
	return Tiles{small, large, wait, limitTile(limit)}
}

// packetsChart shows the packets by the size of the frames; with variants, or of one size, as
// intervals; of TCP its goodput.
func packetsChart(full []table.Place) Chart {
	of := overUDP(full)
	frames, size := table.Groups(of), table.KeyOf("frame_bytes")
	if len(frames) == 0 {
		return intervals("Goodput through the router", table.Groups(full), "goodput_bps", finding.Effects(full))
	}
	rows, effects := table.RowsOf(frames), finding.Effects(of)
	if effects != nil || len(table.By(rows, size)) < 2 {
		return intervals("Packets through the router", frames, "receive_pps", effects)
	}
	ways := slices.DeleteFunc(slices.Clone(frames[0].Keys), func(k table.Key) bool { return k.Name == "traffic" })
	return lines("Packets through the router by frame size", rows, ways, size, "receive_pps")
}

func overUDP(places []table.Place) []table.Place {
	return slices.DeleteFunc(slices.Clone(places),
		func(p table.Place) bool { return p.Rows[0].Flow.Protocol != model.UDP })
}

// routerCores shows what the router's cores did with the traffic of the answer, in each variant.
func routerCores(full []table.Group, answer finding.Finding) Chart {
	like := *answer.Places[""]
	rows := table.RowsOf(slices.DeleteFunc(slices.Clone(full), func(g table.Group) bool {
		return g.Level("traffic") != like.Level("traffic") || g.Level("direction") != like.Level("direction")
	}))
	keys := append(table.Varying(rows, table.KeyOf("variant")), table.KeyOf("core"))
	cores := slices.DeleteFunc(table.Cores(rows), func(r table.Row) bool {
		return r.Trial.Router == nil || r.Core.Node != r.Trial.Router.Node
	})
	groups := withFigure(table.By(cores, keys...), "core_busy_ratio")
	busy := Axis{Label: "Busy", Unit: unit.Ratio}
	c := stack(like.Sayf("The router's cores at %s", like.Level("traffic").Text), groups, busy, "core_softirq_ratio",
		"core_system_ratio", "core_user_ratio", "core_irq_ratio")
	if rows[0].Doc.Lab != nil {
		c.Note = "In a lab these are the machine's cores, on which the sender and the receiver run too."
	}
	return c
}

// trafficTable is what a reader wants first of all traffic at full load. The first way leads.
func trafficTable(places []table.Place, keys []table.Key) Table {
	title, effects := "By direction and traffic", []column(nil)
	full := table.Groups(places)
	if e := finding.Effects(places); e != nil {
		l, base := full[0].Language(), places[0].Choice.Name()
		title = l.Sayf("By direction and traffic, with goodput against %s", base)
		effects = effectColumn(l.Sayf("Against %s", base), e)
	}
	t := rowsOf(title, full, keyColumns(keys...), metricColumns("receive_pps", "goodput_bps"),
		bare(metricColumns("loss_ratio")),
		effects, cells("limit", "Limited by",
			func(g table.Group, _ int) Cell { return Cell{Text: finding.LimitedBy(g)} }),
		details(metricColumns("link_ratio", "retransmit_ratio",
			"sender_cpu_thread_ratio", "receiver_cpu_thread_ratio")))
	for _, g := range full {
		if g.Level("direction") == full[0].Level("direction") {
			t.Lead++
		}
	}
	return t
}

func routerFacts(l words.Language, f *model.RouterFacts) []Section {
	if f == nil {
		return nil
	}
	t := listing("The router", "fact Fact", "value Value")
	t.Fold = true
	add := func(name, value string) {
		if value != "" {
			t.add(name, value)
		}
	}
	add("Model", f.Model)
	add("Firmware", cmp.Or(f.Firmware, f.System))
	add("Kernel", f.Kernel)
	add("Processor", f.CPU)
	if f.Cores > 0 {
		add("Cores", fmt.Sprint(f.Cores))
	}
	if f.MemoryBytes > 0 {
		add("Memory", fmt.Sprintf("%d MiB", f.MemoryBytes>>20))
	}
	add("Watched through", f.Source)
	var forwarding []string
	for _, told := range f.Told {
		switch text := finding.Told(l, told).Text(); told.Code {
		case model.FactSetting:
			add("Tuning", text)
		case model.FactUntold:
			add("Not read", text)
		default:
			forwarding = append(forwarding, text)
		}
	}
	out := []Section{t}
	if len(forwarding) > 0 {
		out = append(out, Text{l.Sayf("What the router says of its forwarding: %s.",
			strings.Join(forwarding, l.Say("; ")))})
	}
	for when, texts := range [][]model.Text{f.Before, f.After} {
		for _, text := range texts {
			words := listing(l.Sayf([]string{"%s, before the test", "%s, after the test"}[when], text.Name),
				"text In the router's own words")
			words.Fold = true
			for line := range strings.Lines(text.Text) {
				words.add(strings.TrimRight(line, "\r\n"))
			}
			out = append(out, words)
		}
	}
	return out
}
