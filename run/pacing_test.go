package run

import (
	"testing"

	"pelt/model"
)

// Of several profiles the sum tells the one that was kept least.
func TestPacingOfSeveralFlows(t *testing.T) {
	near, far := 0.05, 0.2
	one, other := model.FlowResult{Pacing: &model.Pacing{Distance: &near}}, model.FlowResult{
		Pacing: &model.Pacing{Distance: &far}, SendLate: &model.Percentiles{Count: 1, Max: 9}}
	for _, list := range [][]model.FlowResult{{one, other}, {other, one}, {{}, other}} {
		if sum := joinFlows(list); sum.Pacing == nil || *sum.Pacing.Distance != far || *one.Pacing.Distance != near {
			t.Errorf("joined %+v", sum.Pacing)
		}
	}
	if joinFlows([]model.FlowResult{{}, {}}).Pacing != nil {
		t.Error("flows without a profile have a pacing")
	}
}
