package lab

import (
	"context"

	"pelt/lab/gauge"
	"pelt/model"
)

// Calibrate probes the emulated links that this process has made, for a second or
// two, and tells what they do. Then they begin anew: the test meets the first draws
// of their seeds. Nothing else may use them, or read their counters, meanwhile.
func (l *Lab) Calibrate(ctx context.Context) ([]model.LinkCalibration, error) {
	var ways []gauge.Way
	for _, k := range l.Emulated() {
		for d, w := range k.ways {
			far := k.ways[1-d]
			ways = append(ways, gauge.Way{From: k.Ends[d], To: k.Ends[1-d], Settings: w.settings, Words: l.describe(k, d), MTU: k.plan.mtu,
				In: gauge.Port{Do: w.node.Do, Name: w.iface}, Out: gauge.Port{Do: far.node.Do, Name: far.iface}})
		}
	}
	defer l.RestartDraws(0)
	return gauge.Measure(ctx, ways)
}
