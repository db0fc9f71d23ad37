package rows

import (
	"slices"
	"testing"

	"pelt/model"
)

func TestPacingIsOfTheWorstTrial(t *testing.T) {
	near, far := 0.1, 0.3
	trial := func(distance *float64, gap int64) model.FlowResult {
		return model.FlowResult{Name: "up", Attempted: 1, Pacing: &model.Pacing{Profile: "poisson", Distance: distance, AskedGaps: []model.Bucket{{UpToNanos: 10, Count: 1}, {UpToNanos: 1000, Count: 3}}},
			GapCounts: []model.Bucket{{UpToNanos: gap, Count: 7}}}
	}
	var doc model.Document
	for _, f := range []model.FlowResult{trial(nil, 50), trial(&near, 100), trial(&far, 2000), trial(&near, 100), {Name: "up", Attempted: 1}} {
		doc.Results = append(doc.Results, model.Result{State: model.Valid, Flows: []model.FlowResult{f}})
	}
	p := Fold(doc).Rows[0].Pacing
	if p == nil || *p.Distance != far {
		t.Fatalf("pacing %+v", p)
	}
	upTo, asked, sent := p.Bars()
	if !slices.Equal(upTo, []int64{100, 1000, 2000}) || !slices.Equal(asked, []float64{0.25, 0.75, 0}) || !slices.Equal(sent, []float64{0, 0, 1}) {
		t.Errorf("bars %v asked %v sent %v", upTo, asked, sent)
	}
	if upTo, _, _ := (&Pacing{}).Bars(); upTo != nil {
		t.Errorf("bars of nothing: %v", upTo)
	}
}
