package plan

import (
	"time"

	"pelt/model"
)

// Speed are the plans of pelt doctor --speed: what this machine can send and
// receive with each engine, with one stream and with one for each core, at the
// frame sizes of RFC 2544 section 9.1.
func Speed(target string, cores int, each time.Duration) ([]model.Plan, error) {
	warmup := each / 5
	streams := []int{1}
	if cores > 1 {
		streams = append(streams, min(cores, model.MaxStreams))
	}
	var plans []model.Plan
	for _, engine := range []string{"udp", "xdp:xdp"} {
		for _, n := range streams {
			p, err := Curve(Options{
				Target: target, Frames: []int{64, 128, 256, 512, 1024, 1280, 1518}, Streams: n, Time: each, Warmup: &warmup,
				Repeats: 1, Engine: engine, Drops: model.DropsOff, Family: 4,
			})
			if err != nil {
				return nil, err
			}
			p.Command, p.Design.Ordered, p.Timing.DrainSeconds = "doctor", true, 0.5
			plans = append(plans, p)
		}
	}
	return plans, nil
}
