package finding

import (
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
)

// TestForeignNothing: a tool that says that nothing arrived is not told to have said nothing.
func TestForeignNothing(t *testing.T) {
	d := sample.Iperf3()
	d.Results[0].Flows = d.Results[0].Flows[:1]
	f := &d.Results[0].Flows[0]
	f.Received, f.Lost, f.LossRatio, f.GoodputBPS, f.ReceivePPS = 0, f.Attempted, 1, 0, 0
	if text := toolRule(table.Rows(&d))[0].Text(); !strings.HasPrefix(text, "iperf3 received 0 bit/s") ||
		!strings.Contains(text, "100 % of these packets were lost") {
		t.Error(text)
	}
}

// TestForeignLosses: that nothing was lost is said of the flow that is told, and only if no trial of it lost any.
func TestForeignLosses(t *testing.T) {
	d := sample.Iperf3()
	text := toolRule(table.Rows(&d))[0].Text()
	if !strings.HasSuffix(text, "down; none of these packets was lost.") { // of the others 6 % were
		t.Error(text)
	}
	lost := d.Results[0]
	lost.Repeat, lost.Flows = 1, slices.Clone(lost.Flows)
	f := &lost.Flows[slices.IndexFunc(lost.Flows, func(f model.FlowResult) bool { return f.Name == "down" })]
	f.Lost, f.LossRatio = 1, 1e-5
	again := d.Results[0]
	again.Repeat = 2
	d.Results = append(d.Results, lost, again)
	if text := toolRule(table.Rows(&d))[0].Text(); strings.Contains(text, "none of these") {
		t.Errorf("of three trials, one of which lost a packet: %s", text)
	}
}

// TestForeignVersions: the version of another tool is not one of pelt.
func TestForeignVersions(t *testing.T) {
	a, b := sample.Iperf3(), sample.Iperf3()
	b.Tool.Version = "3.12"
	for _, d := range differences([]Side{{Doc: &a}, {Doc: &b}}, nil, true) {
		if d.Setting == "iperf3 version" && d.Values[1] == "3.12" {
			return
		}
	}
	t.Error("the versions of iperf3 do not differ")
}
