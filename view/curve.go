package view

import (
	"slices"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
)

func curvePage(rows []table.Row, found []finding.Finding) []Section {
	l := finding.Curves(rows)
	size, others, keys, sizes := l.Choice[0], l.Under, l.Keys(), table.Groups(l.Tried())
	threads := details(metricColumns("sender_cpu_thread_ratio", "receiver_cpu_thread_ratio"))
	if rows[0].Flow.Protocol == model.TCP {
		out := []Section{
			curveTiles(found),
			hero(lines("Goodput by size of the writes", rows, others, size, "goodput_bps")),
			rowsOf("By size of the writes", sizes, keyColumns(keys...),
				metricColumns("goodput_bps", "connections_per_s", "retransmit_ratio", "round_trip_p50_ns",
					"round_trip_p99_ns", "set_up_p50_ns"), threads),
		}
		return slices.Concat(out, paths(rows), ledgers(rows))
	}
	packets := hero(lines("Packets received by payload", rows, others, size, "receive_pps", "send_pps"))
	searches := finding.TypicalSearches(rows)
	if len(searches) > 0 {
		packets.Series = append(freeLines(searches), packets.Series...)
	}
	bits := lines("Goodput by payload", rows, others, size, "goodput_bps")
	answer, limit := first(found, "curve."), first(found, "limit.link")
	if knee, ok := answer.Number("payload_bytes", "knee"); ok {
		mark := Mark{At: knee, Text: answer.Say("knee, {payload_bytes:knee}")}
		packets.Marks, bits.Marks = append(packets.Marks, mark), append(bits.Marks, mark)
	}
	if link, ok := limit.Number("link_bps", ""); ok {
		bits.Marks = append(bits.Marks, Mark{At: link, OnY: true, Text: limit.Say("link, {link_bps}")})
	}
	out := []Section{curveTiles(found), packets, losses("Packets lost by payload", sizes), bits}
	out = append(out, paths(rows)...)
	out = append(out, rowsOf("By payload", sizes, keyColumns(keys...), metricColumns("receive_pps", "goodput_bps",
		"loss_ratio", "send_pps", "delay_p50_ns", "delay_p99_ns", "round_trip_p50_ns", "jitter_ns"), threads))
	if len(searches) > 0 {
		out = append(out, searchTable(searches, finding.SearchKeys(searches)))
	}
	return append(out, ledgers(rows)...)
}

func curveTiles(found []finding.Finding) Tiles {
	// an answer about a limit is one about rates without loss
	answer, limit := first(found, "curve."), first(finding.Of(found, finding.Fact), "limit.")
	if answer.Code == "curve.tcp" {
		out := Tiles{tile("Carries", answer, "{goodput_bps:wide}", "[{of}]"),
			tile("With small writes", answer, "{goodput_bps:worst}", "{payload_bytes:worst} each")}
		return slices.DeleteFunc(out, func(t Tile) bool { return t.Value == "" })
	}
	carried := greatest(found, "curve.free", "receive_pps", "free")
	free := tile("Loss-free to", carried, "{receive_pps:free}", "")
	if searched := first(found, "free."); searched.Code != "" {
		free = freeTile(searched)
	}
	if free.Value == "" && first(found, "flood").Code != "" {
		free.Note = "every size was sent as fast as possible"
	}
	saturates := "Saturates at"
	if answer.Code == "curve.host" {
		saturates = "At least"
	}
	asked := slices.Contains([]string{"curve.kept", "curve.rest", "curve.short", "curve.held", "curve.living"},
		answer.Code)
	if asked {
		saturates = "Received"
	}
	saturation := tile(saturates, answer, "{receive_pps:best}",
		"{goodput_bps:wide}[{many ?} with large packets][; {of}]")
	if asked {
		return Tiles{saturation, free, limitTile(limit)}
	}
	knee := tile("Knee", answer, "[{payload_bytes:knee}]", "")
	if knee.Note = kneeNotes[answer.Code]; knee.Note != "" && knee.Value == "" {
		knee.Value = "none"
	}
	return Tiles{saturation, free, knee, limitTile(limit)}
}

var kneeNotes = map[string]string{"curve.both": "packets are the limit below, bits above",
	"curve.packets": "packets are the limit at every size", "curve.bits": "bits are the limit at every size"}
