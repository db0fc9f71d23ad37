package fleet

import (
	"pelt/finding"
	"pelt/model"
)

// breaker is a circuit breaker (RFC 8084) of one flow: it adds up what a receiver tells once a second.
type breaker struct {
	sent, seen     uint64 // by the sender: up to now, and up to the last period's end
	packets, reach uint64 // by the receiver, up to the last period's end
	bad, silent    int    // periods in succession: with too much loss, and of them those in which nothing came
}

const (
	breakPeriods = 3   // in succession
	breakLoss    = 0.2 // more than this share of a period's packets
	// breakPackets is the least that a period tells anything of: fewer are no flood, and a share of them is chance.
	breakPackets = 100
)

// period takes the receiver's counts at the end of a period, and reports whether the circuit breaks. Both counts are of
// one moment at one host, so no round trip blurs them. Where nothing came, the sender's count tells what was lost.
func (b *breaker) period(packets, reach uint64) bool {
	came, sent := grown(b.packets, packets), grown(b.reach, reach)
	if came == 0 {
		sent = max(sent, grown(b.seen, b.sent))
	}
	b.packets, b.reach, b.seen = max(b.packets, packets), max(b.reach, reach), b.sent
	switch {
	case sent < breakPackets:
	case float64(came) < (1-breakLoss)*float64(sent):
		if b.bad, b.silent = b.bad+1, b.silent+1; came > 0 {
			b.silent = 0
		}
	default:
		b.bad, b.silent = 0, 0
	}
	return b.bad >= breakPeriods
}

func grown(before, now uint64) uint64 { return now - min(before, now) }

// watchLoss takes a sample of an end, and cuts the trial if its flow's breaker breaks. The caller holds the lock.
func (t *trial) watchLoss(s sample) {
	b := t.breakers[s.End/2]
	switch {
	case b == nil:
	case s.End%2 == 0:
		b.sent = max(b.sent, s.Packets)
	case b.period(s.Packets, s.Reach):
		why := finding.NewFault(model.CircuitBroken, "flow", t.order.Flows[s.End/2].Flow.Name,
			"loss_ratio", breakLoss, "periods", float64(breakPeriods))
		t.cancel(&cutError{final: b.silent < breakPeriods, Fault: why})
	}
}
