package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

// TestClamp: a report of another host may hold anything.
func TestClamp(t *testing.T) {
	timing := model.Timing{MeasureSeconds: 1, DrainSeconds: 1}
	long := make([]uint64, 1<<20)
	wild := map[string]uint64{strings.Repeat("y", 1<<20): 1, "ETIMEDOUT": 2}
	for i := range 2 * maxErrnos {
		wild[fmt.Sprint("Z", i)] = 1
	}
	texts := slices.Repeat([]string{strings.Repeat("x", 1<<10)}, 1000)
	r := Report{Engine: "rm", Why: slices.Repeat(model.Reasons{{Code: texts[0], Text: texts[0]}}, 1000), Warnings: slices.Repeat(
		model.Reasons{{Code: texts[0], Text: texts[0]}}, 1000),
		CPU: model.CPU{ThreadRatio: math.NaN(), HostRatio: 7},
		Send: &SendReport{Streams: []uint64{5}, Errnos: texts, Errors: maps.Clone(wild), Unsent: wild, PerStep: long,
			ICMP: []model.ICMPErrors{{From: texts[0], What: texts[0]}}, Peer: &model.PeerReport{Program: texts[0]},
			Connections: &model.ConnectionFacts{
				PerSecond: long, OpenMax: 1 << 60, Ended: strings.Repeat("x", 1<<20),
				Failed: map[string]uint64{strings.Repeat("y", 1<<20): 1,
					"ETIMEDOUT": 2}, SetUp: &model.Percentiles{P50: 2, P90: 1},
			}},
		Receive: &ReceiveReport{Missing: make([]model.Marks, 1000), Tally: model.Tally{PerStep: long, StepBytes: long}},
		Probe: &ProbeReport{RoundTrip: &model.Percentiles{Min: -5},
			Facts: &model.ProbeFacts{Sent: 1 << 60, Answered: 1 << 61,
				IdleNS: math.Inf(1), Up: &model.Percentiles{P50: 2, P90: 1}, Down: &model.Percentiles{P50: math.NaN()}}},
	}
	r.Clamp(timing)
	if r.Engine != "" || len(r.Why) > maxWarnings || len(r.Why[0].Text) > 255 || r.CPU.ThreadRatio != 0 || r.CPU.HostRatio != 1 ||
		r.Probe.RoundTrip != nil {
		t.Errorf("what stays: engine %q, %d reasons, %+v, %+v", r.Engine, len(r.Why), r.CPU, r.Probe)
	}
	if n := max(len(r.Send.PerStep), len(r.Receive.Tally.PerStep), len(r.Receive.Tally.StepBytes)); n > 100 {
		t.Errorf("series of %d steps stay", n)
	}
	if n := len(r.Receive.Missing); n > model.MaxStreams {
		t.Errorf("lists of %d streams stay", n)
	}
	if f := r.Probe.Facts; f.Sent > 10_000 || f.Answered > f.Sent || f.IdleNS != 0 || f.Up != nil || f.Down != nil {
		t.Errorf("of a wild probe stays %+v", f)
	}
	if n := len(r.Warnings); n != maxWarnings+1 || len(r.Warnings[0].Code+r.Warnings[0].Text) > 510 ||
		r.Warnings[n-1].Code != model.MoreDoubts || r.Warnings[n-1].Numbers["doubts"] != 936 {
		t.Errorf("of many warnings stay %d: %.300v", n, r.Warnings[n-1])
	}
	if s := r.Send; len(s.Errors) != maxErrnos || len(s.Unsent) != maxErrnos || s.Errors["ETIMEDOUT"] != 2 ||
		len(s.Errnos[0]) > 255 {
		t.Errorf("of wild errors stay %d, %d, names of %d letters", len(s.Errors), len(s.Unsent), len(s.Errnos[0]))
	}
	if e := r.Send.ICMP[0]; max(len(e.From), len(e.What), len(r.Send.Peer.Program)) > 255 {
		t.Errorf("long texts stay: %.300v, %.300v", e, r.Send.Peer)
	}
	c := r.Send.Connections
	if len(c.PerSecond) > 100 || c.OpenMax > model.MaxConnections || len(c.Ended) > 255 || len(c.Failed) != 1 ||
		c.Failed["ETIMEDOUT"] != 2 || c.SetUp != nil {
		t.Errorf("of a wild account of connections stay %d steps, %d open, %d letters, %d errors, %v",
			len(c.PerSecond), c.OpenMax, len(c.Ended), len(c.Failed), c.SetUp)
	}
}
