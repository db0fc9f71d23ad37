package run

import (
	"strings"
	"testing"

	"pelt/engine"
	"pelt/model"
	"pelt/unit"
)

func TestPacing(t *testing.T) {
	trace, err := model.TraceText([]int64{1000, 2000})
	if err != nil {
		t.Fatal(err)
	}
	flow := model.Flow{Rate: unit.PacketRate(1000),
		Profile: &model.Profile{Kind: model.TraceProfile, File: "a.csv", Trace: trace}}
	asked := &engine.AskedSends{Gap: &model.Percentiles{Count: 4, P50: 1e6},
		GapCounts: []model.Bucket{{UpToNanos: 1_000_000, Count: 4}}}
	var r model.FlowResult
	addPacing(&r, flow, engine.SendReport{Planned: 5, Asked: asked,
		GapCounts: []model.Bucket{{UpToNanos: 1_000_000, Count: 3}, {UpToNanos: 1_250_000},
			{UpToNanos: 1_600_000, Count: 1}}})
	p := r.Pacing
	if p == nil || p.Profile != "trace=a.csv" || p.Rounds != 2.5 || p.Distance == nil || *p.Distance != 0.25 ||
		p.AskedGap.P50 != 1e6 {
		t.Fatalf("pacing %+v", p)
	}
	r.Name, r.SendLate = "up", &model.Percentiles{Max: 2e8}
	said := strings.Join(profileWarnings(r), "\n")
	if !strings.Contains(said, "flow up: 25 % or more of the gaps differ from the profile") ||
		!strings.Contains(said, "paused for 0.1 s") {
		t.Errorf("said %q", said)
	}
	near := 0.05
	r.Pacing, r.SendLate = &model.Pacing{Distance: &near}, &model.Percentiles{Max: 5e7}
	r.SendGap = &model.Percentiles{P50: 1000, Max: 9e8} // which is a pause that was asked
	if said := senderWarnings([]model.FlowResult{r}, true); len(said) > 0 {
		t.Errorf("a sender that kept its profile is told: %q", said)
	}

	one, other := r, r
	far := 0.2
	other.Pacing, other.SendLate = &model.Pacing{Distance: &far}, &model.Percentiles{Count: 1, Max: 9}
	for _, list := range [][]model.FlowResult{{one, other}, {other, one}, {{}, other}} {
		if sum := joinFlows(list); sum.Pacing == nil || *sum.Pacing.Distance != far || *one.Pacing.Distance != near {
			t.Errorf("joined %+v", sum.Pacing)
		}
	}
	if joinFlows([]model.FlowResult{{}, {}}).Pacing != nil {
		t.Error("flows without a profile have a pacing")
	}

	r = model.FlowResult{}
	addPacing(&r, model.Flow{Rate: unit.PacketRate(1)}, engine.SendReport{Asked: asked})
	addPacing(&r, flow, engine.SendReport{})
	if r.Pacing != nil {
		t.Errorf("pacing of nothing: %+v", r.Pacing)
	}
}
