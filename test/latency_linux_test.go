package test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
)

// TestClockQueueDelay: a full queue of 200 packets at 20 Mbit/s adds what they take on the link, on the way up only.
//
//	sender -- router --(20 Mbit/s, 200 packets)-- receiver
func TestClockQueueDelay(t *testing.T) {
	testenv.Clock(t)
	testenv.Root(t)
	dir := t.TempDir()
	const plan = `format: %s
command: curve
target: lab:router
links: [{node: receiver, rate_bps: 20000000, queue_packets: 200}]
set: {lead_s: 0.15, warmup_s: 0.1, measure_s: 1, drain_s: 1, payload_bytes: 1472, rate_pps: 5000, protocol: udp, streams: 1, repeats: 1, seed: 1, engine: udp}
flows: [{name: up, from: sender, to: receiver}]
`
	path := filepath.Join(dir, "plan.yaml")
	testenv.Must(t, os.WriteFile(path, fmt.Appendf(nil, plan, model.PlanFormat), 0o600))
	pelt(t, dir, "run", path, "--json", "run.json")
	const full = 200 * 1514 * 8 / 20e6 * 1e9 // ns
	p := document(t, filepath.Join(dir, "run.json"), "").Results[0].Flows[0].Probe
	if p == nil || p.Up == nil || p.Down == nil {
		t.Fatalf("probe %+v", p)
	}
	if math.Abs(p.Up.P50-full) > 0.1*full || p.Down.P50 > 0.1*full || p.Sent < 20 || p.Answered == 0 ||
		p.Answered > p.Sent {
		t.Errorf("%d of %d answered, idle %.1f ms, up %.1f ms, down %.1f ms; want %.1f up", p.Answered, p.Sent,
			p.IdleNS/1e6, p.Up.P50/1e6, p.Down.P50/1e6, full/1e6)
	}
}
