package finding

import (
	"slices"
	"testing"

	"pelt/model"
	"pelt/test/sample"
)

// foreignExamples are runs of another tool.
func foreignExamples(*testing.T) []example {
	whole, nothing, single := sample.Iperf3(), sample.Iperf3(), sample.Iperf3()
	nothing.Results[0].Flows = nothing.Results[0].Flows[:1]
	f := &nothing.Results[0].Flows[0]
	f.Received, f.Lost, f.LossRatio, f.GoodputBPS, f.ReceivePPS = 0, f.Attempted, 1, 0, 0
	lost := single.Results[0]
	lost.Repeat, lost.Flows = 1, slices.Clone(lost.Flows)
	f = &lost.Flows[slices.IndexFunc(lost.Flows, func(f model.FlowResult) bool { return f.Name == "down" })]
	f.Lost, f.LossRatio = 1, 1e-5
	again := single.Results[0]
	again.Repeat = 2
	single.Results = append(single.Results, lost, again)
	return examplesOf(map[string]*model.Document{"none of the packets down was lost, of the others 6 %": &whole,
		"nothing arrived": &nothing, "one of three trials lost a packet": &single}, toolRule)
}
