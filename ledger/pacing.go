package ledger

import (
	"cmp"
	"slices"

	"pelt/model"
)

// heldShare is the share of its time from which on a wait for its socket has slowed a flood, which has no slots to
// give up.
const heldShare = 0.05

// pacing says why packets were planned and not attempted, by cause, and what made the sender wait.
func (b *book) pacing() (lines []model.PacingLine) {
	if n := b.in.SlotsLate; n > 0 {
		lines = append(lines, model.PacingLine{Cause: model.PacingLate, Host: b.in.Sender, Packets: n})
	}
	if n := b.in.SlotsHeld; n > 0 || b.in.HeldS > 0 && b.in.HeldS >= heldShare*b.in.DurationS {
		line := model.PacingLine{Cause: model.PacingBackpressure, Host: b.in.Sender, Packets: n, HeldS: b.in.HeldS}
		if line.Queue, line.Evidence = b.holdingQueue(); line.Queue == nil {
			line.BufferBytes = b.in.SendBuffer
		}
		lines = append(lines, line)
	}
	if n := b.in.SlotsQuiet; n > 0 {
		lines = append(lines, model.PacingLine{Cause: model.PacingQuiet, Host: b.in.Sender, Packets: n})
	}
	return lines
}

// holdingQueue returns the queueing discipline that made the sender's socket
// wait: the one at the interface toward the receiver, if packets waited in it.
// The socket is charged for a packet until the packet leaves the queue. nil if
// no reading says so.
func (b *book) holdingQueue() (*model.Queue, []model.Evidence) {
	s := b.path.sender
	if s == nil || s.Observation == nil || b.in.PastSockets {
		return nil, nil
	}
	out := s.Out
	if len(out) == 0 && s.Observation.Interface != "" {
		out = []string{s.Observation.Interface}
	}
	var found *model.Queue
	var evidence []model.Evidence
	most := uint64(0)
	for _, q := range s.Observation.Queues {
		if !slices.Contains(out, q.Interface) {
			continue
		}
		moved := q.QueuedPackets
		var of []model.Evidence
		for _, c := range s.Observation.Counters {
			if c.Reset || c.Measure == 0 || c.Name != q.Counter("overlimits") && c.Name != q.Counter("requeues") {
				continue
			}
			moved = plus(moved, c.Measure)
			of = append(of, model.Evidence{Counter: c.Name, Host: s.Name, Scope: c.Scope, Unit: c.Unit, Role: "primary",
				Before: c.Before, After: c.After, Delta: c.Whole})
		}
		if moved > most {
			most, found, evidence = moved, &q, of
		}
	}
	slices.SortFunc(evidence, func(x, y model.Evidence) int { return cmp.Compare(y.Delta, x.Delta) })
	return found, evidence
}
