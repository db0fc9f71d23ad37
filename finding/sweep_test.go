package finding

import (
	"fmt"
	"math"
	"strings"
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
		Design: model.Design{Repeats: s.repeats}, Flows: []model.Flow{{Name: "up", Protocol: model.UDP}},
		Links: []model.Link{{Node: model.Receiver, Toward: model.Receiver, Rate: unit.BitRate(s.rate), LossRatio: s.loss}}},
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
				r := model.Result{Repeat: repeat, State: model.Valid, Engine: "udp", Flows: []model.FlowResult{s.flow(p, ms, noise)},
					Cell: model.Cell{"payload_bytes": model.Number(float64(p)), "interval_ns": model.Number(ms * 1e6)}}
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
	f := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: payload,
		FrameBytes: model.FrameBytes(model.UDP, 4, payload), Streams: 1, Attempted: uint64(1000 * s.receivers), SendGoodputBPS: sent}
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
		f.Ledger.Lines = []model.Line{{Layer: model.LayerNetwork, Host: "links to receivers", Cause: model.CauseLinkLoss, Packets: f.Lost}}
	}
	for i := range s.receivers {
		f.Receivers = append(f.Receivers, model.ReceiverShare{Node: fmt.Sprintf("receiver-%d", i+1), Attempted: 1000,
			Received: f.Received / uint64(s.receivers), GoodputBPS: f.GoodputBPS / float64(s.receivers)})
	}
	return f
}

// says are the texts of a sweep's own findings, and its next step.
func says(d *model.Document) string {
	return strings.Join(texts(All(table.Rows(d), Sweep, Repeats("goodput_bps", 3))), "\n")
}

// What was typed is shown as a shell reads it; runs of before do not have it.
func TestCommand(t *testing.T) {
	d := usualStar().doc()
	if got := Command(table.Rows(d)); len(got) != 0 {
		t.Errorf("without arguments: %v", got)
	}
	d.Arguments = []string{"sweep", "lab:star", "--exec-server", "a 'b' $c", "\x1b[2J"}
	want := `Command: pelt sweep lab:star --exec-server 'a '\''b'\'' $c' '·[2J'`
	if got := texts(Command(table.Rows(d))); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSweep(t *testing.T) {
	usual := usualStar()
	for _, c := range []struct {
		name  string
		star  star
		want  []string
		never []string
	}{
		{"usual", usual, []string{
			// 9 ms offer 114 Mbit/s of 1280 B, of which 95 % fill the links; 12 ms of 1472 B do not.
			"Best: 1280 B, every 9 ms. It gets 96.8 Mbit/s", "7 other settings are tied with it (within 2 %); of these it sends least.",
			"1472 B, no pause sends 25.6 times as much and gets 97.2 Mbit/s through",
			"The link of 1 Mbit/s to each of 100 receivers was the limit.",
			"1472 B is the largest size tried that fits one packet: it gets 97.2 Mbit/s through and loses 5 %. 2000 B is split, gets "},
			[]string{"repeats", "once", "MiB", "KiB"}},
		{"once", usual.with(func(s *star) { s.repeats = 1 }), []string{"come within 2 % of it; of these it sends least.",
			"Measured once: another trial may differ.", "--repeats 3"}, []string{"tied"}},
		{"some trials invalid", usual.with(func(s *star) {
			s.change = func(i int, r *model.Result) {
				if r.Repeat > 0 || i == 0 {
					r.State = model.Invalid
				}
			}
		}), []string{"1 of 24 settings have no usable trial"}, nil},
		{"invalid trials are not single ones", usual.with(func(s *star) {
			s.change = func(i int, r *model.Result) {
				if r.Repeat > 0 {
					r.State = model.Invalid
				}
			}
		}), []string{"come within 2 %", "Too few repeats to be sure of"}, []string{"once"}},
		{"one setting", usual.with(func(s *star) { s.payloads, s.intervals = []int{1472}, []float64{5} }),
			[]string{"1472 B, every 5 ms gets 97.2 Mbit/s", "and loses 5 %. No other setting was measured."}, []string{"Run the same"}},
		{"one is best", usual.with(func(s *star) { s.payloads, s.intervals = []int{256, 1472}, []float64{9} }),
			[]string{"Best: 1472 B.", "The other setting is slower."}, []string{"tied"}},
		{"whole only", usual.with(func(s *star) { s.payloads = []int{256, 512} }), nil, []string{"fits one packet", "fragments"}},
		{"unequal receivers", usual.with(func(s *star) {
			s.receivers = 4
			s.change = func(_ int, r *model.Result) {
				for i, share := range []float64{1.5, 1.5, 0.9, 0.1} {
					if r.Cell["interval_ns"].Number == 0 {
						r.Flows[0].Receivers[i].GoodputBPS *= share
					}
				}
			}
		}), []string{"Receivers differ most at ", "a fairness of 0.75 (1 is even)"}, nil},
		{"dead", usual.with(func(s *star) {
			s.change = func(_ int, r *model.Result) {
				f := &r.Flows[0]
				f.GoodputBPS, f.ReceivePPS, f.Received, f.Lost, f.LossRatio = 0, 0, 0, f.Attempted, 1
			}
		}), []string{"Nothing arrived at any setting."}, []string{"Best"}},
		{"all invalid", usual.with(func(s *star) {
			s.change = func(_ int, r *model.Result) { r.State = model.Invalid }
		}), nil, []string{"Best"}},
	} {
		got := says(c.star.doc())
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, got)
			}
		}
		for _, never := range c.never {
			if strings.Contains(got, never) {
				t.Errorf("%s: %q in\n%s", c.name, never, got)
			}
		}
	}
}

// TestBeyond: what is faster than a link was a burst.
func TestBeyond(t *testing.T) {
	d := usualStar().doc()
	if got := Beyond(table.Rows(d)); got != nil {
		t.Errorf("%q", texts(got))
	}
	d.Lab = &model.LabFacts{}
	for i := range d.Results {
		d.Results[i].Flows[0].GoodputBPS *= 1.1
	}
	got := texts(Beyond(table.Rows(d)))
	if want := "110 % of what the slowest link lets through arrived"; len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%q; want %s", got, want)
	}
}

// TestConditions: nobody chooses what a path is like, so settings of different paths are not compared.
func TestConditions(t *testing.T) {
	lossy, clean := usualStar(), usualStar()
	lossy.intervals, clean.intervals, clean.loss = []float64{5, 9, 12}, []float64{5, 9, 12}, 0
	for _, c := range []struct {
		rate float64 // of the clean links
		want string
	}{
		{1e6, "Best under both conditions: 1280 B, every 9 ms. It gets 96.8 Mbit/s through."},
		{3e6, "Best (no link loss): 4352 B, every 12 ms. It gets 290 Mbit/s"},
	} {
		clean.rate = c.rate
		d := lossy.doc()
		for i := range d.Results {
			d.Results[i].Cell["link.loss_ratio"] = model.Number(0.05)
		}
		for _, r := range clean.doc().Results {
			r.Cell["link.loss_ratio"] = model.Number(0)
			d.Results = append(d.Results, r)
		}
		got := texts(Of(All(table.Rows(d), Sweep), Answer))
		if !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%q; want %q", got[0], c.want)
		}
		if len(got) == 2 && !strings.HasPrefix(got[1], "Best (5 % link loss): 1280 B, every 9 ms.") {
			t.Errorf("the worst condition: %q", got[1])
		}
		for _, x := range Rankings(table.Rows(d)) {
			if len(x.Settings) != 18 {
				t.Errorf("%d settings in %s", len(x.Settings), x.Under.Name())
			}
		}
	}
}

// TestWaste: the setting that is the answer under both conditions is not said to waste what it sends.
func TestWaste(t *testing.T) {
	d := &model.Document{Plan: model.Plan{Command: "sweep", Flows: []model.Flow{{Name: "up", Protocol: model.UDP}}}}
	for _, x := range []struct{ loss, payload, goodput, sent float64 }{
		{0, 100, 1e8, 1e8}, {0, 200, 1e8, 2e8}, {0.1, 100, 5e7, 1e8}, {0.1, 200, 9e7, 2e8}} {
		for repeat := range 3 {
			d.Results = append(d.Results, model.Result{Repeat: repeat, State: model.Valid,
				Cell: model.Cell{"link.loss_ratio": model.Number(x.loss), "payload_bytes": model.Number(x.payload)},
				Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP, PayloadBytes: int(x.payload), Attempted: 1000,
					DurationS: 1, GoodputBPS: x.goodput, SendGoodputBPS: x.sent}}})
		}
	}
	got := says(d)
	if !strings.Contains(got, "Best under both conditions: 200 B.") || strings.Contains(got, "times as much") {
		t.Error(got)
	}
}

// TestRepeatsOfZero: repeats of which most are 0 have no spread that is a share.
func TestRepeatsOfZero(t *testing.T) {
	d := usualStar().with(func(s *star) { s.payloads, s.intervals = []int{1472}, []float64{5} }).doc()
	d.Results[0].Flows[0].GoodputBPS, d.Results[1].Flows[0].GoodputBPS = 0, 0
	if got := says(d); strings.Contains(got, "Repeats differ") {
		t.Error(got)
	}
}

// TestTooLossy: a setting that lost more than the limit is named, and one that lost as much is not.
func TestTooLossy(t *testing.T) {
	rows := table.Rows(usualStar().with(func(s *star) { s.payloads, s.intervals = []int{1472, 2000}, []float64{5} }).doc())
	for most, want := range map[float64]string{
		0.05: "2000 B, every 5 ms, up: 9.8 % lost, more than 5 %", 0.2: "",
	} {
		if got := strings.Join(texts(TooLossy(rows, most)), "; "); got != want {
			t.Errorf("more than %g: %q; want %q", most, got, want)
		}
	}
	if got := texts(TooLossy(nil, 0)); len(got) != 1 {
		t.Errorf("without rows: %q", got)
	}
}
