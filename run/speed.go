package run

import (
	"context"

	"pelt/model"
)

// Speed is what one engine carried between two nodes of this machine.
type Speed struct {
	Engine     string  `json:"engine"`
	Streams    int     `json:"streams"`
	FrameBytes int     `json:"frame_bytes"`
	SendPPS    float64 `json:"send_pps"`
	ReceivePPS float64 `json:"receive_pps"`
	GoodputBPS float64 `json:"goodput_bps"`
	LossRatio  float64 `json:"loss_ratio"`
	State      string  `json:"state,omitempty"` // "" for a valid trial
	Why        string  `json:"why,omitempty"`   // of another state, or why nothing was measured
}

// Speeds runs plans on this machine and lists the rates of each trial. A plan that cannot
// run here becomes a line that says why.
func Speeds(ctx context.Context, plans []model.Plan, o Options) ([]Speed, error) {
	var list []Speed
	for _, p := range plans {
		doc, err := Execute(ctx, p, o)
		if ctx.Err() != nil {
			return list, ctx.Err()
		}
		for _, r := range doc.Results {
			for _, f := range r.Flows {
				s := Speed{Engine: r.Engine, Streams: f.Streams, FrameBytes: f.FrameBytes, SendPPS: f.SendPPS,
					ReceivePPS: f.ReceivePPS,
					GoodputBPS: f.GoodputBPS, LossRatio: f.LossRatio, Why: r.Why.String()}
				if r.State != model.Valid {
					s.State = string(r.State)
				}
				list = append(list, s)
			}
		}
		if err != nil { // beside what was measured before it
			list = append(list, Speed{Engine: p.Engine, Streams: p.Flows[0].Streams, Why: err.Error()})
		}
	}
	return list, nil
}
