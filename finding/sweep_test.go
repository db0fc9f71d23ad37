package finding

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
)

// star is a sweep of which trials are changed.
type star struct {
	sample.Star
	change func(i int, r *model.Result)
}

func usualStar() star {
	return star{Star: sample.Star{Sizes: []int{256, 1024, 1280, 1472, 2000, 4352}, IntervalMS: []float64{0, 5, 9, 12},
		Repeats: 3, Receivers: 100, Rate: 1e6, Loss: 0.05, Spread: 0.0005}}
}

func (s star) with(change func(*star)) star {
	change(&s)
	return s
}

func (s star) doc() *model.Document {
	d := s.Sweep()
	d.ID, d.Lab, d.Plan.Links[0].Toward = "abc", nil, model.Receiver
	for i := range d.Results {
		if d.Results[i].Flows[0].To = model.Receiver; s.change != nil {
			s.change(i, &d.Results[i])
		}
	}
	return &d
}

func sweepExamples(*testing.T) []example {
	usual := usualStar()
	trial := func(change func(i int, r *model.Result)) func(*star) { return func(s *star) { s.change = change } }
	sizes := func(payloads []int, ms ...float64) func(*star) {
		return func(s *star) { s.Sizes, s.IntervalMS = payloads, ms }
	}
	command := usual.with(sizes([]int{1472}, 5)).doc()
	command.Arguments = []string{"sweep", "lab:star", "--variant", "a 'b' $c", "\x1b[2J"}
	docs := map[string]*model.Document{"typed": command, "two conditions": conditionsDoc(), "waste": wasteDoc()}
	for name, change := range map[string]func(*star){
		// 9 ms offer 114 Mbit/s of 1280 B, of which 95 % fill the links; 12 ms of 1472 B do not
		"usual": func(*star) {},
		"once":  func(s *star) { s.Repeats = 1 },
		"some trials invalid": trial(func(i int, r *model.Result) {
			if r.Repeat > 0 || i == 0 {
				r.State = model.Invalid
			}
		}),
		"a receiver of the fastest setting gets nothing": func(s *star) {
			sizes([]int{256, 1472}, 9)(s)
			trial(func(_ int, r *model.Result) {
				if f := &r.Flows[0]; f.PayloadBytes == 1472 {
					f.DeadStreams = []model.DeadStream{{Stream: 0, Asked: 8}}
				}
			})(s)
		},
		"one is best": sizes([]int{256, 1472}, 9),
		"unequal receivers": func(s *star) {
			s.Receivers = 4
			s.change = func(_ int, r *model.Result) {
				for i, share := range []float64{1.5, 1.5, 0.9, 0.1} {
					if r.Cell["interval_ns"].Number == 0 {
						r.Flows[0].Receivers[i].GoodputBPS *= share
					}
				}
			}
		},
		"all within 4 ms": trial(func(_ int, r *model.Result) {
			f := &r.Flows[0]
			f.Received = f.Attempted
			f.ReceivePPS = float64(f.Received) / 0.004
		}),
		"dead": trial(func(_ int, r *model.Result) {
			f := &r.Flows[0]
			f.GoodputBPS, f.ReceivePPS, f.Received, f.Lost, f.LossRatio = 0, 0, 0, f.Attempted, 1
		}),
	} {
		docs[name] = usual.with(change).doc()
	}
	fast := usual.doc() // what is faster than a link was a burst
	fast.Lab = &model.LabFacts{}
	docs["beyond a link"] = edited(fast, func(f *model.FlowResult) { f.GoodputBPS *= 1.1 })
	return examplesOf(docs, sweepRule, repeatsRule("goodput_bps"), beyondRule, commandRule)
}

// conditionsDoc has settings under two conditions: nobody chooses what a path is like, so settings of different paths
// are not compared.
func conditionsDoc() *model.Document {
	lossy, clean := usualStar(), usualStar()
	lossy.IntervalMS, clean.IntervalMS, clean.Loss, clean.Rate = []float64{5, 9, 12}, []float64{5, 9, 12}, 0, 3e6
	d := lossy.doc()
	for i := range d.Results {
		d.Results[i].Cell["link.loss_ratio"] = model.Number(0.05)
	}
	for _, r := range clean.doc().Results {
		r.Cell["link.loss_ratio"] = model.Number(0)
		d.Results = append(d.Results, r)
	}
	return d
}

// wasteDoc is a run whose best setting under both conditions sends much in vain under one: that is no waste.
func wasteDoc() *model.Document {
	d := &model.Document{Plan: model.Plan{Command: "sweep", Flows: []model.Flow{{Name: "up", Protocol: model.UDP}}}}
	for _, x := range []struct{ loss, payload, goodput, sent float64 }{
		{0, 100, 1e8, 1e8}, {0, 200, 1e8, 2e8}, {0.1, 100, 5e7, 1e8}, {0.1, 200, 9e7, 2e8}} {
		for repeat := range 3 {
			d.Results = append(d.Results, model.Result{Repeat: repeat, State: model.Valid,
				Cell: model.Cell{"link.loss_ratio": model.Number(x.loss), "payload_bytes": model.Number(x.payload)},
				Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP, PayloadBytes: int(x.payload),
					Attempted: 1000,
					DurationS: 1, GoodputBPS: x.goodput, SendGoodputBPS: x.sent}}})
		}
	}
	return d
}

// TestConditionsShareFalseAlarms counts runs of ten conditions in which any setting is told from another though all are
// alike: 5 % of runs, and two standard deviations that chance adds.
func TestConditionsShareFalseAlarms(t *testing.T) {
	const runs = 200
	r, times := rand.New(rand.NewPCG(3, 4)), 0
	for range runs {
		d := &model.Document{Plan: model.Plan{Command: "sweep"}}
		for cell := range 90 {
			payload, loss := model.Number(float64(100+cell%3)), model.Number(float64(cell/3%10)/100)
			d.Results = append(d.Results, model.Result{Repeat: cell / 30, State: model.Valid,
				Cell: model.Cell{"payload_bytes": payload, "link.loss_ratio": loss},
				Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP, PayloadBytes: int(payload.Number),
					Attempted: 1000, DurationS: 1, GoodputBPS: 1e6 * math.Exp(0.05*r.NormFloat64())}}})
		}
		rankings := Rankings(table.Rows(d))
		if len(rankings) != 10 || len(rankings[0].Places) != 3 {
			t.Fatalf("%d conditions; want 10 of three settings", len(rankings))
		}
		if slices.ContainsFunc(rankings, func(c Ranking) bool {
			return slices.ContainsFunc(Effects(c.Places), func(e table.Effect) bool {
				return e.Verdict == table.WorseThan || e.Verdict == table.BetterThan
			})
		}) {
			times++
		}
	}
	t.Logf("%d of %d runs", times, runs)
	if most := int(0.05*runs + 2*math.Sqrt(0.05*0.95*runs)); times > most {
		t.Errorf("%d of %d runs tell settings apart that are alike; want at most %d", times, runs, most)
	}
}
