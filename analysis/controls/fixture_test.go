package controls

import (
	"math"
	"math/rand/v2"
	"testing"

	"pelt/model"
	"pelt/unit"
)

// duel is a run of pelt cc whose truth is known:
//
//	sender --- loss --- receiver
type duel struct {
	controls []string
	losses   []float64
	repeats  int
	most     int     // repeats, of a run that goes on until its cells are told apart
	bytes    uint64  // 0: as many as fit in the time
	limit    float64 // s, of a trial
	seed     uint64
	// took is how long a transfer takes, in s, or its goodput in bit/s without bytes.
	took   func(control string, loss float64, repeat int, random *rand.Rand) float64
	plan   func(*model.Plan)
	change func(*model.Result)
}

func (d duel) document() model.Document {
	random := rand.New(rand.NewPCG(d.seed, 3))
	doc := model.Document{Format: model.RunFormat, Plan: model.Plan{
		Format: model.PlanFormat, Command: "cc", Target: "lab:direct",
		Flows:  []model.Flow{{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, PayloadBytes: 128 << 10, Streams: 1, Bulk: true, Bytes: d.bytes}},
		Design: model.Design{Kind: "grid", Repeats: d.repeats, MostRepeats: d.most},
		Timing: model.Timing{MeasureSeconds: 120},
	}, Lab: &model.LabFacts{Topology: "direct", Nodes: []string{model.Sender, model.Receiver}}}
	var control, loss model.Factor
	for _, c := range d.controls {
		control.Levels = append(control.Levels, model.Word(c))
	}
	for _, p := range d.losses {
		loss.Levels = append(loss.Levels, model.Number(p))
	}
	control.Knob, loss.Knob = "control", "link.loss_ratio"
	doc.Plan.Factors = []model.Factor{control}
	if len(d.losses) > 0 {
		doc.Plan.Factors = append(doc.Plan.Factors, loss)
	}
	if d.plan != nil {
		d.plan(&doc.Plan)
	}
	losses := d.losses
	if len(losses) == 0 {
		losses = []float64{math.NaN()}
	}
	for repeat := range max(d.repeats, d.most) {
		for _, p := range losses {
			for _, c := range d.controls {
				doc.Results = append(doc.Results, d.result(c, p, repeat, random))
			}
		}
	}
	return doc
}

func (d duel) result(control string, loss float64, repeat int, random *rand.Rand) model.Result {
	cell := model.Cell{"control": model.Word(control)}
	if !math.IsNaN(loss) {
		cell["link.loss_ratio"] = model.Number(loss)
	}
	x := d.took(control, loss, repeat, random)
	tcp := &model.TCPFacts{Control: control, SegmentSizeBytes: 1448, SegmentsOut: 1000, BusyS: 10, RTTNanos: 25e6}
	f := model.FlowResult{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, Streams: 1, TCP: tcp}
	if d.bytes > 0 {
		tcp.Completion = &model.Completion{Bytes: d.bytes, Done: true, Seconds: x, By: model.ByRead}
		tcp.ReceivedBytes = d.bytes
		if d.limit > 0 && x > d.limit {
			tcp.Completion.Done, tcp.Completion.Seconds = false, d.limit
			tcp.ReceivedBytes = uint64(float64(d.bytes) * d.limit / x)
		}
	} else {
		f.GoodputBPS = x
	}
	r := model.Result{Cell: cell, Repeat: repeat, State: model.Valid, Flows: []model.FlowResult{f}}
	if loss > 0 {
		frames, lost := uint64(100000), uint64(100000*loss)
		r.Links = []model.LinkResult{{From: model.Sender, To: model.Receiver, Frames: frames, Lost: &lost, AskedRatio: loss}, {From: model.Receiver, To: model.Sender, Frames: 5000, AskedRatio: 0.5}}
	}
	if d.change != nil {
		d.change(&r)
	}
	return r
}

// spread is a figure that scatters by a ratio, the same for a repeat of any control.
func spread(middle, ratio float64, random *rand.Rand) float64 {
	return middle * math.Exp(ratio*random.NormFloat64())
}

// known are the medians of the published field report, here with 640 MB: under loss
// bbr is many times as fast, without any it is not.
func known(control string, loss float64, repeat int, random *rand.Rand) float64 {
	middle := map[string]map[float64]float64{
		"cubic": {0: 0.7, 0.01: 5.4, 0.1: 50}, "bbr": {0: 0.7, 0.01: 0.71, 0.1: 7.4}, "reno": {0: 0.7, 0.01: 5.6, 0.1: 51},
	}[control][loss]
	return spread(middle, 0.05, random)
}

func table(t *testing.T, doc model.Document) *model.ControlTable {
	t.Helper()
	got := Table(doc)
	if got == nil {
		t.Fatal("no table")
	}
	return got
}

func near1(got, want, ratio float64) bool { return math.Abs(got-want) <= ratio*math.Abs(want) }

func linkRate(rate unit.BitRate) func(*model.Plan) {
	return func(p *model.Plan) { p.Links = []model.Link{{Rate: rate}} }
}
