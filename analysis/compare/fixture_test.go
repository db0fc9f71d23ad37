package compare

import (
	"math"
	"math/rand/v2"
	"time"

	"pelt/model"
)

// bench makes documents of a router's bench whose true figures are known.
type bench struct {
	id       string
	target   string
	start    time.Duration // after the first run's
	frames   []int
	variants []string // levels of the knob variant; none: the run does not vary it
	repeats  int
	seed     uint64
	drift    float64 // of the path, as a standard deviation of a block's rate
	noise    func(*rand.Rand) float64
	pps      func(variant string, frame int) float64
	busy     func(variant string, frame int) float64 // nil: the router is not watched
}

func usual() bench {
	return bench{
		id: "20261121-100000-aaaa", target: "lab:nat", frames: []int{64, 1518}, variants: []string{"plain", "log"}, repeats: 5, seed: 1,
		noise: func(r *rand.Rand) float64 { return 0.01 * r.NormFloat64() },
		pps: func(variant string, frame int) float64 {
			pps := map[string]float64{"plain": 673e3, "log": 148e3, "queue": 673e3}[variant]
			return min(pps, 1e9/float64((frame+20)*8))
		},
		busy: func(variant string, frame int) float64 {
			return map[string]float64{"plain": 0.5, "log": 0.62, "queue": 0.5}[variant]
		},
	}
}

func (b bench) document() model.Document {
	random := rand.New(rand.NewPCG(b.seed, 7))
	d := model.Document{
		Format: model.RunFormat, ID: b.id, Started: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).Add(b.start), Tool: model.Tool{Version: "0.1.0"}, Complete: true,
		Plan: model.Plan{Format: model.PlanFormat, Command: "router", Target: b.target, Engine: "auto", Design: model.Design{Kind: "list", Repeats: b.repeats}, Timing: model.Timing{MeasureSeconds: 3}},
		Host: []model.Host{{Node: model.Sender, Name: "desk"}},
	}
	variants := b.variants
	if len(variants) == 0 {
		variants = []string{""}
	}
	for _, v := range b.variants {
		d.Plan.Variants = append(d.Plan.Variants, model.Variant{Name: v})
	}
	for block := range b.repeats {
		level := math.Exp(b.drift * random.NormFloat64())
		for _, frame := range b.frames {
			for _, v := range variants {
				c := model.Cell{"frame_bytes": model.Number(float64(frame)), "direction": model.Word("up"), "protocol": model.Word("udp")}
				if v != "" {
					c["variant"] = model.Word(v)
				}
				if block == 0 {
					d.Plan.Design.Cells = append(d.Plan.Design.Cells, c)
				}
				pps := b.pps(v, frame) * level * math.Exp(b.noise(random))
				sent := 1.1 * b.pps("plain", frame)
				f := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: frame - 46, FrameBytes: frame, Streams: 1, DurationS: 3,
					Attempted: uint64(sent * 3), Received: uint64(pps * 3), LossRatio: max(0, 1-pps/sent), SendPPS: sent, ReceivePPS: pps, GoodputBPS: pps * float64(frame-46) * 8,
					Delay: &model.Percentiles{Count: 1000, P50: 90e3 * math.Exp(5*b.noise(random)), P99: 400e3 * math.Exp(10*b.noise(random))}}
				r := model.Result{Cell: c, Repeat: block, State: model.Valid, Engine: "udp", Flows: []model.FlowResult{f}}
				if b.busy != nil {
					busy := b.busy(v, frame) * math.Exp(b.noise(random))
					r.Router = &model.RouterWatch{Node: "router", Samples: 3, CPU: &model.CPUSplit{Core: -1, Idle: 1 - busy, Softirq: 0.9 * busy, System: 0.1 * busy}}
				}
				d.Results = append(d.Results, r)
			}
		}
	}
	return d
}

func all() Metrics {
	m, err := ParseMetrics(DefaultMetrics)
	if err != nil {
		panic(err)
	}
	return m
}
