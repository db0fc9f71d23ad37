package analysis

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/unit"
)

// field is a star whose truth is known: each receiver's link loses each IP packet
// with the same chance, and lets what is left through at its rate.
//
//	sender --- switch --- receiver-1 ... receiver-N
type field struct {
	payloads  []int
	intervals []float64 // ns between packets to one receiver; 0 is 30 times what the links take
	repeats   int
	receivers int
	rate      unit.BitRate
	loss      float64 // of one IP packet
	mtu       int
	noise     float64 // of a trial, normal, ratio
	drift     float64 // of all trials of a repeat, ratio
	seed      uint64
	packets   float64 // to each receiver
	plan      func(*model.Plan)
	change    func(*model.Result)
}

func (w field) document() model.Document {
	random := rand.New(rand.NewPCG(w.seed, 7))
	w.mtu, w.packets = max(w.mtu, 0), max(w.packets, 1000)
	if w.mtu == 0 {
		w.mtu = 1500
	}
	doc := model.Document{Format: model.RunFormat, Plan: model.Plan{
		Command: "sweep", Target: "lab:star", Receivers: w.receivers, Design: model.Design{Repeats: w.repeats},
		Flows: []model.Flow{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, Streams: 1}},
	}, Host: []model.Host{{Node: model.Sender, Cores: 2, MTUBytes: w.mtu}}}
	if w.rate > 0 {
		doc.Plan.Links = []model.Link{{Node: model.Receiver, Toward: model.Receiver, Rate: w.rate, LossRatio: w.loss}}
	}
	size, gap := model.Factor{Knob: "payload_bytes"}, model.Factor{Knob: "interval_ns"}
	for _, p := range w.payloads {
		size.Levels = append(size.Levels, model.Number(float64(p)))
	}
	for _, i := range w.intervals {
		gap.Levels = append(gap.Levels, model.Number(i))
	}
	doc.Plan.Factors = []model.Factor{size, gap}
	for repeat := range w.repeats {
		shift := 1 + w.drift*random.NormFloat64()
		for _, payload := range w.payloads {
			for _, interval := range w.intervals {
				r := model.Result{Cell: model.Cell{"payload_bytes": model.Number(float64(payload)), "interval_ns": model.Number(interval)},
					Repeat: repeat, State: model.Valid, Engine: "udp", Flows: []model.FlowResult{w.flow(payload, interval, shift*(1+w.noise*random.NormFloat64()))}}
				if w.change != nil {
					w.change(&r)
				}
				doc.Results = append(doc.Results, r)
			}
		}
	}
	if w.plan != nil {
		w.plan(&doc.Plan)
	}
	return doc
}

func (w field) flow(payload int, interval, noise float64) model.FlowResult {
	n := model.Fragments(4, payload, w.mtu)
	pieces := float64(payload + 8 + n*34)
	lost := 1 - math.Pow(1-w.loss, float64(n))
	most := float64(w.receivers) * float64(w.rate) * float64(payload) / pieces
	sent := 30 * most
	if interval > 0 {
		sent = float64(w.receivers*payload*8) / interval * 1e9
	}
	arrived := sent * (1 - lost)
	if w.rate > 0 {
		// What is left of broken datagrams takes its time on the link, too.
		arrived = min(arrived, most*(1-lost)/(1-w.loss))
	}
	f := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: payload,
		FrameBytes: model.FrameBytes(model.UDP, 4, payload), Streams: 1, Attempted: uint64(w.packets) * uint64(w.receivers)}
	if n > 1 {
		f.Fragments = n
	}
	f.Lost = uint64(math.Round(float64(f.Attempted) * lost))
	f.Received = f.Attempted - f.Lost
	f.LossRatio = lost
	f.GoodputBPS, f.SendGoodputBPS = arrived*max(0, noise), sent
	f.ReceivePPS, f.SendPPS = f.GoodputBPS/8/float64(payload), sent/8/float64(payload)
	f.DurationS = float64(f.Attempted) / f.SendPPS
	cause := model.CauseLinkLoss
	if n > 1 {
		cause = model.CauseLinkFragment
	}
	f.Ledger = model.Ledger{Lost: f.Lost}
	if f.Lost > 0 {
		f.Ledger.Lines = []model.Line{{Layer: model.LayerNetwork, Host: "links to receivers", Cause: cause, Packets: f.Lost, Confidence: "exact-seq"}}
	}
	for i := range w.receivers {
		f.Receivers = append(f.Receivers, model.ReceiverShare{Node: fmt.Sprintf("receiver-%d", i+1), Attempted: f.Attempted / uint64(w.receivers),
			Received: f.Received / uint64(w.receivers), GoodputBPS: f.GoodputBPS / float64(w.receivers)})
	}
	return f
}

// usualField is one sender's best parameters for many slow and lossy links.
func usualField() field {
	return field{payloads: []int{256, 1024, 1280, 1472, 2000, 4352}, intervals: []float64{0, 5e6, 9e6, 12e6}, repeats: 3, receivers: 100,
		rate: 1e6, loss: 0.05, noise: 0.0005, drift: 0.01, seed: 1}
}

func fields() map[string]field {
	made := map[string]field{"usual": usualField()}
	add := func(name string, change func(*field)) {
		w := usualField()
		change(&w)
		made[name] = w
	}
	add("once", func(w *field) { w.repeats = 1 })
	add("noisy", func(w *field) { w.noise = 0.04 })
	add("whole-only", func(w *field) { w.payloads = []int{256, 512, 1024} })
	add("one-cell", func(w *field) { w.payloads, w.intervals = []int{1472}, []float64{5e6} })
	add("no-loss", func(w *field) { w.loss = 0 })
	add("reassembly", func(w *field) { // more is lost than chance says
		w.change = func(r *model.Result) {
			if f := &r.Flows[0]; f.Fragments > 1 {
				more := f.Received / 2
				f.Lost, f.Received, f.GoodputBPS = f.Lost+more, f.Received-more, f.GoodputBPS/2
				f.Ledger.Lost = f.Lost
				f.Ledger.Lines = append(f.Ledger.Lines, model.Line{Layer: model.LayerReceiverIP, Host: "receivers", Cause: "FRAG_REASM_TIMEOUT", Packets: more - 5000, Confidence: "bounded"})
				f.Ledger.Unattributed = 5000
			}
		}
	})
	add("queues", func(w *field) { // full queues hide what chance does
		w.intervals = []float64{0}
		w.change = func(r *model.Result) {
			f := &r.Flows[0]
			f.Lost, f.Received = f.Attempted*9/10, f.Attempted-f.Attempted*9/10
			f.Ledger = model.Ledger{Lost: f.Lost, Lines: []model.Line{{Layer: model.LayerNetwork, Host: "links to receivers", Cause: model.CauseLinkQueue, Packets: f.Lost}}}
		}
	})
	add("some-invalid", func(w *field) {
		n := 0
		w.change = func(r *model.Result) {
			n++
			switch {
			case r.Cell["interval_ns"].Number == 0 && r.Flows[0].PayloadBytes == 256:
				r.State, r.Why = model.Invalid, fmt.Sprintf("flow up: the sender kept %d kpps of the 99 kpps asked and missed 9.%d %% of its schedule", 80+n%7, n%10)
			case r.Repeat == 1 && r.Flows[0].PayloadBytes == 1280:
				r.State, r.Why = model.Invalid, "the emulated link switch to receiver-7 fell behind"
			}
		}
	})
	add("unfair", func(w *field) {
		w.receivers = 4
		w.change = func(r *model.Result) {
			if r.Cell["interval_ns"].Number == 0 {
				for i, share := range []float64{1.5, 1.5, 0.9, 0.1} {
					r.Flows[0].Receivers[i].GoodputBPS *= share
				}
			}
		}
	})
	add("limited", func(w *field) {
		w.payloads, w.intervals = []int{1280, 2000}, []float64{5e6, 9e6}
		w.plan = func(p *model.Plan) { p.Limits.MaxLossRatio = share(0.06) }
	})
	add("one-receiver", func(w *field) {
		w.receivers = 1
		w.plan = func(p *model.Plan) {
			p.Target, p.Receivers, p.Links = "lab:router", 0, []model.Link{{Node: "router", Rate: 1e6, Toward: model.Receiver}}
		}
		w.change = func(r *model.Result) { r.Flows[0].Receivers = nil }
	})
	add("real", func(w *field) {
		w.plan = func(p *model.Plan) { p.Target, p.Links, p.Receivers = "192.168.1.5", nil, 0 }
	})
	add("dead", func(w *field) {
		w.change = func(r *model.Result) {
			f := &r.Flows[0]
			f.GoodputBPS, f.Received, f.Lost, f.Receivers = 0, 0, f.Attempted, nil
			f.Ledger = model.Ledger{Lost: f.Lost, Unattributed: f.Lost}
		}
	})
	add("all-invalid", func(w *field) {
		w.change = func(r *model.Result) { r.State, r.Why = model.Invalid, "the emulated link fell behind" }
	})
	return made
}

// sweepText is everything that analysis says of a sweep, the cells too.
func sweepText(doc model.Document) string {
	var b strings.Builder
	for _, f := range Analyze(doc) {
		fmt.Fprintf(&b, "%s: %s\n", f.Kind, f.Text)
		for _, k := range slices.Sorted(maps.Keys(f.Values)) {
			fmt.Fprintf(&b, "    %s = %.6g\n", k, f.Values[k])
		}
		for _, c := range f.Cells {
			fmt.Fprintf(&b, "    cell %s\n", c.Key())
		}
	}
	for _, w := range Warnings(doc) {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	passed, broken := Passed(doc)
	fmt.Fprintf(&b, "passed: %v %s\n", passed, strings.Join(broken, "; "))
	return b.String()
}

func TestSweepGolden(t *testing.T) {
	for name, w := range fields() {
		t.Run(name, func(t *testing.T) {
			got := sweepText(w.document())
			path := filepath.Join("testdata", "sweep-"+name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal([]byte(got), want) {
				t.Errorf("analysis of %s (write anew with -update):\n got\n%s\nwant\n%s", name, got, want)
			}
		})
	}
}

// of returns the finding of a kind.
func of(t interface{ Fatalf(string, ...any) }, doc model.Document, kind string) model.Finding {
	for _, f := range Analyze(doc) {
		if f.Kind == kind {
			return f
		}
	}
	t.Fatalf("no finding of kind %s in %v", kind, kinds(doc))
	return model.Finding{}
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*math.Abs(want) }

func TestSweepKnownAnswers(t *testing.T) {
	doc := usualField().document()
	// 100 receivers of 1 Mbit/s, payload 1472 in a frame of 1514 B without FCS.
	const limit = 100 * 1e6 * 1472 / 1514
	best := of(t, doc, KindSweepBest)
	if v := best.Values; v["payload_bytes"] != 1472 || !near(v["goodput_bps"], limit, 0.02) || !(v["goodput_low_bps"] < v["goodput_bps"] && v["goodput_bps"] < v["goodput_high_bps"]) {
		t.Errorf("best: %v, want 1472 B at %.0f bit/s within an interval", v, limit)
	}
	// 1280 B reach 96.8 % of the links' rate and 1472 B 97.2 %: with 0.05 % of scatter they are apart.
	ties := of(t, doc, KindSweepTies)
	if len(ties.Cells) != int(ties.Values["not_separable_cells"]) || slices.ContainsFunc(ties.Cells, func(c model.Cell) bool { return c["payload_bytes"].Number != 1472 }) {
		t.Errorf("ties: %v %v, want only 1472 B at other intervals", ties.Values, ties.Cells)
	}
	// 9 ms offer 114 Mbit/s of 1280 B, of which 95 % fill the links to 0.4 % below the
	// best; 12 ms offer 98 of 1472 B, which do not.
	slow := of(t, doc, KindSweepSlowest)
	if v := slow.Values; v["payload_bytes"] != 1280 || v["interval_ns"] != 9e6 || !near(v["send_bps"], 100*1280*8/9e-3, 1e-9) {
		t.Errorf("slowest sender: %v, want 1280 B every 9 ms", v)
	}
	cliff := of(t, doc, KindSweepFragments)
	if v := cliff.Values; v["largest_whole_payload_bytes"] != 1472 || v["smallest_split_payload_bytes"] != 2000 ||
		!near(v["whole_loss_ratio"], 0.05, 1e-3) || !near(v["loss_ratio_at_2_fragments"], 1-0.95*0.95, 1e-3) || !near(v["expected_loss_ratio_at_3_fragments"], 1-math.Pow(0.95, 3), 1e-3) {
		t.Errorf("fragments: %v", v)
	}
	if !strings.Contains(cliff.Text, "as 1-(1-p)^2 says") {
		t.Errorf("fragments: %s", cliff.Text)
	}
	most := of(t, doc, KindSweepLimit)
	if v := most.Values; !near(v["limit_bps"], limit, 1e-9) || v["receivers"] != 100 || !near(v["limit_ratio"], 1, 0.02) {
		t.Errorf("limit: %v, want %.0f", v, limit)
	}
}

// TestSweepSaysNothingOfCurves: a grid of intervals has no knee.
func TestSweepSaysNothingOfCurves(t *testing.T) {
	for name, w := range fields() {
		for _, k := range kinds(w.document()) {
			if slices.Contains([]string{KindKnee, KindFrameBound, KindBitBound, KindShare, KindSenderLimited, KindReceiverLimited, KindAsymmetry, KindTCP, KindTooFewRepeats}, k) {
				t.Errorf("%s: a sweep has a finding %s", name, k)
			}
		}
	}
	doc := usualField().document()
	doc.Plan.Command = "curve"
	for _, k := range kinds(doc) {
		if strings.HasPrefix(k, "sweep-") {
			t.Errorf("a curve has a finding %s", k)
		}
	}
}

func TestSweepVerdictIsShort(t *testing.T) {
	for name, w := range fields() {
		if text := Analyze(w.document())[0].Text; len(text) > 180 || strings.Count(text, ". ") > 0 {
			t.Errorf("%s: verdict of %d characters: %s", name, len(text), text)
		}
	}
}
