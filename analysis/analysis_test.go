package analysis

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/unit"
)

var update = flag.Bool("update", false, "write the golden files")

// world is a path whose truth is known.
type world struct {
	target    string
	flows     []string // up, down
	direction string   // level of the direction factor, if any
	payloads  []int
	repeats   int
	noise     float64 // ratio
	seed      uint64
	framePPS  float64             // packets a second the path carries; 0 unlimited
	bitRate   float64             // frame bits a second; 0 unlimited
	gradual   bool                // both costs add up
	senderPPS float64             // what the sender can send; 0: twice what the path carries
	busy      float64             // sender's thread
	rate      unit.Rate           // asked
	downScale float64             // of the path's limits, downward; 0 is 1
	change    func(*model.Result) // after all
	bad       func(n int) bool    // which trials are invalid
	tcp       func(payload int) (goodput, writes, segments float64)
	cores     int
	maxLoss   *float64
	links     unit.BitRate
	lossCause string // layer/cause of all loss; "" is unattributed
}

func (w world) pps(frame float64, scale float64) float64 {
	t := 0.0
	a, b := 0.0, 0.0
	if w.framePPS > 0 {
		a = 1 / (w.framePPS * scale)
	}
	if w.bitRate > 0 {
		b = frame * 8 / (w.bitRate * scale)
	}
	if t = max(a, b); w.gradual {
		t = a + b
	}
	return 1 / t
}

func (w world) document() model.Document {
	random := rand.New(rand.NewPCG(w.seed, 1))
	doc := model.Document{
		Format: model.RunFormat, Plan: model.Plan{Target: w.target, Design: model.Design{Repeats: w.repeats}, Limits: model.Limits{MaxLossRatio: w.maxLoss}},
		Host: []model.Host{{Node: model.Sender, Cores: max(w.cores, 4)}},
	}
	if w.links > 0 {
		doc.Plan.Links = []model.Link{{Rate: w.links}}
	}
	if w.target == "" {
		doc.Plan.Target = "192.168.1.5"
	}
	if w.flows == nil {
		w.flows = []string{"up"}
	}
	protocol := model.UDP
	if w.tcp != nil {
		protocol = model.TCP
	}
	for _, f := range w.flows {
		doc.Plan.Flows = append(doc.Plan.Flows, model.Flow{Name: f, Protocol: protocol, Rate: w.rate})
	}
	n := 0
	for repeat := range w.repeats {
		for _, payload := range w.payloads {
			r := model.Result{Cell: model.Cell{"payload_bytes": model.Number(float64(payload))}, Repeat: repeat, State: model.Valid}
			if w.direction != "" {
				r.Cell["direction"] = model.Word(w.direction)
			}
			for _, name := range w.flows {
				r.Flows = append(r.Flows, w.flow(name, protocol, payload, 1+w.noise*(2*random.Float64()-1)))
			}
			if w.bad != nil && w.bad(n) {
				r.State, r.Why = model.Invalid, "flow up: the sender missed 12 % of its schedule"
			}
			if w.change != nil {
				w.change(&r)
			}
			doc.Results = append(doc.Results, r)
			n++
		}
	}
	return doc
}

func (w world) flow(name string, protocol model.Protocol, payload int, jitter float64) model.FlowResult {
	const seconds = 2
	frame := model.FrameBytes(protocol, 4, payload)
	f := model.FlowResult{
		Name: name, Protocol: protocol, From: model.Sender, To: model.Receiver, PayloadBytes: payload, FrameBytes: frame,
		Streams: 1, DurationS: seconds, SenderCPU: model.CPU{ThreadRatio: w.busy},
	}
	if n := model.Fragments(4, payload, 1500); n > 1 {
		f.Fragments = n
	}
	if w.tcp != nil {
		goodput, writes, segments := w.tcp(payload)
		f.GoodputBPS, f.ReceivePPS, f.Attempted = goodput, segments, uint64(segments*seconds)
		f.Received = f.Attempted
		f.TCP = &model.TCPFacts{Writes: uint64(writes * seconds), SegmentsOut: uint64(segments * seconds), Retransmits: 5}
		return f
	}
	scale := 1.0
	if name == "down" && w.downScale > 0 {
		scale = w.downScale
	}
	carried := w.pps(float64(frame), scale) * jitter
	sent := carried * 2
	if w.senderPPS == 1 {
		sent = carried
	} else if w.senderPPS > 0 {
		sent = w.senderPPS * jitter
	}
	if asked, ok := w.rate.PPS(payload); ok {
		sent = asked
	}
	got := min(sent, carried)
	f.Attempted, f.Received = uint64(sent*seconds), uint64(got*seconds)
	f.Lost = f.Attempted - f.Received
	f.SendPPS, f.ReceivePPS, f.GoodputBPS = sent, got, got*8*float64(payload)
	f.Ledger = model.Ledger{Lost: f.Lost, Unattributed: f.Lost}
	if w.lossCause != "" && f.Lost > 0 {
		layer, cause, _ := strings.Cut(w.lossCause, "/")
		f.Ledger.Unattributed = 0
		f.Ledger.Lines = []model.Line{{Layer: layer, Host: model.Receiver, Cause: cause, Packets: f.Lost}}
	}
	return f
}

var usual = []int{18, 64, 100, 200, 400, 800, 1472}

// losing makes a flow lose one packet in many, at no counter.
func losing(many uint64) func(*model.Result) {
	return func(r *model.Result) {
		for i := range r.Flows {
			f := &r.Flows[i]
			lost := f.Attempted / many
			f.Lost, f.Received = f.Lost+lost, f.Received-lost
			f.Ledger.Lost, f.Ledger.Unattributed = f.Ledger.Lost+lost, f.Ledger.Unattributed+lost
		}
	}
}

func share(v float64) *float64 { return &v }

func worlds() map[string]world {
	return map[string]world{
		"frame-bound":    {payloads: usual, repeats: 2, framePPS: 30e3, noise: 0.01},
		"bit-bound":      {payloads: usual, repeats: 2, bitRate: 100e6, noise: 0.01},
		"knee":           {payloads: usual, repeats: 2, framePPS: 187e3, bitRate: 985e6, noise: 0.03},
		"knee-gradual":   {payloads: usual, repeats: 3, framePPS: 187e3, bitRate: 900e6, gradual: true, noise: 0.01},
		"lab":            {target: "lab:router", cores: 2, payloads: usual, repeats: 2, framePPS: 900e3, bitRate: 985e6, senderPPS: 190e3, busy: 0.99, noise: 0.02},
		"sender-limited": {payloads: usual, repeats: 2, framePPS: 5e6, senderPPS: 260e3, busy: 0.98, noise: 0.02},
		"slow-machine":   {target: "lab:router", cores: 2, links: 1e9, payloads: usual, repeats: 2, framePPS: 97e3, bitRate: 560e6, senderPPS: 1, busy: 0.54, noise: 0.02},
		"link-pushback":  {links: 100e6, payloads: usual, repeats: 2, framePPS: 97e3, bitRate: 98e6, senderPPS: 1, busy: 0.2, noise: 0.02},
		"quiet":          {payloads: usual, repeats: 2, framePPS: 5e6, senderPPS: 150e3, busy: 0.3, noise: 0.02},
		"quiet-nearly":   {payloads: usual, repeats: 2, framePPS: 5e6, senderPPS: 150e3, busy: 0.3, noise: 0.02, change: losing(2000)},
		"receiver":       {payloads: usual, repeats: 2, framePPS: 120e3, noise: 0.02, lossCause: "receiver-buffer/SOCKET_RCVBUFF"},
		"rule":           {payloads: usual, repeats: 2, framePPS: 330e3, senderPPS: 333e3, busy: 0.99, lossCause: "receiver-filter/NETFILTER_DROP"},
		"offered":        {payloads: usual, repeats: 2, framePPS: 187e3, rate: unit.PacketRate(20000), noise: 0.02},
		"offered-nearly": {payloads: usual, repeats: 2, framePPS: 187e3, rate: unit.PacketRate(20000), noise: 0.02, change: losing(2000)},
		"offered-one":    {payloads: []int{64}, repeats: 2, framePPS: 1e6, rate: unit.PacketRate(500000), change: losing(500000)},
		"lossy":          {payloads: []int{64, 1472}, repeats: 2, framePPS: 19e3, rate: unit.PacketRate(20000), lossCause: "network/QDISC_DROP", maxLoss: share(0.01)},
		"two-sizes":      {payloads: []int{64, 1472}, repeats: 2, framePPS: 187e3, bitRate: 985e6},
		"two-sender":     {payloads: []int{64, 300}, repeats: 2, framePPS: 420e3, bitRate: 6e9, gradual: true, senderPPS: 1, busy: 0.99},
		"two-mixed":      {payloads: []int{64, 300}, repeats: 2, bitRate: 1e9, senderPPS: 430e3, busy: 0.99},
		"too-big":        {payloads: []int{64, 1473}, repeats: 2, framePPS: 187e3, change: tooLong},
		"none-fits":      {payloads: []int{1473, 2000}, repeats: 1, framePPS: 187e3, change: tooLong},
		"queues":         {payloads: []int{64, 1472}, repeats: 2, framePPS: 187e3, bitRate: 500e6, lossCause: "network/queue of the link to receiver full"},
		"one-size":       {payloads: []int{64}, repeats: 1, framePPS: 187e3},
		"fragments":      {payloads: []int{18, 64, 400, 800, 1472, 6400}, repeats: 2, framePPS: 187e3, bitRate: 985e6, noise: 0.02},
		"one-above":      {payloads: []int{18, 64, 100, 200, 400, 1472}, repeats: 2, framePPS: 187e3, bitRate: 985e6, noise: 0.01},
		"wild":           {payloads: usual, repeats: 2, framePPS: 187e3, bitRate: 985e6, noise: 0.6},
		"invalid":        {payloads: usual, repeats: 1, framePPS: 187e3, bad: func(int) bool { return true }},
		"some-invalid":   {payloads: usual, repeats: 2, framePPS: 187e3, bad: func(n int) bool { return n < 2 }},
		"directions":     {flows: []string{"up", "down"}, direction: "both", payloads: usual, repeats: 2, framePPS: 187e3, bitRate: 985e6, downScale: 0.4, noise: 0.01},
		"tcp": {payloads: []int{64, 1460}, repeats: 2, tcp: func(p int) (float64, float64, float64) {
			if p == 64 {
				return 60e6, 120e3, 30e3
			}
			return 940e6, 80e3, 81e3
		}},
		"dead":  {payloads: []int{64, 1472}, repeats: 1, framePPS: 1e-9, rate: unit.PacketRate(1000)},
		"empty": {},
	}
}

func tooLong(r *model.Result) {
	f := &r.Flows[0]
	if f.PayloadBytes > 1472 {
		r.State, r.Why = model.Invalid, "sender: every packet is refused: message too long; the path takes IP packets of 1500 B and the don't-fragment bit is set"
		f.Attempted, f.Received, f.Lost, f.Fragments = 0, 0, 0, 2
	}
}

// directions is a run of up, down and both at once, whose results came in any order.
func directions() model.Document {
	up := world{target: "lab:router", flows: []string{"up"}, direction: "up", payloads: usual, repeats: 2, framePPS: 226e3, bitRate: 1e9, senderPPS: 1, links: 1e9, busy: 0.99}
	down, both := up, up
	down.flows, down.direction, down.downScale, both.flows, both.direction, both.downScale = []string{"down"}, "down", 0.9, []string{"up", "down"}, "both", 0.9
	doc := both.document()
	doc.Results = append(append(doc.Results, down.document().Results...), up.document().Results...)
	doc.Plan.Factors = []model.Factor{{Knob: "direction", Levels: []model.Value{model.Word("up"), model.Word("down"), model.Word("both")}}}
	return doc
}

func TestDirectionsInTheirOrder(t *testing.T) {
	got := Analyze(directions())
	const want = "Up: at least 226 kpps and 970 Mbit/s; down: at least 203 kpps and 873 Mbit/s; both at once: at least 226 kpps and 970 Mbit/s up, 203 kpps and 873 Mbit/s down."
	if got[0].Text != want {
		t.Errorf("verdict\n got %s\nwant %s", got[0].Text, want)
	}
	var order []string
	for _, f := range got {
		if f.Kind == KindKnee {
			order = append(order, strings.SplitN(f.Text, ":", 2)[0])
		}
	}
	if want := []string{"Up", "Down", "Up, both at once", "Down, both at once"}; !slices.Equal(order, want) {
		t.Errorf("knees are told of %q; want %q", order, want)
	}
}

func TestTrend(t *testing.T) {
	at := func(spread float64, pps ...float64) (points []point) {
		for i, x := range pps {
			points = append(points, point{payload: 64 << i, pps: x, spread: spread})
		}
		return points
	}
	for _, c := range []struct {
		name   string
		points []point
		want   string
	}{
		{"flat", at(0.01, 100, 99, 98), ", whatever the size"},
		{"falls", at(0.02, 100, 90, 70), ", less as they grow"},
		{"rises first", at(0.02, 283, 344, 327), ""},
		{"falls within the noise", at(0.4, 100, 90, 70), ""},
	} {
		if got := trend(c.points); got != c.want {
			t.Errorf("%s: trend(%v) = %q; want %q", c.name, c.points, got, c.want)
		}
	}
}

// A verdict is short: it is a headline and a picture's title.
func TestVerdictIsShort(t *testing.T) {
	for name, w := range worlds() {
		if text := Analyze(w.document())[0].Text; len(text) > 180 || strings.Count(text, ". ") > 1 {
			t.Errorf("%s: verdict of %d characters: %s", name, len(text), text)
		}
	}
}

// text is everything that analysis says about a document.
func text(doc model.Document) string {
	var b strings.Builder
	for _, f := range Analyze(doc) {
		fmt.Fprintf(&b, "%s: %s\n", f.Kind, f.Text)
		for _, k := range slices.Sorted(maps.Keys(f.Values)) {
			fmt.Fprintf(&b, "    %s = %.4g\n", k, f.Values[k])
		}
	}
	for _, w := range Warnings(doc) {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	passed, broken := Passed(doc)
	fmt.Fprintf(&b, "passed: %v %s\n", passed, strings.Join(broken, "; "))
	return b.String()
}

func TestGolden(t *testing.T) {
	for name, w := range worlds() {
		t.Run(name, func(t *testing.T) {
			got := text(w.document())
			path := filepath.Join("testdata", name+".txt")
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

func kinds(doc model.Document) (k []string) {
	for _, f := range Analyze(doc) {
		k = append(k, f.Kind)
	}
	return k
}

// A known knee is found near its true place, whatever the noise of 3 % does.
func TestKneeIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payloads := []int{18, 64, 100, 200, 300, 400, 600, 800, 1000, 1200, 1472}
		w := world{payloads: payloads, repeats: 2, noise: 0.03, seed: rapid.Uint64().Draw(t, "seed"), framePPS: rapid.Float64Range(1e4, 1e6).Draw(t, "pps")}
		truth := rapid.Float64Range(250, 1000).Draw(t, "knee payload")
		w.bitRate = (truth + 46) * 8 * w.framePPS
		for _, f := range Analyze(w.document()) {
			if f.Kind != KindKnee {
				continue
			}
			got, ok := f.Values["knee_payload_bytes"]
			if !ok || math.Abs(math.Log(got/truth)) > 0.15 {
				t.Fatalf("knee at %.0f B, found %v: %s", truth, got, f.Text)
			}
			return
		}
		t.Fatalf("no knee found, true at %.0f B: %v", truth, kinds(w.document()))
	})
}

// No knee is claimed where there is none.
func TestNoKneeIsInvented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world{payloads: usual, repeats: rapid.IntRange(1, 4).Draw(t, "repeats"), noise: rapid.Float64Range(0, 0.04).Draw(t, "noise"), seed: rapid.Uint64().Draw(t, "seed")}
		want := KindFrameBound
		if rapid.Bool().Draw(t, "bits") {
			w.bitRate, want = 100e6, KindBitBound
		} else {
			w.framePPS = 50e3
		}
		got := kinds(w.document())
		if slices.Contains(got, KindKnee) || !slices.Contains(got, want) {
			t.Fatalf("got %v, want %s and no knee", got, want)
		}
	})
}

// The order of results, and results that do not count, change nothing.
func TestOrderDoesNotMatter(t *testing.T) {
	doc := worlds()["directions"].document()
	want := text(doc)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(doc.Results), func(i, j int) { doc.Results[i], doc.Results[j] = doc.Results[j], doc.Results[i] })
	doc.Results = append(doc.Results, model.Result{State: model.Aborted, Flows: doc.Results[0].Flows})
	if got := text(doc); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Whatever a document holds, exactly one verdict comes first and nothing breaks.
func TestAnyDocument(t *testing.T) {
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, -1, math.NaN(), math.Inf(1), 1e300}))
	rapid.Check(t, func(t *rapid.T) {
		var doc model.Document
		for range rapid.IntRange(0, 6).Draw(t, "results") {
			r := model.Result{State: rapid.SampledFrom([]model.State{model.Valid, model.Valid, model.Invalid, model.Aborted, "x"}).Draw(t, "state")}
			for range rapid.IntRange(0, 2).Draw(t, "flows") {
				r.Flows = append(r.Flows, model.FlowResult{
					Name: rapid.SampledFrom([]string{"", "up", "down", "é"}).Draw(t, "name"), Protocol: rapid.SampledFrom([]model.Protocol{model.UDP, model.TCP, ""}).Draw(t, "protocol"),
					PayloadBytes: rapid.IntRange(-1, 2000).Draw(t, "payload"), FrameBytes: rapid.IntRange(-1, 2000).Draw(t, "frame"),
					ReceivePPS: number.Draw(t, "pps"), GoodputBPS: number.Draw(t, "goodput"), Attempted: rapid.Uint64().Draw(t, "attempted"), Lost: rapid.Uint64().Draw(t, "lost"),
					SenderCPU: model.CPU{ThreadRatio: number.Draw(t, "thread")}, DurationS: number.Draw(t, "duration"), TCP: &model.TCPFacts{},
				})
			}
			doc.Results = append(doc.Results, r)
		}
		k := kinds(doc)
		if k[0] != KindVerdict || slices.Contains(k[1:], KindVerdict) {
			t.Fatalf("kinds %v: want one verdict, first", k)
		}
		Warnings(doc)
		Passed(doc)
	})
}

func TestWatchingIsDoubtedWhereSomethingWasLost(t *testing.T) {
	lossy := model.FlowResult{Ledger: model.Ledger{Lost: 5}}
	doc := model.Document{Results: []model.Result{
		{Flows: []model.FlowResult{{}}, Observed: []model.Observed{{Node: "idle", Mode: model.DropsOff, Why: "no rights"}}},
		{Flows: []model.FlowResult{lossy}, Observed: []model.Observed{
			{Node: "a", Mode: model.DropsOff, Why: "no rights"}, {Node: "b", Mode: model.DropsSeq},
			{Node: "c", Mode: model.DropsOff}, {Node: "d", Why: "gone"}, {Node: "e", Mode: model.DropsCount, Why: "no room"},
		}},
		{Flows: []model.FlowResult{lossy}, Observed: []model.Observed{{Node: "a", Mode: model.DropsOff, Why: "no rights"}, {Node: "f", Mode: model.DropsOff, Why: "no rights"}}},
	}}
	want := []string{
		"a, f: losses get their names from counters alone: no rights",
		"d: not observed, so nothing is known of what it lost: gone",
		"e: drops are counted by place, not by sequence: no room",
	}
	if got := Warnings(doc); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	doc.Plan.Drops = model.DropsOff // and so it was asked for
	if got := Warnings(doc); !slices.Equal(got, want[1:]) {
		t.Errorf("%q, want %q", got, want[1:])
	}
}

// TestEnginesAreTold: what carried the packets bears on what the figures mean.
func TestEnginesAreTold(t *testing.T) {
	refused := "sender: udp sockets, because loading XDP programs needs root (CAP_BPF and CAP_NET_ADMIN); receiver: udp sockets, because loading XDP programs needs root (CAP_BPF and CAP_NET_ADMIN)"
	for name, c := range map[string]struct {
		engine func(r *model.Result) (name, reason string)
		want   string
	}{
		"asked sockets": {func(*model.Result) (string, string) { return "udp", "udp sockets: they were asked for" }, ""},
		"refused": {func(*model.Result) (string, string) { return "udp", refused },
			"Sockets carried the packets (loading XDP programs needs root (CAP_BPF and CAP_NET_ADMIN))."},
		"frames": {func(*model.Result) (string, string) {
			return "xdp", "sender: XDP live frames out of eth0; receiver: an XDP program on eth0 (native)"
		}, "past the two hosts' own stacks"},
		"one repeat by sockets": {func(r *model.Result) (string, string) {
			if r.Repeat == 0 {
				return "udp", "frames came to the receiver another way"
			}
			return "xdp", "sender: XDP live frames out of eth0"
		}, "Not all trials were carried alike: some by udp and xdp"},
		"frames into sockets": {func(*model.Result) (string, string) {
			return "xdp+udp", "sender: XDP live frames out of eth0; receiver: udp sockets, because they were asked for"
		}, "went into sockets of the receiver"},
		"large ones by sockets": {func(r *model.Result) (string, string) {
			if r.Flows[0].PayloadBytes > 1000 {
				return "udp", "sender: udp sockets, because packets of 1500 B need fragments"
			}
			return "xdp", "sender: XDP live frames out of eth0"
		}, "1472 B by udp, 64 and 512 B by xdp (sender: packets of 1500 B need fragments)"},
	} {
		w := world{payloads: []int{64, 512, 1472}, repeats: 3, framePPS: 226e3, bitRate: 1e9, senderPPS: 1}
		w.change = func(r *model.Result) { r.Engine, r.EngineReason = c.engine(r) }
		var told string
		for _, f := range Analyze(w.document()) {
			if f.Kind == KindEngines {
				told += f.Text
			}
		}
		if c.want == "" && told != "" || !strings.Contains(told, c.want) {
			t.Errorf("%s: %q, want %q", name, told, c.want)
		}
	}
}

// TestRepeatsAreOfOneEngine: a size's figures are of the engine that carried most
// of its repeats, and what another carried does not widen them.
func TestRepeatsAreOfOneEngine(t *testing.T) {
	w := world{payloads: []int{64}, repeats: 3, framePPS: 226e3, bitRate: 1e9, senderPPS: 1}
	w.change = func(r *model.Result) {
		r.Engine = "xdp"
		if r.Repeat == 1 {
			r.Engine = "udp"
			r.Flows[0].ReceivePPS /= 2
			r.Flows[0].GoodputBPS /= 2
		}
	}
	p := curves(w.document())[0].points[0]
	if len(p.trials) != 2 || p.engine != "xdp" || p.spread > 0.01 {
		t.Errorf("%d trials of %s, spread %v", len(p.trials), p.engine, p.spread)
	}
}

// TestKneeIsOfOneEngine: another engine's cost of a packet makes no knee.
func TestKneeIsOfOneEngine(t *testing.T) {
	w := world{payloads: usual, repeats: 3, framePPS: 226e3, bitRate: 1e9, senderPPS: 1, links: 1e9}
	for _, other := range []string{"xdp", "udp"} {
		w.change = func(r *model.Result) {
			r.Engine = "xdp"
			if r.Flows[0].PayloadBytes > 500 {
				r.Engine = other
			}
		}
		if got, want := slices.Contains(kinds(w.document()), KindKnee), other == "xdp"; got != want {
			t.Errorf("large sizes by %s: knee %v, want %v: %s", other, got, want, text(w.document()))
		}
	}
}
