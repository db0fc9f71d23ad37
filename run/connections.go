package run

import (
	"maps"
	"slices"

	"pelt/engine"
	"pelt/model"
)

// addConnections makes the result of a flow of connections: they are its packets.
func addConnections(r *model.FlowResult, sent *engine.Report, in engine.ReceiveReport) {
	c := model.ConnectionFacts{}
	if sent != nil && sent.Send != nil && sent.Send.Connections != nil {
		c = *sent.Send.Connections
	}
	r.Connections, r.TCP = &c, &model.TCPFacts{}
	r.Received = min(c.Established, r.Attempted)
	r.Lost = r.Attempted - r.Received
	r.Ledger = model.Ledger{Lost: r.Lost, Unattributed: r.Lost, Lines: []model.Line{}, Checks: []model.Check{}}
	if r.DurationS > 0 {
		r.ReceivePPS = float64(r.Received) / r.DurationS
		r.GoodputBPS = float64(in.Tally.Bytes) * 8 / r.DurationS
	}
}

// tameConnections bounds what another host says of them.
func tameConnections(c model.ConnectionFacts, steps int) *model.ConnectionFacts {
	c.Mode, c.Ended = c.Mode[:min(len(c.Mode), maxText)], c.Ended[:min(len(c.Ended), maxText)]
	c.PerSecond = c.PerSecond[:min(len(c.PerSecond), steps)]
	c.OpenMax = min(c.OpenMax, model.MaxConnections)
	if !(c.WaitSeconds >= 0 && c.WaitSeconds < overtimeSeconds) {
		c.WaitSeconds = 0
	}
	if !ordered(c.SetUp) {
		c.SetUp = nil
	}
	kept := map[string]uint64{}
	for _, name := range slices.Sorted(maps.Keys(c.Failed)) {
		if len(kept) < maxErrnos && len(name) <= maxText {
			kept[name] = c.Failed[name]
		}
	}
	c.Failed = kept
	return &c
}
