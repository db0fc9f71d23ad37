package report

import (
	"fmt"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// connectionFields are the columns of a flow of connections.
func connectionFields(of []rows.Row) []field {
	count := func(x float64) string { return unit.FormatCount(uint64(x)) }
	return []field{
		col(of, "established", 0, func(r rows.Row) string { return figure(r.Connections.PerSecond, words.PerSecond) + mark(r) }),
		col(of, "range", 4, func(r rows.Row) string { return spread(r.Connections.PerSecond) }),
		col(of, "open", 0, func(r rows.Row) string { return figure(r.Connections.OpenMax, count) }),
		col(of, "failed", 0, func(r rows.Row) string { return unit.FormatCount(r.Connections.Failed) }),
		delayCol(of, "set up", 1, func(r rows.Row) *rows.Delays { return r.Connections.SetUp }, func(d *rows.Delays) rows.Stat { return d.P50 }),
		delayCol(of, "p99", 2, func(r rows.Row) *rows.Delays { return r.Connections.SetUp }, func(d *rows.Delays) rows.Stat { return d.P99 }),
	}
}

// connectionsLine is one trial of a flow of connections.
func connectionsLine(f model.FlowResult) string {
	var failed uint64
	for _, n := range f.Connections.Failed {
		failed += n
	}
	if f.Connections.Mode == model.ConnectionKeep {
		return fmt.Sprintf("%s connections open at a time, %s failed", unit.FormatCount(f.Connections.OpenMax), unit.FormatCount(failed))
	}
	return fmt.Sprintf("%s new connections, %s failed", words.PerSecond(f.ReceivePPS), unit.FormatCount(failed))
}
