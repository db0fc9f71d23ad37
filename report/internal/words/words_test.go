package words

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"pelt/model"
	"pelt/plan"
	"pelt/report/internal/sample"
	"pelt/unit"
)

func TestSeconds(t *testing.T) {
	for _, c := range []struct {
		in   float64
		want string
	}{{0.5, "500 ms"}, {3, "3 s"}, {1.5, "1.50 s"}, {60, "1 min"}, {90, "90 s"}, {7200, "2 h"}, {125, "2m5s"}, {-1, "–"}} {
		if got := Seconds(c.in); got != c.want {
			t.Errorf("Seconds(%v) = %q; want %q", c.in, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		line model.Line
		want string
	}{
		{model.Line{Layer: "receiver-buffer", Host: "receiver", Cause: "SOCKET_RCVBUFF"}, "receiver socket buffer full (SOCKET_RCVBUFF)"},
		{model.Line{Layer: "network", Host: "router", Cause: "tx_dropped"}, "on the way at router (tx_dropped)"},
		{model.Line{Layer: "network", Host: "router", Cause: "queue of the link to receiver full"}, "queue on the way at router full"},
		{model.Line{Layer: "network", Cause: model.CauseElimination}, "on the wire or in a device between (by elimination)"},
		{model.Line{Layer: "receiver-ring", Host: "receiver", Cause: model.CauseRingFull}, "network card ring at the receiver full"},
		{model.Line{Layer: "receiver-ring", Host: "receiver", Cause: model.CauseRingMissed}, "network card ring at the receiver full (rx-missed)"},
		{model.Line{Layer: "application", Host: "receiver", Cause: model.CauseLate}, "arrived too late"},
		{model.Line{Layer: "network"}, "on the way"},
		{model.Line{Layer: "moon", Cause: "a\x1b[31m\nb"}, "moon at an unknown node (a·[31m b)"},
	} {
		if got := Line(c.line); got != c.want {
			t.Errorf("Line(%+v) = %q; want %q", c.line, got, c.want)
		}
	}
}

func numbers(list ...float64) (levels []model.Value) {
	for _, n := range list {
		levels = append(levels, model.Number(n))
	}
	return levels
}

func TestCommand(t *testing.T) {
	bench := func(o plan.RouterOptions) model.Plan {
		p, err := plan.Router(o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	rate := sample.Loss().Plan
	rate.Flows[0].Rate, rate.Flows[0].Streams, rate.Flows[0].DontFragment = unit.PacketRate(150000), 4, true
	interval := sample.Loss().Plan
	interval.Flows[0].Rate, _ = unit.ParseRate("every 5ms")
	watched := sample.Loss().Plan
	watched.Drops, watched.Flows[0].Segments, watched.Flows[0].SendBuffer, watched.Flows[0].ReceiveBuffer = model.DropsCount, 8, 65536, 4096
	hostile := sample.Loss().Plan
	hostile.Target = "a; rm -rf $HOME'"
	hostileBench := model.Plan{Command: "router", Target: "lab:nat", Flows: []model.Flow{{Name: "up", Streams: 1}}, Timing: model.Timing{MeasureSeconds: 3},
		Design: model.Design{Kind: "list", Repeats: 3, Cells: []model.Cell{{"protocol": model.Word("udp"), "frame_bytes": model.Word("$(id)"), "direction": model.Word("up;id")}, {"rate_pps": model.Word("`id`")}}}}
	star := model.Plan{Command: "sweep", Target: "lab:star", Receivers: 100, Flows: []model.Flow{{Name: "up", Protocol: model.UDP, Streams: 2, Packets: 1000, SendBuffer: 4096}},
		Factors: []model.Factor{{Knob: "payload_bytes", Levels: numbers(512, 1472)}, {Knob: "interval_ns", Levels: numbers(0, 5e6, 7.5e6)}, {Knob: "send_buffer_bytes", Levels: numbers(4096, 65536)}},
		Design:  model.Design{Kind: "grid", Repeats: 3, Seed: 7}, Timing: model.Timing{MeasureSeconds: 60},
		Links: []model.Link{{Node: "receiver", Rate: 1e6, DelaySeconds: 0.04, JitterSeconds: 0.01, Distribution: "file:wifi.dist", DistributionTable: model.TableText([]int16{1})}}}
	rates := model.Plan{Command: "sweep", Target: "nas", Flows: []model.Flow{{Name: "up", Protocol: model.UDP, PayloadBytes: 64, Streams: 1}},
		Factors: []model.Factor{{Knob: "payload_bytes", Levels: numbers(64)}, {Knob: "rate_pps", Levels: append(numbers(10000), model.Word("max"))}},
		Design:  model.Design{Kind: "grid", Repeats: 2, Seed: 7}, Timing: model.Timing{WarmupSeconds: 0.1, MeasureSeconds: 2}}
	losses, err := plan.LinkFactor("link.loss=0,1%,10%")
	if err != nil {
		t.Fatal(err)
	}
	delays, err := plan.LinkFactor("link-receiver.delay=1ms,20ms")
	if err != nil {
		t.Fatal(err)
	}
	control := func(o plan.ControlOptions) model.Plan {
		p, err := plan.Control(o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	odd, other := star, rates
	odd.Timing.MeasureSeconds = 2
	other.Factors = []model.Factor{{Knob: "loss_ratio", Levels: numbers(0)}}
	for _, c := range []struct {
		name string
		plan model.Plan
		want string
	}{
		{"router", sample.Router().Plan, "pelt curve 192.168.2.5:7358 --code CODE --payload 16,64,100,200,400,800,1472,6400 --time 3s --warmup 500ms --repeats 3 --seed 1"},
		{"lab", sample.Both().Plan, "pelt curve lab:router --payload 64,512,1472 --direction both --time 2s --warmup 500ms --repeats 2 --link rate=1gbit --link-receiver rate=200mbit,queue=100 --seed 1"},
		{"tcp", sample.TCP().Plan, "pelt curve 192.168.2.5 --code CODE --proto tcp --payload 64,1460 --time 10s --warmup 500ms --repeats 2 --seed 1"},
		{"paced", rate, "pelt curve 10.0.0.2 --code CODE --payload 64,512,1472,4096 --rate 150kpps --streams 4 --df --time 5s --warmup 500ms --repeats 1 --seed 1"},
		{"interval", interval, "pelt curve 10.0.0.2 --code CODE --payload 64,512,1472,4096 --interval 5ms --time 5s --warmup 500ms --repeats 1 --seed 1"},
		{"watched", watched, "pelt curve 10.0.0.2 --code CODE --payload 64,512,1472,4096 --gso 8 --send-buffer 65536 --receive-buffer 4096 --time 5s --warmup 500ms --repeats 1 --drops count --seed 1"},
		{"hostile", hostile, `pelt curve 'a; rm -rf $HOME'\''' --code CODE --payload 64,512,1472,4096 --time 5s --warmup 500ms --repeats 1 --seed 1`},
		{"hostile bench", hostileBench, "pelt router lab:nat --proto udp --direction 'up;id' --frame '$(id)' --idle-rate '`id`pps' --time 3s --warmup 0ms --repeats 3 --seed 0"},
		{"no flags for it", sample.Rates().Plan, "pelt run plan.yaml"},
		{"sweep", star, "pelt sweep lab:star --receivers 100 --payload 512,1472 --interval 0ms,5ms,7.5ms --send-buffer 4096,65536 --streams 2 --count 1000 --repeats 3 --link-receiver rate=1mbit,delay=40ms,jitter=10ms,distribution=file:wifi.dist --seed 7"},
		{"sweep of rates", rates, "pelt sweep nas --code CODE --payload 64 --rate 10000pps,max --time 2s --warmup 100ms --repeats 2 --seed 7"},
		{"router bench", bench(plan.RouterOptions{CurveOptions: plan.CurveOptions{Target: "10.0.0.2"}, Near: "10.0.1.2", DUT: "ssh://root@10.0.1.1",
			Variants: []model.Variant{{Name: "quiet", Command: "ssh root@r dmesg -n 1"}}}),
			"pelt router 10.0.1.2..10.0.0.2 --code CODE --dut ssh://root@10.0.1.1 --variant 'quiet=ssh root@r dmesg -n 1' --proto udp,tcp --direction up,down,both --frame 64,512,1518 --idle-rate 1000pps --time 3s --warmup 1s --repeats 3 --seed 0"},
		{"router bench in the lab", bench(plan.RouterOptions{CurveOptions: plan.CurveOptions{Target: "lab:nat", Direction: "up", Streams: 2}, Connections: []string{"keep"},
			Protocols: []model.Protocol{model.TCP}, Variants: []model.Variant{{Name: "plain"}, {Name: "rules=100"}}}),
			"pelt router lab:nat --variant plain --variant rules=100 --proto tcp --direction up --connections keep --streams 2 --time 3s --warmup 1s --repeats 3 --seed 0"},
		{"router bench that is none of the command's", sample.Bench().Plan, "pelt run plan.yaml"},
		{"congestion controls", control(plan.ControlOptions{CurveOptions: plan.CurveOptions{Target: "lab:direct", Seed: 3, Links: []model.Link{{Rate: 1e8}}}, Losses: &losses, Factors: []model.Factor{delays},
			Bytes: 640e6, HTTP: true, MostRepeats: 30}),
			"pelt cc lab:direct --loss 0,0.01,0.1 --factor link-receiver.delay=0.001s,0.02s --control cubic,bbr --bytes 640000000 --http --until-separable --max-repeats 30 --time 120s --repeats 10 --link rate=100mbit --seed 3"},
		{"a mix", control(plan.ControlOptions{CurveOptions: plan.CurveOptions{Target: "10.0.0.2", Direction: "down"}, Controls: []string{"cubic+bbr"}, Stagger: 5 * time.Second}),
			"pelt cc 10.0.0.2 --code CODE --control cubic+bbr --streams 2 --stagger 5s --direction down --time 10s --repeats 10 --seed 0"},
		{"own programs", control(plan.ControlOptions{CurveOptions: plan.CurveOptions{Target: "lab:direct"}, Commands: &model.Commands{Server: "a 'b'", Client: "c {server}"}}),
			"pelt cc lab:direct --control cubic,bbr --exec-server 'a '\\''b'\\''' --exec-client 'c {server}' --time 120s --repeats 10 --seed 0"},
		{"sweep with a time and a count", odd, "pelt run plan.yaml"},
		{"sweep of what is no flag", other, "pelt run plan.yaml"},
		{"no plan", model.Plan{}, "pelt run plan.yaml"},
	} {
		if got, _ := Command(c.plan); got != c.want {
			t.Errorf("%s: Command =\n %s\nwant\n %s", c.name, got, c.want)
		}
	}
}

// Links are said in the words that model.ParseLink reads back.
func TestLinkFlagReadsBack(t *testing.T) {
	l := model.Link{Node: "receiver", Rate: 95500000, QueuePackets: 100, MTU: 1400, OverheadBytes: 20, DelaySeconds: 0.04, JitterSeconds: 0.0015, LossRatio: 0.001, Distribution: "normal", Seed: 7}
	flag := linkFlag(l)
	if len(flag) != 2 || flag[0] != "--link-receiver" {
		t.Fatalf("linkFlag = %q; want --link-receiver and its value", flag)
	}
	back, err := model.ParseLink("receiver", flag[1])
	if err != nil || back != l {
		t.Errorf("%s reads back as %+v, %v; want %+v", flag[1], back, err, l)
	}
}

// A shell must see one word, and the very one.
func TestQuoteInAShell(t *testing.T) {
	for _, in := range []string{"plain", "a b", "it's", "$HOME `id` \"x\" \\ *", "[::1]:7358", ""} {
		out, err := exec.Command("sh", "-c", "printf '%s|' "+quote(in)).Output()
		if err != nil || string(out) != in+"|" {
			t.Errorf("quote(%q) = %s, which a shell reads as %q, %v", in, quote(in), out, err)
		}
	}
}

func TestRunRef(t *testing.T) {
	for id, want := range map[string]string{"20261114-183000-7f3a": "20261114-183000-7f3a", "": "RUN", "last; id": "'last; id'"} {
		if got := RunRef(id); got != want {
			t.Errorf("RunRef(%q) = %s; want %s", id, got, want)
		}
	}
}

func TestLossNamesItsParts(t *testing.T) {
	for _, d := range sample.All() {
		for _, r := range d.Doc.Results {
			if s := Cell(r.Cell); s == "" || strings.ContainsAny(s, "\x1b\x00\n") {
				t.Errorf("%s: Cell(%v) = %q", d.Name, r.Cell, s)
			}
		}
	}
}

func TestEach(t *testing.T) {
	minute := model.Timing{MeasureSeconds: 60}
	for _, c := range []struct {
		plan model.Plan
		want string
	}{
		{model.Plan{Flows: []model.Flow{{Packets: 1000}}, Timing: minute}, "1 000 packets each"},
		{model.Plan{Flows: []model.Flow{{}}, Timing: minute}, "1 min each"},
		{model.Plan{Timing: minute}, "1 min each"},
	} {
		if got := Each(c.plan); got != c.want {
			t.Errorf("Each = %q; want %q", got, c.want)
		}
	}
}

// A run that was gone on with has a record for each part, whose trials both start at 1.
func TestRecordOfTwoFiles(t *testing.T) {
	of := func(file string) model.Result {
		return model.Result{Flows: []model.FlowResult{{Record: &model.RecordFacts{File: file, Trial: 1, Packets: 10, Bytes: 20, Syncs: 3, SyncMaxS: 0.001}}}}
	}
	want := "recorded in first.rec and second.rec: 20 packets, 2.00 B each, none left out; synced to disk 6 times, in 1 ms at the longest"
	if got := Record(model.Document{Results: []model.Result{of("first.rec"), of("second.rec")}}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
