package sample

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"pelt/model"
)

// likeThese are the documents whose figures the property tests change.
var likeThese = map[string]func() model.Document{
	"curve": Router, "curve both": Both, "curve tcp": TCP, "curve rates": Rates,
	"curve loss": Loss, "curve streams": Streams, "curve roundtrip": RoundTrip,
	"sweep": SmallSweep, "sweep both": func() model.Document { return as("sweep", Both()) },
	"sweep tcp":   func() model.Document { return as("sweep", TCP()) },
	"sweep rates": func() model.Document { return as("sweep", Rates()) },
	"star":        ConditionSweep, "cc": Controls, "cc mix": ControlMix,
	"cc hostile": ControlHostile,
	"router":     Bench, "router lab": BenchLab, "router variants": Variants, "soak": Soak, "latency": Latency,
	"mesh": Mesh, "mesh cycles": MeshCycles,
	"soak long": LongSoak, "soak cut": CutSoak,
}

// Any draws a run of any kind: one to six repeats, some cells or one, trials that are
// invalid or cut, and figures that repeat well or badly.
func Any(t *rapid.T) model.Document {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(likeThese))).Draw(t, "like")
	d := likeThese[name]()
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	spread := rapid.SampledFrom([]float64{0, 0.005, 0.05, 0.5}).Draw(t, "spread")
	lost := rapid.SampledFrom([]float64{-1, 0, 1e-5, 0.02, 0.6, 1}).Draw(t, "lost") // -1: as they are
	unfit := rapid.SampledFrom([]float64{0, 0, 0.2, 0.7, 1}).Draw(t, "unfit")
	if strings.HasPrefix(name, "soak") {
		unfit = min(unfit, 0.5)
	}
	repeats := rapid.IntRange(1, 6).Draw(t, "repeats")
	cells := cellsOf(d.Results)
	kept := cells
	if rapid.Bool().Draw(t, "few cells") {
		kept = rapid.SliceOfNDistinct(rapid.SampledFrom(cells), 1, min(3, len(cells)), rapid.ID).Draw(t, "cells")
	}
	var results []model.Result
	for repeat := range repeats {
		for _, cell := range kept {
			of := slices.DeleteFunc(slices.Clone(d.Results),
				func(q model.Result) bool { return fmt.Sprint(q.Cell) != cell })
			again := of[repeat%len(of)]
			again.Repeat, again.Flows = repeat, slices.Clone(again.Flows)
			for i := range again.Flows {
				vary(r, &again.Flows[i], spread, lost)
			}
			if r.Float64() < unfit {
				again.State = []model.State{model.Invalid, model.Aborted}[r.IntN(2)]
				again.Why = model.Reasons{{Code: model.Interrupted}}
				if again.State == model.Aborted && r.IntN(2) == 0 {
					again.Flows = nil
				}
			}
			results = append(results, again)
		}
	}
	d.Results, d.Plan.Design.Repeats = results, repeats
	return d
}

// cellsOf are the cells of trials, in their order.
func cellsOf(results []model.Result) []string {
	var out []string
	for _, r := range results {
		if cell := fmt.Sprint(r.Cell); !slices.Contains(out, cell) {
			out = append(out, cell)
		}
	}
	return out
}

// vary changes the figures of a flow and keeps its account balanced.
func vary(r *rand.Rand, f *model.FlowResult, spread, lost float64) {
	by := math.Exp(spread * r.NormFloat64())
	if f.Protocol == model.TCP {
		f.GoodputBPS, f.SendGoodputBPS = f.GoodputBPS*by, f.SendGoodputBPS*by
		if f.TCP != nil && f.TCP.Completion != nil {
			again, done := *f.TCP, *f.TCP.Completion
			done.Seconds /= by
			again.Completion = &done
			f.TCP = &again
		}
		return
	}
	share := f.LossRatio * by
	if lost >= 0 {
		share = lost * by
	}
	share = min(share, 1)
	total := func(n uint64) uint64 { return uint64(math.Round(float64(n) * share)) }
	f.Attempted = uint64(float64(f.Attempted) * math.Exp(spread*r.NormFloat64()/3))
	f.Planned, f.Accepted, f.Lost = f.Attempted, f.Attempted, total(f.Attempted)
	if len(f.Receivers) > 0 {
		f.Receivers, f.Attempted, f.Lost = slices.Clone(f.Receivers), 0, 0
		for i := range f.Receivers {
			one := &f.Receivers[i]
			one.Received = one.Attempted - total(one.Attempted)
			f.Attempted, f.Lost = f.Attempted+one.Attempted, f.Lost+total(one.Attempted)
		}
	}
	f.Received = f.Attempted - f.Lost
	f.LossRatio = float64(f.Lost) / float64(max(f.Attempted, 1))
	f.SendPPS = float64(f.Attempted) / f.DurationS
	f.ReceivePPS = float64(f.Received) / f.DurationS
	bits := 8 * float64(f.PayloadBytes)
	f.SendGoodputBPS, f.GoodputBPS = f.SendPPS*bits, f.ReceivePPS*bits
	for i := range f.Receivers {
		f.Receivers[i].GoodputBPS = float64(f.Receivers[i].Received) / f.DurationS * bits
	}
	f.SenderCPU.ThreadRatio, f.ReceiverCPU.ThreadRatio = r.Float64(), r.Float64()
	f.Ledger.Lost, f.Ledger.Unattributed = f.Lost, f.Lost
	f.Ledger.Lines = slices.Clone(f.Ledger.Lines)
	for i := range f.Ledger.Lines {
		n := min(total(f.Ledger.Lines[i].Packets), f.Ledger.Unattributed)
		f.Ledger.Lines[i].Packets, f.Ledger.Unattributed = n, f.Ledger.Unattributed-n
	}
}

func as(command string, d model.Document) model.Document {
	d.Plan.Command = command
	return d
}

// Odd draws a run as Any does, in which a broken host told some figures.
func Odd(t *rapid.T) model.Document {
	d := Any(t)
	odd := rapid.SampledFrom([]float64{0, 1, -1, 1e9, 1e300, -1e300, 5e-324})             // a file holds no others
	sampled := rapid.SampledFrom([]float64{0, -1, math.NaN(), math.NaN(), 1e300, 5e-324}) // NaN: not sampled
	for i := range d.Results {
		r := &d.Results[i]
		if !rapid.Bool().Draw(t, "spoilt") {
			continue
		}
		for j := range r.Flows {
			f := &r.Flows[j]
			f.GoodputBPS, f.ReceivePPS, f.LossRatio = odd.Draw(t, "goodput"), odd.Draw(t, "received"), odd.Draw(t,
				"loss")
			f.SendPPS, f.DurationS, f.SenderCPU.ThreadRatio = odd.Draw(t, "sent"), odd.Draw(t, "seconds"), odd.Draw(t,
				"thread")
			f.Ledger.Lines = slices.Clone(f.Ledger.Lines)
			for k := range f.Ledger.Lines {
				l := &f.Ledger.Lines[k]
				*rapid.SampledFrom([]*string{&l.Layer, &l.Host, &l.Cause, &l.Confidence}).Draw(t, "missing") = ""
			}
		}
		r.Series = slices.Clone(r.Series)
		for j := range r.Series {
			s := &r.Series[j]
			if s.Values = slices.Clone(s.Values); len(s.Values) > 0 {
				s.Values[rapid.IntRange(0, len(s.Values)-1).Draw(t, "at")] = sampled.Draw(t, "value")
			}
		}
		r.Made = append(slices.Clone(r.Made),
			model.MadeChange{AtS: odd.Draw(t, "made"),
				Words: rapid.SampledFrom([]string{"link=loss=1%", "?"}).Draw(t, "words")})
		r.Gaps = append(slices.Clone(r.Gaps),
			model.ControlGap{StartS: odd.Draw(t, "gap"), DurationS: odd.Draw(t, "for")})
		r.Changes = append(slices.Clone(r.Changes),
			model.Change{Kind: model.ChangeShift, Metric: "lost_pps", Flow: "up", StartS: odd.Draw(t, "change"),
				EndS: odd.Draw(t, "end"), After: odd.Draw(t, "after")})
	}
	return d
}
