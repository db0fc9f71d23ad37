package finding

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pelt/design"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

// searchedDoc is a search of one size, by what a trial of a rate gives; 0 is the flood.
func searchedDoc(t *testing.T, carry func(pps float64, f *model.FlowResult)) []table.Row {
	t.Helper()
	return table.Rows(searchedTimes(t, 1, carry))
}

// searchedTimes is a run of several searches.
func searchedTimes(t *testing.T, times int, carry func(pps float64, f *model.FlowResult)) *model.Document {
	t.Helper()
	quick, _ := model.NamedGoal("quick")
	d := &model.Document{ID: "abc", Plan: model.Plan{Format: model.PlanFormat, Command: "ndr", Target: "192.0.2.7",
		Flows:  []model.Flow{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 18, Streams: 1}},
		Design: model.Design{Repeats: 1, Search: &model.Search{Goals: []model.Goal{quick}, MinPPS: 1000, Searches: times}},
		Timing: model.Timing{MeasureSeconds: 1}, Engine: "auto"}}
	choose, err := design.New(d.Plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	for {
		cell, repeat, more := choose.Next(d.Results)
		if !more {
			return d
		}
		f := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 18, FrameBytes: 64,
			Streams: 1, DurationS: max(cell["measure_s"].Number, 0.1)}
		sent := cell["rate_pps"].Number
		if sent == 0 {
			sent = 1e6
		}
		f.Attempted, f.SendPPS = uint64(sent*f.DurationS), sent
		carry(cell["rate_pps"].Number, &f)
		f.Received, f.LossRatio = f.Attempted-f.Lost, float64(f.Lost)/float64(f.Attempted)
		f.ReceivePPS = float64(f.Received) / f.DurationS
		state := model.Valid
		if sent > f.SendPPS {
			state = model.Invalid
		}
		d.Results = append(d.Results, model.Result{Cell: cell, Repeat: repeat, State: state, Flows: []model.FlowResult{f}})
	}
}

// over loses what is above a rate in a layer of the path.
func over(limit float64, layer string) func(float64, *model.FlowResult) {
	return func(_ float64, f *model.FlowResult) {
		f.Lost = uint64(max(0, f.SendPPS-limit) * f.DurationS)
		f.Ledger.Lines = []model.Line{{Layer: layer, Host: model.Receiver, Cause: "SOCKET_RCVBUFF", Packets: f.Lost}}
		if layer == model.LayerNetwork {
			f.Ledger.Lines[0].Host, f.Ledger.Lines[0].Cause = "router", "ring-full"
		}
	}
}

func TestLossFreeSays(t *testing.T) {
	burst, trials := over(250e3, model.LayerNetwork), 0
	for name, c := range map[string]struct {
		carry func(float64, *model.FlowResult)
		want  []string
	}{
		"path": {over(250e3, model.LayerNetwork), []string{"Loss-free to 2", "saturates at 250 kpps", "The first losses are: device ring at router full."}},
		"receiver": {over(250e3, model.LayerReceiverBuffer), []string{"Loss-free to at least 2", "receiver's host loses packets (receiver socket buffer full)",
			"pelt tune advise"}},
		"sender": {over(2e6, model.LayerNetwork), []string{"Loss-free to at least 1.00 Mpps. The sender was the limit."}},
		"starved": {func(_ float64, f *model.FlowResult) {
			if trials++; trials%4 != 1 {
				f.SendPPS /= 2
			}
		}, []string{"No rate without loss was found: the sender was the limit"}},
		"a deep queue": {func(pps float64, f *model.FlowResult) {
			if pps == 0 {
				f.Lost = f.Attempted - 800
			} else {
				f.DurationS *= 1.5 // until all had come
			}
		}, []string{"No rate without loss was found: even at 1 kpps a queue grows"}},
		"everywhere": {func(_ float64, f *model.FlowResult) { f.Lost = f.Attempted / 10 },
			[]string{"No rate without loss was found: even 1 kpps loses 10 %"}},
		"random": {func(pps float64, f *model.FlowResult) {
			over(500e3, model.LayerNetwork)(pps, f)
			f.Lost += f.Attempted / 1000
		}, []string{"random loss, not too high a rate", "--max-loss 0.5%"}},
		"burst": {func(pps float64, f *model.FlowResult) {
			if burst(pps, f); f.Lost > 0 && pps > 0 {
				f.Lost = 100
				f.Ledger.Lines[0].Packets, f.Ledger.Lines[0].Sequences = 100, []model.Span{{From: 5000, Count: 100}}
			}
		}, []string{"a stall of a host or of the router, maybe not the rate"}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			for _, f := range LossFree(searchedDoc(t, c.carry)) {
				all = append(all, f.Text(), f.Command())
			}
			text := strings.Join(all, "\n")
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("said\n%s\nwithout %q", text, want)
				}
			}
		})
	}
}

// Where trials went wrong that the sender is not to blame for, it is no limit.
func TestTrialsAboveWentWrong(t *testing.T) {
	d := searchedTimes(t, 1, func(pps float64, f *model.FlowResult) {
		if pps > 200e3 {
			f.SendPPS = 0 // invalid
		}
	})
	for i := range d.Results {
		if d.Results[i].State == model.Invalid {
			d.Results[i].Why = model.Reasons{{Code: model.LinkBehind, Link: "sender to router"}}
		}
	}
	searches := table.Searches(table.Rows(d))
	f := LossFree(table.Rows(d))[0]
	if text := f.Text(); !strings.Contains(text, "Loss-free to at least 1") || strings.Contains(text, "The sender was the limit") ||
		!strings.Contains(text, "Trials above that were invalid: the emulated link sender to router fell behind") {
		t.Error(text)
	}
	none := searchedTimes(t, 1, func(pps float64, f *model.FlowResult) {
		if pps > 0 {
			f.SendPPS = 0
		}
	})
	for i := range none.Results {
		if none.Results[i].State == model.Invalid {
			none.Results[i].Why = model.Reasons{{Code: model.LinkBehind, Link: "sender to router"}}
		}
	}
	if text := LossFree(table.Rows(none))[0].Text(); !strings.Contains(text, "was found: the emulated link") {
		t.Error(text)
	}
	if limit := SearchLimit(searches[0]); limit != limitNames[byUnknown] {
		t.Errorf("limited by %q", limit)
	}
}

// Rates that hold and fail are never printed alike.
func TestBoundsDiffer(t *testing.T) {
	searches := table.Searches(searchedDoc(t, over(15e3, model.LayerNetwork)))
	searches[0].Search.Lower, searches[0].Search.Upper = 15.26e3, 15.34e3
	text := lossFree(table.By(searches)[0], false)[0].Text()
	if !strings.Contains(text, "(holds at 15.3 kpps, fails just above)") {
		t.Error(text)
	}
}

// A plan that allows no higher rate is the limit, not the sender.
func TestNoHigherRateAsked(t *testing.T) {
	d := searchedTimes(t, 1, over(2e6, model.LayerNetwork))
	d.Plan.Flows[0].Rate = unit.PacketRate(1e6)
	text := LossFree(table.Rows(d))[0].Text()
	if !strings.HasPrefix(text, "Loss-free to at least 1.00 Mpps") || !strings.HasSuffix(text, "No higher rate was tried (--rate).") {
		t.Error(text)
	}
}

// What is lost at random at every rate is told from a limit, and a limit is not taken for random loss.
func TestRandomLossIsNoLimit(t *testing.T) {
	for _, f := range LossFree(searchedDoc(t, over(250e3, model.LayerNetwork))) {
		if f.Code == "free.random" || f.Code == "free.burst" {
			t.Errorf("a plain limit is called %s", f.Code)
		}
	}
	found := LossFree(searchedDoc(t, func(_ float64, f *model.FlowResult) { f.Lost = (f.Attempted + 499) / 500 }))
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Code == "free.random" })
	if i < 0 {
		t.Fatal("loss at every rate is not called random")
	}
	if v, _ := found[i].Number("loss_ratio", "typical"); math.Abs(v-0.002) > 0.0002 {
		t.Errorf("typical loss %v, want 0.002", v)
	}
}

// Searches of two runs are compared by the rates that they found, beside the floods.
func TestCompareSearches(t *testing.T) {
	noisy := func(limit float64) func(float64, *model.FlowResult) {
		return func(pps float64, f *model.FlowResult) {
			over(limit*(1+0.002*math.Mod(f.SendPPS, 3)), model.LayerNetwork)(pps, f)
		}
	}
	a, b := searchedTimes(t, 3, noisy(250e3)), searchedTimes(t, 3, noisy(200e3))
	b.ID = "def"
	c, err := Compare(Question{Docs: []*model.Document{a, b}, Metrics: table.Named("loss_free")})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Effects) != 1 || c.Effects[0].Verdict != table.WorseThan || math.Abs(c.Effects[0].Change+0.2) > 0.03 {
		t.Errorf("effects %+v; want one, about 20 %% worse", c.Effects)
	}
}

// A search that ends with bounds further apart than its goal asks is marked.
func TestIrregularSearch(t *testing.T) {
	searches := table.Searches(searchedDoc(t, over(250e3, model.LayerNetwork)))
	doubts := func() []Finding { return Of(lossFree(table.By(searches)[0], true), Doubt) }
	if d := doubts(); len(d) != 0 {
		t.Errorf("a regular search has the doubts %v", d)
	}
	searches[0].Search.Regular = false
	if d := doubts(); len(d) != 1 || !strings.Contains(d[0].Text(), "more than 1 % apart") {
		t.Errorf("an irregular search has the doubts %v", d)
	}
}
