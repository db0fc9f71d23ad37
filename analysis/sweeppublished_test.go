package analysis

import (
	"maps"
	"strings"
	"testing"

	"pelt/analysis/internal/stats"
	"pelt/model"
)

// published are the best 32 cells of somebody's sweep with hand-made scripts, in
// their order: one sender, 100 receivers on links of 1 Mbit/s that lose 5 %, delay
// 40 ms with 10 ms of jitter; sizes in steps of 256 B, intervals of 0 to 9 ms, means of three runs.
var published = []struct {
	payload, intervalMS  int
	lossPercent          float64
	sendKiBps, recvKiBps float64
}{
	{1280, 5, 5, 17787, 11753},
	{1280, 3, 4.98, 27888, 11748},
	{1280, 4, 4.96, 21886, 11748},
	{1280, 1, 4.93, 72678, 11744},
	{1280, 6, 4.97, 14797, 11743},
	{1280, 2, 4.93, 39415, 11736},
	{1280, 0, 4.99, 467522, 11724},
	{1280, 7, 5.08, 13134, 11705},
	{1024, 0, 5.03, 363358, 11666},
	{1024, 1, 5.01, 58184, 11648},
	{1024, 3, 5.02, 22955, 11638},
	{1024, 2, 4.98, 31024, 11630},
	{1024, 4, 4.99, 18541, 11624},
	{1024, 5, 5.02, 15365, 11622},
	{768, 0, 5, 243763, 11487},
	{768, 1, 5.01, 43893, 11466},
	{768, 2, 4.96, 24835, 11460},
	{768, 3, 5.03, 17756, 11447},
	{768, 4, 4.98, 13606, 11444},
	{512, 0, 5.04, 136807, 11173},
	{512, 2, 5.04, 17605, 11091},
	{512, 1, 4.99, 31755, 11022},
	{512, 3, 5.03, 12088, 10991},
	{1024, 6, 5.03, 11718, 10991},
	{1280, 8, 5.04, 11556, 10881},
	{1536, 7, 26.3, 14799, 10741},
	{1536, 8, 24.95, 12941, 10731},
	{768, 5, 5.03, 11066, 10336},
	{4352, 9, 68.27, 30109, 10289},
	{256, 0, 4.97, 61151, 10255},
	{256, 1, 4.98, 16066, 10105},
	{4096, 9, 68.6, 30254, 9987},
}

func publishedDocument() model.Document {
	doc := model.Document{Plan: model.Plan{Command: "sweep", Target: "lab:star", Receivers: 100, Links: []model.Link{{Node: model.Receiver, Rate: 1e6, LossRatio: 0.05}}},
		Host: []model.Host{{Node: model.Sender, MTUBytes: 1500}}}
	for _, p := range published {
		f := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: p.payload, FrameBytes: model.FrameBytes(model.UDP, 4, p.payload),
			Attempted: 100_000, SendGoodputBPS: p.sendKiBps * 8192, GoodputBPS: p.recvKiBps * 8192}
		f.Lost = uint64(p.lossPercent * 1000)
		f.Received = f.Attempted - f.Lost
		f.Ledger = model.Ledger{Lost: f.Lost, Unattributed: f.Lost}
		doc.Results = append(doc.Results, model.Result{State: model.Valid, Flows: []model.FlowResult{f},
			Cell: model.Cell{"payload_bytes": model.Number(float64(p.payload)), "interval_ns": model.Number(float64(p.intervalMS) * 1e6)}})
	}
	return doc
}

// What the authors concluded by eye is what the findings say: 1280 B, 7 ms are
// enough, what is split loses much more than chance, and the links are full.
func TestPublishedSweep(t *testing.T) {
	doc := publishedDocument()
	if best := of(t, doc, KindSweepBest).Values; best["payload_bytes"] != 1280 || best["interval_ns"] != 5e6 {
		t.Errorf("best %v; want 1280 B every 5 ms", best)
	}
	if ties := of(t, doc, KindSweepTies); ties.Values["repeats_needed"] != 3 {
		t.Errorf("means alone separate: %s", ties.Text)
	}
	if slow := of(t, doc, KindSweepSlowest).Values; slow["payload_bytes"] != 1280 || slow["interval_ns"] != 7e6 {
		t.Errorf("slowest sender %v; want 1280 B every 7 ms", slow)
	}
	split := of(t, doc, KindSweepFragments)
	if !near(split.Values["loss_ratio_at_2_fragments"], 0.256, 0.02) || !near(split.Values["expected_loss_ratio_at_2_fragments"], 0.0986, 0.02) || !strings.Contains(split.Text, "more than the") {
		t.Errorf("fragments: %s %v", split.Text, split.Values)
	}
	limit := of(t, doc, KindSweepLimit).Values
	if !near(limit["limit_ratio"], 0.994, 1e-3) || limit["worst_payload_bytes"] != 256 || !near(limit["worst_limit_ratio"], 0.978, 1e-3) {
		t.Errorf("limit %v; want 99.4 %% of it at 1280 B and 97.8 %% at 256 B", limit)
	}
}

// The physics of the links, each size at its best, order the sizes as the table does.
func TestPublishedOrder(t *testing.T) {
	var sizes, measured, allowed []float64
	seen := map[int]bool{}
	for _, p := range published {
		if n := model.Fragments(4, p.payload, 1500); n == 1 && !seen[p.payload] {
			seen[p.payload] = true
			sizes, measured = append(sizes, float64(p.payload)), append(measured, p.recvKiBps)
			allowed = append(allowed, way{receivers: 100, rate: 1e6}.allows(spot{payload: p.payload, fragments: 1, family: 4}))
		}
	}
	if rho, ok := stats.RankCorrelation(measured, allowed); !ok || rho != 1 || len(sizes) != 5 {
		t.Errorf("%v B: rank correlation %v %v; want 1", sizes, rho, ok)
	}
}

// Who may not choose the path is not told that a sender under another one is enough.
func TestSlowestUnderTheSameConditions(t *testing.T) {
	doc := publishedDocument()
	for i := range doc.Results {
		c := maps.Clone(doc.Results[i].Cell)
		c["link.loss_ratio"] = model.Number(0)
		if c["interval_ns"].Number == 7e6 && c["payload_bytes"].Number == 1280 {
			c["link.loss_ratio"] = model.Number(0.05)
		}
		doc.Results[i].Cell = c
	}
	if slow := of(t, doc, KindSweepSlowest).Values; slow["payload_bytes"] == 1280 && slow["interval_ns"] == 7e6 {
		t.Errorf("%v is under other conditions than the best", slow)
	}
}
