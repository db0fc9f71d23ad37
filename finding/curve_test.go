package finding

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

// made is a path that carries so many packets and so many bits on the wire a second.
type made struct {
	pps, bits float64
	sender    float64 // packets per second that the sender can send
	layer     string  // where the rest is lost
	sizes     []int   // payloads in bytes
	repeats   int
	rate      unit.Rate // asked; zero is as fast as possible
	protocol  model.Protocol
	goodput   float64 // bit/s at every size, where it is given
	invalid   int     // trials, the first ones
	noise     func(i int) float64
}

func (p made) doc() *model.Document {
	if p.protocol == "" {
		p.protocol = model.UDP
	}
	if p.noise == nil {
		p.noise = func(int) float64 { return 1 }
	}
	d := &model.Document{ID: "abc", Plan: model.Plan{Command: "curve", Target: "192.0.2.7", Design: model.Design{Repeats: p.repeats},
		Flows: []model.Flow{{Name: "up", Protocol: p.protocol, Rate: p.rate}}}}
	for repeat := range p.repeats {
		for _, size := range p.sizes {
			f := model.FlowResult{Name: "up", Protocol: p.protocol, PayloadBytes: size,
				FrameBytes: model.FrameBytes(p.protocol, 4, size), DurationS: 1, Streams: 1}
			send := p.sender
			if asked, ok := p.rate.PPS(size); ok {
				f.Planned = uint64(asked)
				send = min(send, asked)
			}
			got := min(send, p.pps, p.bits/8/float64(f.FrameBytes+20)) * p.noise(len(d.Results))
			f.Attempted, f.Received = uint64(max(send, got)), uint64(got)
			f.Lost = f.Attempted - f.Received
			f.LossRatio = float64(f.Lost) / float64(f.Attempted)
			f.SendPPS, f.ReceivePPS, f.GoodputBPS = float64(f.Attempted), float64(f.Received),
				float64(f.Received)*8*float64(size)
			if p.goodput > 0 {
				f.GoodputBPS = p.goodput * p.noise(len(d.Results)*p.repeats)
			}
			if f.SenderCPU = (model.CPU{ThreadRatio: 0.5, HostRatio: 0.3}); send == p.sender {
				f.SenderCPU.ThreadRatio = 1
			}
			if p.protocol == model.TCP {
				f.TCP = &model.TCPFacts{Writes: 1}
			} else if f.Lost > 0 {
				f.Ledger = model.Ledger{Lost: f.Lost, Lines: []model.Line{{Layer: p.layer, Cause: "SOCKET_RCVBUFF",
					Host: "router", Packets: f.Lost}}}
			}
			r := model.Result{Cell: model.Cell{"payload_bytes": model.Number(float64(size))}, Repeat: repeat,
				State: model.Valid, Flows: []model.FlowResult{f}}
			if len(d.Results) < p.invalid {
				r.State = model.Invalid
			}
			d.Results = append(d.Results, r)
		}
	}
	return d
}

func curveRules() []Rule {
	return append([]Rule{Curve, Repeats("goodput_bps", 3)}, Common()...)
}

func texts(all []Finding) (list []string) {
	for _, f := range all {
		list = append(list, strings.TrimSpace(f.Text()+" "+f.Command()))
	}
	return list
}

var usual = []int{64, 128, 256, 512, 1024, 1472}

func TestCurve(t *testing.T) {
	jitter := func(i int) float64 { return []float64{1, 0.97, 1.02}[i/6%3] }
	for _, c := range []struct {
		name string
		path made
		want []string // texts in order, all that there are
	}{
		{"both limits", made{pps: 340e3, bits: 1e9, sender: 1.4e6, layer: model.LayerNetwork, sizes: usual,
			repeats: 3, noise: jitter}, []string{
			"The path to 192.0.2.7 saturates at about 340 kpps (330–347 kpps) with small packets and 957 Mbit/s with large ones. Below about 300 B the limit is packets per second; above it, bits per second.",
			"The path was the limit: most of the lost packets were lost on the way.",
			"Everything was sent as fast as possible, so the highest rate without loss was not measured.",
			"Run it again with --rate 320kpps to measure below the limit.",
			"See where the packets went: pelt explain abc"}},
		{"packets only, once", made{pps: 50e3, bits: 1e9, sender: 1.4e6, layer: model.LayerNetwork, sizes: usual,
			repeats: 1}, []string{
			"The path to 192.0.2.7 saturates at about 50.0 kpps at every size, up to 589 Mbit/s: the limit is packets per second.",
			"The path was the limit: most of the lost packets were lost on the way.",
			"Everything was sent as fast as possible, so the highest rate without loss was not measured.",
			"Measured once: another trial may differ.",
			"Run it again with --rate 47kpps to measure below the limit.",
			"Run it again with --repeats 3.",
			"See where the packets went: pelt explain abc"}},
		{"bits only", made{pps: 2e6, bits: 50e6, sender: 1.4e6, layer: model.LayerNetwork, sizes: usual,
			repeats: 3}, []string{
			"The path to 192.0.2.7 saturates at about 47.8 Mbit/s at every size: the limit is bits per second."}},
		{"the sender", made{pps: 2e6, bits: 100e9, sender: 400e3, sizes: usual, repeats: 3}, []string{
			"The path to 192.0.2.7 carries at least 400 kpps and 4.71 Gbit/s. At every size the sender was the limit, not the path.",
			"The sender was the limit: its thread was 100 % busy. The path may carry more.",
			"Loss-free up to 400 kpps, at 64 B."}},
		{"the receiver", made{pps: 300e3, bits: 100e9, sender: 1e6, layer: model.LayerReceiverBuffer, sizes: usual,
			repeats: 3}, []string{
			"The path to 192.0.2.7 carries at least 300 kpps and 3.53 Gbit/s. At every size the receiver was the limit, not the path.",
			"The receiver was the limit: most of the lost packets had arrived there. The path may carry more."}},
		{"one size", made{pps: 340e3, bits: 1e9, sender: 1e6, layer: model.LayerNetwork, sizes: []int{64},
			repeats: 3}, []string{
			"The path to 192.0.2.7 saturates at about 340 kpps, which is 174 Mbit/s, at 64 B."}},
		{"two sizes", made{pps: 340e3, bits: 500e6, sender: 1e6, layer: model.LayerNetwork, sizes: []int{64, 1472},
			repeats: 3}, []string{
			"The path to 192.0.2.7 saturates at about 340 kpps at 64 B and 479 Mbit/s at 1472 B."}},
		{"the sender, of small sizes", made{pps: 2e6, bits: 1e9, sender: 400e3, layer: model.LayerNetwork,
			sizes: usual, repeats: 3}, []string{
			"The path to 192.0.2.7 carries at least 400 kpps and 957 Mbit/s. At 64 B, 128 B and 256 B the sender was the limit, not the path."}},
		{"a rate that is kept", made{pps: 300e3, bits: 1e9, sender: 1e6, sizes: usual, repeats: 3,
			rate: unit.PacketRate(10e3)}, []string{
			"The path to 192.0.2.7 carries the asked rate at every size, up to 10.0 kpps and 118 Mbit/s."}},
		{"a rate that is not", made{pps: 300e3, bits: 50e6, sender: 1e6, layer: model.LayerNetwork, sizes: usual,
			repeats: 3, rate: unit.PacketRate(10e3)}, []string{
			"The path to 192.0.2.7 does not carry the asked rate: up to 59.4 % is lost, at 1472 B."}},
		{"TCP, alike", made{pps: 8e3, bits: 1e9, sender: 1e6, sizes: []int{1000}, repeats: 3, protocol: model.TCP},
			[]string{
				"The path to 192.0.2.7 carries 64.0 Mbit/s of TCP."}},
		{"TCP, alike whatever the writes", made{pps: 1e6, bits: 1e9, sender: 1e6, sizes: []int{64, 1460},
			repeats: 3, protocol: model.TCP, goodput: 95e6, noise: jitter}, []string{
			"The path to 192.0.2.7 carries 95.0 Mbit/s (92.2–96.9 Mbit/s) of TCP."}},
		{"nothing arrives", made{pps: 0, bits: 1e9, sender: 1e6, layer: model.LayerNetwork, sizes: usual, repeats: 3},
			[]string{"The path to 192.0.2.7 carries nothing: nothing arrived at every size."}},
		{"TCP, slow small writes", made{pps: 8e3, bits: 1e9, sender: 1e6, sizes: []int{64, 1000}, repeats: 3,
			protocol: model.TCP}, []string{
			"The path to 192.0.2.7 carries 64.0 Mbit/s of TCP, and 4.10 Mbit/s with writes of 64 B."}},
		{"some trials invalid", made{pps: 8e3, bits: 1e9, sender: 1e6, layer: model.LayerNetwork,
			sizes: []int{64, 1000}, repeats: 3, protocol: model.TCP, invalid: 4}, []string{
			"The path to 192.0.2.7 carries 64.0 Mbit/s of TCP, and 4.10 Mbit/s with writes of 64 B.",
			"Only 1 of 3 repeats can be used, at 64 B.",
			"4 of 6 trials are left out, because they did not run as ordered.",
			"Run it again with --repeats 3."}},
		{"the sender was too slow", made{pps: 1e6, bits: 1e9, sender: 25.7e3, sizes: usual, repeats: 2,
			rate: unit.PacketRate(30e3), invalid: 12}, []string{
			"No usable result: the sender could not keep 30.0 kpps (it managed 25.7 kpps). Try --rate 24kpps",
			"See why: pelt report abc --all"}},
		{"nothing ran", made{pps: 1e6, bits: 1e9, sender: 1e6, sizes: usual, repeats: 1, invalid: 6}, []string{
			"No usable result: none of 6 trials ran as ordered."}},
	} {
		got := texts(All(table.Rows(c.path.doc()), curveRules()...))
		if n := len(c.want); n > len(got) || strings.Join(got[:n], "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestWords: each sentence parses, and one whose numbers are missing shows it.
// What cut a trial is told, however late its sender was.
func TestCutTrial(t *testing.T) {
	d := made{pps: 1e6, bits: 1e9, sender: 25.7e3, sizes: []int{64}, repeats: 1, rate: unit.PacketRate(30e3)}.doc()
	d.Results[0].State, d.Results[0].Why = model.Aborted, model.Reasons{{Code: model.TrialCut, Text: "flow up lost much"}}
	got := texts(Unusable(table.Rows(d)))
	if want := "No usable result: none of 1 trial ran as ordered (flow up lost much)."; got[0] != want {
		t.Errorf("%q, want %q", got[0], want)
	}
}

func TestWords(t *testing.T) {
	words, numbers := regexp.MustCompile(`\{\*?([a-z0-9]+)`), regexp.MustCompile(`\{(\*|[a-z0-9]+_)`)
	options := regexp.MustCompile(`\[[^\[\]]*\]`)
	for code, text := range sentences {
		f := Finding{Code: code, Words: map[string]string{}}
		for _, w := range words.FindAllStringSubmatch(text+commands[code], -1) {
			f.Words[w[1]] = "word"
		}
		got := f.Text() + f.Command()
		if strings.ContainsAny(got, "{}[]|") || strings.Contains(got, "no words") {
			t.Errorf("%s: %s", code, got)
		}
		needed := text + commands[code]
		for options.MatchString(needed) {
			needed = options.ReplaceAllString(needed, "")
		}
		if numbers.MatchString(needed) != strings.Contains(got, "<no ") {
			t.Errorf("%s without numbers is %q", code, got)
		}
	}
	for code := range commands {
		if sentences[code] == "" {
			t.Errorf("%s has a command and no sentence", code)
		}
	}
	if got := (Finding{Code: "gone"}).Text(); got != "<no words for gone>" {
		t.Error(got)
	}
	if got := (Finding{Code: "curve.kept"}).Text(); !strings.Contains(got, "<no path>") {
		t.Error(got)
	}
	hostile := "host; rm -rf $HOME '\x1b[31m\u202e\n"
	got := say("explain", Next).word("run", hostile).Command()
	if want := `pelt explain 'host; rm -rf $HOME '\''·[31m· '`; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

// Each sentence is of a finding that some code makes: its code, or the beginning of it, is
// written somewhere; and each code that is written whole has a sentence.
func TestSentencesAndCodes(t *testing.T) {
	var source strings.Builder
	for _, pattern := range []string{"*.go", "../view/*.go", "../cmd/pelt/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if text, err := os.ReadFile(name); err != nil {
				t.Fatal(err)
			} else if name != "words.go" && !strings.HasSuffix(name, "_test.go") {
				source.Write(text)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?:say\(|Code = |Code: )"([a-z.+-]+[a-z])"`).FindAllStringSubmatch(source.String(), -1) {
		if sentences[m[1]] == "" {
			t.Errorf("%s has no sentence", m[1])
		}
	}
	for code := range sentences {
		made := strings.Contains(source.String(), `"`+code+`"`)
		for i, c := range code {
			made = made || (c == '.' || c == '-') && strings.Contains(source.String(), `"`+code[:i+1]+`"`)
		}
		if !made {
			t.Errorf("nothing makes %s: %s", code, sentences[code])
		}
	}
}

// A queue of the sender's own host that held the schedule back is the limit, and the asked
// rate is not.
func TestHeldByTheSendersQueue(t *testing.T) {
	d := made{pps: 300e3, bits: 1e9, sender: 25_700, sizes: []int{200}, repeats: 3, rate: unit.PacketRate(30e3)}.doc()
	for i := range d.Results {
		f := &d.Results[i].Flows[0]
		f.SenderCPU.ThreadRatio = 0.5
		f.Ledger.Pacing = []model.PacingLine{{Cause: model.PacingBackpressure, Host: "sender", Packets: 4300,
			Queue: &model.Queue{Kind: "tbf", Interface: "eth0", RateBPS: 50e6}}}
	}
	found := texts(All(table.Rows(d), curveRules()...))
	for _, want := range []string{
		"The path to 192.0.2.7 carries all that the sender's host let out, up to 25.7 kpps and 41.1 Mbit/s. That is less than was asked.",
		"The limit was tbf on eth0, 50 Mbit/s at the sender: it held packets back.",
		"backpressure: tbf on eth0, 50 Mbit/s: it held back 14.3 % of the schedule.",
	} {
		if !slices.Contains(found, want) {
			t.Errorf("lacks %q:\n%s", want, strings.Join(found, "\n"))
		}
	}
}

// Receivers that did not answer are named, of many the first three, and each once.
func TestSilentReceivers(t *testing.T) {
	d := made{pps: 300e3, bits: 1e9, sender: 400e3, sizes: []int{200}, repeats: 2}.doc()
	for i := range d.Results {
		f := &d.Results[i].Flows[0]
		f.Silent = []model.Silence{{Node: "receiver-49", Streams: 1, Of: 1, AfterS: 30}, {Node: "h3", Streams: 1, Of: 1, AfterS: 30},
			{Node: "receiver", Streams: 2, Of: 8, AfterS: 30}, {Node: "receiver-7", Streams: 1, Of: 1, AfterS: 30}, {Node: "receiver-8", Streams: 1, Of: 1, AfterS: 30}}
	}
	want := []string{
		"Receiver 49 did not answer for 30 s; the test stopped sending to it.",
		"h3 did not answer for 30 s; the test stopped sending to it.",
		"The receiver did not answer for 30 s on 2 of 8 streams; the test stopped sending on them.",
		"The test stopped sending to 2 more receivers.",
	}
	if got := texts(Silent(table.Rows(d))); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// A handful of packets is no rate: one packet in a second of 0.1 pps is no 1 pps.
func TestTooFewPackets(t *testing.T) {
	for packets, few := range map[uint64]bool{1: true, 9: true, 10: false} {
		d := made{pps: 300e3, bits: 1e9, sender: 300e3, sizes: []int{64}, repeats: 3, rate: unit.PacketRate(1)}.doc()
		for i := range d.Results {
			f := &d.Results[i].Flows[0]
			f.Planned, f.Attempted, f.Received, f.Lost, f.LossRatio, f.Ledger = packets, packets, packets, 0, 0, model.Ledger{}
		}
		found := All(table.Rows(d), curveRules()...)
		if told := found[0].Code == "curve.few"; told != few {
			t.Errorf("%d packets: %s", packets, found[0].Text())
		}
		for _, f := range found {
			if few && strings.Contains(f.Text(), "asked rate") {
				t.Errorf("%d packets: %s", packets, f.Text())
			}
		}
	}
}
