package finding

import (
	"strings"
	"testing"

	"pelt/table"
	"pelt/test/sample"
)

// TestForeignNothing: a tool that says that nothing arrived is not told to have said nothing.
func TestForeignNothing(t *testing.T) {
	d := sample.Iperf3()
	d.Results[0].Flows = d.Results[0].Flows[:1]
	f := &d.Results[0].Flows[0]
	f.Received, f.Lost, f.LossRatio, f.GoodputBPS, f.ReceivePPS = 0, f.Attempted, 1, 0, 0
	if text := Foreign(table.Rows(&d))[0].Text(); !strings.HasPrefix(text, "iperf3 received 0 bit/s") ||
		!strings.Contains(text, "100 % of the packets were lost") {
		t.Error(text)
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
