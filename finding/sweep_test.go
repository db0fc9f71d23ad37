package finding

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

// star is one sender and receivers whose links lose each IP packet with the same chance,
// and let what is left through at their rate.
type star struct {
	payloads  []int
	intervals []float64 // ms between packets to one receiver; 0 sends 30 times what the links take
	repeats   int
	receivers int
	rate      float64 // of each link, bit/s
	loss      float64 // of one IP packet
	noise     float64 // largest of a trial, as a share
	random    func(i int) float64
	change    func(i int, r *model.Result)
}

func usualStar() star {
	return star{payloads: []int{256, 1024, 1280, 1472, 2000, 4352}, intervals: []float64{0, 5, 9, 12}, repeats: 3,
		receivers: 100, rate: 1e6, loss: 0.05, noise: 0.0005}
}

func (s star) with(change func(*star)) star {
	change(&s)
	return s
}

func (s star) doc() *model.Document {
	d := &model.Document{ID: "abc", Plan: model.Plan{Command: "sweep", Target: "lab:star", Receivers: s.receivers,
		Design: model.Design{Repeats: s.repeats}, Flows: []model.Flow{{Name: "up", Protocol: model.UDP, Packets: 1000}},
		Links: []model.Link{{Node: model.Receiver, Toward: model.Receiver, Rate: unit.BitRate(s.rate),
			LossRatio: s.loss}}},
		Host: []model.Host{{Node: model.Sender, MTUBytes: 1500}}}
	size, gap := model.Factor{Knob: "payload_bytes"}, model.Factor{Knob: "interval_ns"}
	for _, p := range s.payloads {
		size.Levels = append(size.Levels, model.Number(float64(p)))
	}
	for _, ms := range s.intervals {
		gap.Levels = append(gap.Levels, model.Number(ms*1e6))
	}
	d.Plan.Factors = []model.Factor{size, gap}
	if s.random == nil {
		s.random = func(i int) float64 { return math.Mod(math.Abs(math.Sin(float64(i+1)*12.9898)*43758.5453), 1) }
	}
	for repeat := range s.repeats {
		for _, p := range s.payloads {
			for _, ms := range s.intervals {
				noise := 1 + s.noise*(2*s.random(len(d.Results))-1)
				r := model.Result{Repeat: repeat, State: model.Valid, Engine: "udp",
					Flows: []model.FlowResult{s.flow(p, ms, noise)},
					Cell:  model.Cell{"payload_bytes": model.Number(float64(p)), "interval_ns": model.Number(ms * 1e6)}}
				if s.change != nil {
					s.change(len(d.Results), &r)
				}
				d.Results = append(d.Results, r)
			}
		}
	}
	return d
}

func (s star) flow(payload int, ms, noise float64) model.FlowResult {
	n := model.Fragments(4, payload, 1500)
	lost := 1 - math.Pow(1-s.loss, float64(n))
	most := float64(s.receivers) * s.rate * float64(payload) / float64(payload+8+n*34)
	sent := 30 * most
	if ms > 0 {
		sent = float64(s.receivers*payload*8) / ms * 1e3
	}
	f := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver,
		PayloadBytes: payload,
		FrameBytes: model.FrameBytes(model.UDP, 4,
			payload), Streams: 1, Attempted: uint64(1000 * s.receivers), SendGoodputBPS: sent}
	if n > 1 {
		f.Fragments = n
	}
	f.GoodputBPS = min(sent*(1-lost), most*(1-lost)/(1-s.loss)) * noise
	f.Lost = uint64(math.Round(float64(f.Attempted) * lost))
	f.Received = f.Attempted - f.Lost
	f.LossRatio = float64(f.Lost) / float64(f.Attempted)
	f.ReceivePPS, f.SendPPS = f.GoodputBPS/8/float64(payload), sent/8/float64(payload)
	f.DurationS = float64(f.Attempted) / f.SendPPS
	f.Ledger.Lost = f.Lost
	if f.Lost > 0 {
		f.Ledger.Lines = []model.Line{{Layer: model.LayerNetwork, Host: "links to receivers",
			Cause: model.CauseLinkLoss, Packets: f.Lost}}
	}
	for i := range s.receivers {
		f.Receivers = append(f.Receivers, model.ReceiverShare{Node: fmt.Sprintf("receiver-%d", i+1), Attempted: 1000,
			Received: f.Received / uint64(s.receivers), GoodputBPS: f.GoodputBPS / float64(s.receivers)})
	}
	return f
}

func sweepExamples(*testing.T) []example {
	usual := usualStar()
	trial := func(change func(i int, r *model.Result)) func(*star) { return func(s *star) { s.change = change } }
	sizes := func(payloads []int, ms ...float64) func(*star) {
		return func(s *star) { s.payloads, s.intervals = payloads, ms }
	}
	command := usual.with(sizes([]int{1472}, 5)).doc()
	command.Arguments = []string{"sweep", "lab:star", "--variant", "a 'b' $c", "\x1b[2J"}
	zeros := usual.with(sizes([]int{1472}, 5)).doc() // repeats of which most are 0 have no spread that is a share
	zeros.Results[0].Flows[0].GoodputBPS, zeros.Results[1].Flows[0].GoodputBPS = 0, 0
	docs := map[string]*model.Document{"repeats of zero": zeros, "typed": command, "conditions": conditionsDoc(1e6),
		"two conditions": conditionsDoc(3e6), "waste": wasteDoc()}
	for name, change := range map[string]func(*star){
		// 9 ms offer 114 Mbit/s of 1280 B, of which 95 % fill the links; 12 ms of 1472 B do not
		"usual": func(*star) {},
		"once":  func(s *star) { s.repeats = 1 },
		"some trials invalid": trial(func(i int, r *model.Result) {
			if r.Repeat > 0 || i == 0 {
				r.State = model.Invalid
			}
		}),
		"invalid trials are not single ones": trial(func(i int, r *model.Result) {
			if r.Repeat > 0 {
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
		"one setting": sizes([]int{1472}, 5),
		"one is best": sizes([]int{256, 1472}, 9),
		"whole only":  func(s *star) { s.payloads = []int{256, 512} },
		"unequal receivers": func(s *star) {
			s.receivers = 4
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
		"all invalid": trial(func(_ int, r *model.Result) { r.State = model.Invalid }),
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
func conditionsDoc(rate float64) *model.Document {
	lossy, clean := usualStar(), usualStar()
	lossy.intervals, clean.intervals, clean.loss, clean.rate = []float64{5, 9, 12}, []float64{5, 9, 12}, 0, rate
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
