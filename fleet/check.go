package fleet

import (
	"fmt"
	"strings"

	"pelt/engine"
	"pelt/model"
	"pelt/unit"
)

// Bounds that hold whatever the limits say; they bound memory and sockets.
const (
	maxSessions   = 256
	maxWatchers   = 4       // sessions of an agent that only watches
	maxAllStreams = 1024    // of all sessions of an agent
	maxAllSeconds = 1 << 24 // measured by all ends of all sessions; each takes some 16 B for the series
	maxAllReaders = 16      // senders of all sessions that keep TCP_INFO over time; each takes some 20 MB with its report
	maxRecordings = 8       // sessions with a record; each may keep some 30 MB that is not fetched yet
)

func refuse(format string, args ...any) error {
	return &engine.Refusal{Why: fmt.Sprintf(format, args...)}
}

// checkMemory holds what all sessions of an agent take against what a host can keep.
func checkMemory(ends []endOrder) error {
	streams, reading, seconds := 0, 0, 0.0
	for _, e := range ends {
		streams, seconds = streams+e.Order.Flow.Streams, seconds+e.Order.Timing.MeasureSeconds
		if e.Order.Role == engine.Send && e.Order.Flow.InfoSeconds > 0 {
			reading++
		}
	}
	switch {
	case seconds > maxAllSeconds:
		return refuse("so many long trials at a time are too much for this host's memory: try again later, or ask for less time")
	case reading > maxAllReaders:
		return refuse("%d flows whose TCP is read over time are too many for this host's memory: at most %d over all sessions", reading, maxAllReaders)
	case streams > maxAllStreams:
		return refuse("%d streams at a time are too many for this host: at most %d over all sessions", streams, maxAllStreams)
	}
	return nil
}

// check compares all ends of a session with what this host grants.
func (l Limits) check(ends []endOrder) error {
	var flows []model.Flow
	for _, e := range ends {
		if e.Order.Traffic() { // a probe is thin already, see engine.Order.Check
			flows = append(flows, e.Order.Flow)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	return l.Admit(flows, ends[0].Order.Timing)
}

// Admit says whether a host with these limits takes a trial. The error is an
// *engine.Refusal that names the limit and what was asked.
func (l Limits) Admit(flows []model.Flow, t model.Timing) error {
	if s := t.WarmupSeconds + t.MeasureSeconds; l.MaxTimeSeconds > 0 && s > l.MaxTimeSeconds {
		return refuse("the trial takes %gs with its warm-up; this host allows %gs (--max-time there)", s, l.MaxTimeSeconds)
	}
	var pps, bps float64
	for _, f := range flows {
		p, paced := f.PeakPPS()
		if !paced && (l.MaxRatePPS > 0 || l.MaxRateBPS > 0) {
			return refuse("flow %s asks for rate max; this host allows %s (--max-rate there), so give a --rate", f.Name, l.rateText())
		}
		pps += p
		bps += p * float64(f.PayloadBytes) * 8
	}
	// A rate that equals the limit may differ from it in the last bits.
	const rounding = 1 + 1e-9
	if l.MaxRatePPS > 0 && pps > l.MaxRatePPS*rounding {
		return refuse("the flows ask for %s together; this host allows %s (--max-rate there)", unit.FormatPPS(pps), l.rateText())
	}
	if l.MaxRateBPS > 0 && bps > l.MaxRateBPS*rounding {
		return refuse("the flows ask for %s together; this host allows %s (--max-rate there)", unit.FormatBits(bps), l.rateText())
	}
	return nil
}

func (l Limits) rateText() string {
	var parts []string
	if l.MaxRatePPS > 0 {
		parts = append(parts, unit.FormatPPS(l.MaxRatePPS))
	}
	if l.MaxRateBPS > 0 {
		parts = append(parts, unit.FormatBits(l.MaxRateBPS))
	}
	return strings.Join(parts, " and ")
}
