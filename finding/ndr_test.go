package finding

import (
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
	"pelt/unit"
)

// searchedDoc is a search of one size, by what a trial of a rate gives; 0 is the flood.
func searchedDoc(t *testing.T, carry func(pps float64, f *model.FlowResult)) []table.Row {
	t.Helper()
	return table.Rows(searchedTimes(t, 1, carry))
}

// searchedTimes is a run of several searches; invalid is why its invalid trials are.
func searchedTimes(t *testing.T, times int, carry func(pps float64, f *model.FlowResult),
	invalid ...model.Reason) *model.Document {
	t.Helper()
	quick, _ := model.NamedGoal("quick")
	d := sample.Base("192.0.2.7", []int{18}, 1, 1)
	d.ID, d.Host, d.Plan.Command, d.Plan.Factors = "abc", nil, "ndr", nil
	d.Plan.Timing = model.Timing{MeasureSeconds: 1}
	d.Plan.Design.Search = &model.Search{Goals: []model.Goal{quick}, MinPPS: 1000, Searches: times}
	d = sample.Searched(d, func(trial model.Trial, r *model.Result) {
		pps := trial.Cell["rate_pps"].Number
		sent := pps
		if sent == 0 {
			sent = 1e6
		}
		f := sample.UDP("up", 18, sent, sent, max(trial.Cell["measure_s"].Number, 0.1), 0)
		f.Planned, f.Accepted, f.SenderCPU, f.Ledger = 0, 0, model.CPU{}, model.Ledger{}
		carry(pps, &f)
		f.Received, f.LossRatio = f.Attempted-f.Lost, float64(f.Lost)/float64(f.Attempted)
		f.ReceivePPS = float64(f.Received) / f.DurationS
		f.GoodputBPS = f.ReceivePPS * 8 * 18
		if r.Flows = []model.FlowResult{f}; sent > f.SendPPS {
			r.State, r.Why = model.Invalid, invalid
		}
	})
	return &d
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

func lossFreeExamples(t *testing.T) (out []example) {
	burst, flooded, tried := over(250e3, model.LayerNetwork), false, 0
	flood := func(fill func(*model.FlowResult)) func(float64, *model.FlowResult) {
		return func(pps float64, f *model.FlowResult) {
			if pps == 0 {
				fill(f)
			}
		}
	}
	busy := func(thread, host float64) func(float64, *model.FlowResult) {
		return flood(func(f *model.FlowResult) { f.SenderCPU.ThreadRatio, f.SenderCPU.HostRatio = thread, host })
	}
	held := func(q *model.Queue) func(float64, *model.FlowResult) {
		return flood(func(f *model.FlowResult) {
			f.SenderCPU.ThreadRatio = 0.2
			f.Ledger.Pacing = []model.PacingLine{{Cause: model.PacingBackpressure, Host: model.Sender, HeldS: 0.7,
				Queue: q}}
		})
	}
	above := func(pps float64) func(float64, *model.FlowResult) { // trials above a rate are invalid
		return func(rate float64, f *model.FlowResult) {
			if rate > pps {
				f.SendPPS = 0
			}
		}
	}
	linked := func(node string, bits uint64) func(*model.Document) {
		return func(d *model.Document) {
			d.Host = []model.Host{{Node: node, Interface: "eth0", LinkSpeedBits: bits}}
		}
	}
	behind := func(d *model.Document) { // of a complete run
		for i := range d.Results {
			if d.Results[i].State == model.Invalid {
				d.Results[i].Why = model.Reasons{{Code: model.LinkBehind, Link: "sender to router",
					Numbers: map[string]float64{"late_ratio": 0.02, "overrun_frames": 0, "refused_frames": 3}}}
			}
		}
	}
	all := func(float64, *model.FlowResult) {}
	both := func(host []model.Host) func(*model.Document) {
		return func(d *model.Document) {
			d.Host = host
			down := d.Plan.Flows[0]
			down.Name, down.From, down.To = "down", down.To, down.From
			d.Plan.Flows = append(d.Plan.Flows, down)
			d.Plan.Factors = []model.Factor{{Knob: "direction",
				Levels: []model.Value{model.Word("up"), model.Word("down")}}}
			for _, r := range d.Results {
				r.Cell, r.Flows = maps.Clone(r.Cell), slices.Clone(r.Flows)
				r.Flows[0].Name = "down"
				d.Results = append(d.Results, r)
			}
			for i := range d.Results {
				d.Results[i].Cell["direction"] = model.Word(d.Results[i].Flows[0].Name)
			}
			testenv.Must(t, d.Plan.Check())
		}
	}
	for _, c := range []struct {
		name   string
		carry  func(float64, *model.FlowResult)
		change func(*model.Document)
	}{
		{"path", over(250e3, model.LayerNetwork), nil},
		{"receiver", over(250e3, model.LayerReceiverBuffer), nil},
		{"only the flood is kept", func(_ float64, f *model.FlowResult) {
			if flooded {
				f.SendPPS /= 2
			}
			flooded = true
		}, nil},
		{"a deep queue", func(pps float64, f *model.FlowResult) {
			if pps == 0 {
				f.Lost = f.Attempted - 800
			} else {
				f.DurationS *= 1.5 // until all had come
			}
		}, nil},
		{"loss everywhere", func(_ float64, f *model.FlowResult) { f.Lost = f.Attempted / 10 }, nil},
		{"a little loss everywhere", func(_ float64, f *model.FlowResult) { f.Lost = (f.Attempted + 499) / 500 }, nil},
		{"random loss and a limit", func(pps float64, f *model.FlowResult) {
			over(500e3, model.LayerNetwork)(pps, f)
			f.Lost += f.Attempted / 1000
		}, nil},
		{"a burst", func(pps float64, f *model.FlowResult) {
			if burst(pps, f); f.Lost > 0 && pps > 0 {
				f.Lost = 100
				f.Ledger.Lines[0].Packets, f.Ledger.Lines[0].Sequences = 100, []model.Span{{From: 5000, Count: 100}}
			}
		}, nil},
		{"single trials that differ", func(pps float64, f *model.FlowResult) {
			if limit := 250e3 - 50e3*float64(min(tried, 1)); pps == 0 || tried != 1 { // one trial loses nothing
				over(limit, model.LayerNetwork)(pps, f)
			}
			tried++
		}, nil},
		{"a full link", all, linked(model.Receiver, 7e8)},
		{"a faster link", busy(0.99, 0), linked(model.Receiver, 1e10)},
		{"the sender's host", busy(0.4, 0.98), nil},
		{"an idle sender", busy(0.3, 0), nil},
		{"a sender that was not read", all, nil},
		{"a shaper", held(&model.Queue{Kind: "tbf", Interface: "eth0", RateBPS: 50e6}), nil},
		{"a card", held(&model.Queue{Kind: "fq_codel", Interface: "eth0"}), linked(model.Sender, 1e11)},
		{"another queue", held(&model.Queue{Kind: "htb", Interface: "eth0"}), nil},
		{"a late sender", func(pps float64, f *model.FlowResult) {
			if f.Planned = f.Attempted; pps > 200e3 {
				f.Ledger.Pacing = []model.PacingLine{{Cause: model.PacingLate, Host: model.Sender,
					Packets: f.Planned / 50}}
			}
		}, nil},
		{"both directions", all, both(nil)},
		{"both directions on one link", all, both([]model.Host{{Node: model.Receiver, LinkSpeedBits: 7e8}})},
		{"trials above went wrong", above(200e3), behind},
		{"all trials went wrong", above(0), behind},
		{"no higher rate was asked", over(2e6, model.LayerNetwork),
			func(d *model.Document) { d.Plan.Flows[0].Rate = unit.PacketRate(1e6) }},
	} {
		d := searchedTimes(t, 1, c.carry)
		if c.change != nil {
			c.change(d)
		}
		rows := table.Rows(d)
		out = append(out, example{fmt.Sprintf("%s (in a table: %s)", c.name, SearchLimit(table.Searches(rows)[0])),
			applied(rows, ndrKind().Rules...)})
	}
	// Three searches tell where the next run finds the rate: of a path that drifts, and of one that does not.
	for _, drift := range []float64{0.08, 0} {
		trials, name := 0.0, fmt.Sprintf("three searches, drift %g", drift)
		rows := table.Rows(searchedTimes(t, 3, func(pps float64, f *model.FlowResult) {
			trials++
			over(250e3*(1+drift*math.Sin(trials/15)), model.LayerNetwork)(pps, f)
		}))
		out = append(out, example{name, applied(rows, ndrKind().Rules...)})
	}
	// Searches that end differently: the answer is of the middle one, and a doubt says how others ended.
	loses := func(sent float64) float64 { return 0.99 * sent }
	carries := func(sent float64) float64 { return min(sent, 250e3) }
	faster := func(sent float64) float64 { return min(sent, 260e3) }
	whole := func(sent float64) float64 { return sent }
	for _, c := range []struct {
		name string
		each []func(float64) float64
	}{
		{"one finds no rate", []func(float64) float64{carries, loses, faster}},
		{"two find no rate", []func(float64) float64{loses, carries, loses}},
		{"one finds no rate that fails", []func(float64) float64{carries, whole, faster}},
		{"two find no rate that fails", []func(float64) float64{whole, carries, whole}},
		{"each of three searches is another", []func(float64) float64{loses, whole, carries}},
	} {
		d := sample.ThreeSearches(func(search int, sent float64) float64 { return c.each[max(search-1, 0)](sent) })
		out = append(out, example{c.name, applied(table.Rows(&d), ndrKind().Rules...)})
	}
	cut := searchedTimes(t, 3, over(250e3, model.LayerNetwork)) // in its second search
	cut.Complete, cut.Results = false, cut.Results[:len(cut.Results)/2]
	out = append(out, example{"one of three searches ended", applied(table.Rows(cut), ndrKind().Rules...)})
	part := searchedTimes(t, 3, over(250e3, model.LayerNetwork)) // in its third search
	part.Complete, part.Results = false, part.Results[:len(part.Results)*5/6]
	out = append(out, example{"two of three searches ended", applied(table.Rows(part), ndrKind().Rules...)})
	four := searchedTimes(t, 4, over(250e3, model.LayerNetwork))
	out = append(out, example{"four searches", applied(table.Rows(four), ndrKind().Rules...)})
	// Rates that are carried and fail are never printed alike, and bounds further apart than asked are a doubt.
	alike := table.Searches(searchedDoc(t, over(15e3, model.LayerNetwork)))
	alike[0].Search.Throughput, alike[0].Search.Upper = 15.26e3, 15.34e3
	apart := table.Searches(searchedDoc(t, over(250e3, model.LayerNetwork)))
	apart[0].Search.Regular = false
	return append(out, example{"bounds that look alike", lossFree(table.By(alike)[0], true)},
		example{"bounds too far apart", lossFree(table.By(apart)[0], true)})
}

// Each reason why trials above a rate were invalid is told, and only what the sender did wrong as what could not be
// sent.
func TestReasonsThatEndASearch(t *testing.T) {
	source, err := os.ReadFile("../model/reason.go")
	testenv.Must(t, err)
	codes := regexp.MustCompile(`(?m)^\t\w+ += "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) < 20 {
		t.Fatalf("read %d codes of reasons", len(codes))
	}
	for _, holds := range []float64{0, 200e3} { // above this rate trials are invalid
		for _, code := range codes {
			d := searchedTimes(t, 1, func(pps float64, f *model.FlowResult) {
				if pps > holds {
					f.SendPPS = 0
				}
			}, model.Reason{Code: code[1]})
			text, why := sentencesOf(applied(table.Rows(d), ndrKind().Rules...), Answer), Clause(model.Reason{Code: code[1]})
			sender := strings.HasPrefix(code[1], "sender-") || code[1] == model.InterfaceRefused
			if why == "" || !strings.Contains(text, ": "+strings.TrimSuffix(why+".", "?.")) || strings.Contains(text, "?.") ||
				sender != strings.Contains(text, " could not be sent: ") {
				t.Errorf("%s: said %q with the reason %q", code[1], text, why)
			}
		}
	}
}

// A search that found that each rate loses too much counts as the lowest one, in a report and in a comparison; one that could
// not tell counts in neither.
func TestCompareSearchesWithoutARate(t *testing.T) {
	carries := func(sent float64) float64 { return min(sent, 250e3) }
	loses := func(sent float64) float64 { return 0.99 * sent }
	run := func(id string, each ...func(float64) float64) *model.Document {
		d := sample.ThreeSearches(func(search int, sent float64) float64 { return each[max(search-1, 0)](sent) })
		d.ID = id
		return &d
	}
	late := searchedTimes(t, 3, func(pps float64, f *model.FlowResult) {
		if pps > 0 {
			f.SendPPS = 0
		}
	}, model.Reason{Code: model.SenderLate})
	for name, c := range map[string]struct {
		other  *model.Document
		middle float64 // NaN: there is none
		count  int
	}{
		"one finds none":       {run("b", carries, loses, carries), 250e3, 3},
		"two find none":        {run("b", loses, carries, loses), 0, 3},
		"no search could tell": {late, math.NaN(), 0},
	} {
		searches := table.Searches(table.Rows(c.other))
		typical := typicalOf(table.By(searches)[0]).Rows[0].Search.Rate()
		sample := table.Group{Rows: comparedRows(c.other)}.Stat(table.MetricOf("throughput_pps"))
		near := func(v float64) bool {
			return math.IsNaN(v) && math.IsNaN(c.middle) || math.Abs(v-c.middle) < 0.05*250e3
		}
		if !near(typical) || !near(sample.Median) || sample.N != c.count {
			t.Errorf("%s: the report has %v, the comparison %v of %d; want %v of %d", name, typical, sample.Median, sample.N,
				c.middle, c.count)
		}
	}
	c, err := Compare(Question{Docs: []*model.Document{run("a", carries, carries, carries), run("b", loses, loses, loses)},
		Metrics: table.Named("loss_free")})
	if err != nil || len(c.Effects) != 1 || c.Effects[0].Change != -1 || c.Effects[0].Verdict != table.WorseThan {
		t.Errorf("%+v, %v; want a rate that is gone", c.Effects, err)
	}
}

// A share of the losses that nobody sees is no doubt.
func TestUnexplainedLosses(t *testing.T) {
	for unknown, told := range map[uint64]bool{0: false, 9: false, 11: true, 5000: true} {
		rows := searchedDoc(t, func(_ float64, f *model.FlowResult) {
			f.Lost = f.Attempted / 2
			f.Ledger.Unattributed = f.Lost * unknown / 10000
			f.Ledger.Lines = []model.Line{{Layer: model.LayerNetwork, Host: "router", Cause: "ring-full",
				Packets: f.Lost - f.Ledger.Unattributed}}
		})
		rows = only(rows, func(r table.Row) bool { return r.Flow.Attempted >= 1e5 })
		found := unexplainedRule(rows)
		if got := slices.ContainsFunc(found, func(f Finding) bool { return f.Code == "loss.unknown" }); got != told {
			t.Errorf("%d of 10000 lost packets have no cause: doubt %v", unknown, got)
		}
	}
}
