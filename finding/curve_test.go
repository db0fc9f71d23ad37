package finding

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
	"pelt/unit"
	"pelt/words"
)

// made is a path that carries so many packets and so many bits on the wire a second.
type made struct {
	pps, bits float64
	sender    float64 // packets per second that the sender can send
	layer     string  // where the rest is lost; "": in the queue of a link
	sizes     []int   // payloads in bytes
	repeats   int
	rate      unit.Rate // asked; zero is as fast as possible
}

func (p made) doc() *model.Document {
	d := sample.Base("192.0.2.7", p.sizes, p.repeats, 1)
	d.ID, d.Host, d.Plan.Flows[0].Rate = "abc", nil, p.rate
	for repeat := range p.repeats {
		for _, size := range p.sizes {
			send := p.sender
			asked, paced := p.rate.PPS(size)
			if paced {
				send = min(send, asked)
			}
			f := sample.UDP("up", size, send, min(p.pps, p.bits/8/float64(model.FrameBytes(model.UDP, 4, size)+20)), 1, 0)
			f.Planned, f.ReceivePPS, f.GoodputBPS = uint64(asked), float64(f.Received), float64(f.Received)*8*float64(size)
			if f.SenderCPU.ThreadRatio = 0.5; send == p.sender {
				f.SenderCPU.ThreadRatio = 1
			}
			if p.layer != "" {
				sample.Line(&f, p.layer, model.Receiver, "SOCKET_RCVBUFF", 1, "exact-seq")
			} else {
				sample.Line(&f, model.LayerNetwork, "link router-receiver", model.CauseLinkQueue, 1, "exact-seq")
			}
			r := sample.Result(size, repeat, f)
			r.Engine = ""
			d.Results = append(d.Results, r)
		}
	}
	return &d
}

var usual = []int{64, 128, 256, 512, 1024, 1472}

func curveExamples(*testing.T) []example {
	run := func(pps, bits, sender float64, layer string, change ...func(*made)) *model.Document {
		p := made{pps: pps, bits: bits, sender: sender, layer: layer, sizes: usual, repeats: 3}
		for _, c := range change {
			c(&p)
		}
		return p.doc()
	}
	on, at := "", model.LayerReceiverBuffer
	few := func(packets uint64) *model.Document { // a packet in a second of 0.1 pps is no 1 pps
		return edited(run(300e3, 1e9, 300e3, "", func(p *made) { p.sizes, p.rate = []int{64}, unit.PacketRate(1) }),
			func(f *model.FlowResult) {
				f.Planned, f.Attempted, f.Received, f.Lost, f.LossRatio, f.Ledger = packets, packets, packets, 0, 0, model.Ledger{}
			})
	}
	waiting := func(median time.Duration) *model.Document { // all of 2 s came out in 4 s
		return edited(run(300e3, 1e9, 300e3, "", func(p *made) { p.sizes, p.rate = []int{200}, unit.PacketRate(1000) }),
			func(f *model.FlowResult) {
				f.DurationS, f.Attempted, f.Received, f.ReceivePPS = 2, 2000, 2000, 501
				f.Delay = &model.Percentiles{Count: 2000, Min: 1e6, P50: 1e6 + float64(median), Max: 1.44e9}
			})
	}
	outage := run(300e3, 1e9, 1e6, on, func(p *made) { p.sizes, p.rate = []int{64}, unit.PacketRate(1000) })
	dead := &outage.Results[1].Flows[0]
	dead.Received, dead.Lost, dead.LossRatio, dead.ReceivePPS, dead.GoodputBPS = 0, 1000, 1, 0, 0
	dead.Ledger = model.Ledger{Lost: 1000, Lines: []model.Line{{Layer: model.LayerNetwork, Cause: "NETFILTER_DROP",
		Host: "10.0.1.1", Packets: 1000}}}
	blocked := run(300e3, 1e9, 1e6, "", func(p *made) { p.sizes, p.rate = []int{64}, unit.PacketRate(1000) })
	blocked.Results[1].State, blocked.Results[1].Why = model.Invalid, model.Reasons{{Code: model.NothingThrough}}
	rare := run(0, 1e9, 1e6, on, func(p *made) { p.sizes = []int{64} }) // something arrives in one trial of three
	some := &rare.Results[1].Flows[0]
	some.Received, some.Lost, some.LossRatio, some.ReceivePPS, some.GoodputBPS = 5, some.Attempted-5, 1, 5, 2560
	refuse := func(why model.Reason) *model.Document { // the largest of six sizes
		d := run(300e3, 1e9, 1e6, "", func(p *made) { p.rate, p.repeats = unit.PacketRate(1000), 1 })
		d.Results[5].State, d.Results[5].Why = model.Invalid, model.Reasons{why}
		d.Results[5].Flows = []model.FlowResult{{Name: "up", Protocol: model.UDP, PayloadBytes: 1472}}
		return d
	}
	cut := run(1e6, 1e9, 25.7e3, "", func(p *made) { p.sizes, p.repeats, p.rate = []int{64}, 1, unit.PacketRate(30e3) })
	cut.Results[0].State, cut.Results[0].Why = model.Aborted, model.Reasons{{Code: model.TrialCut,
		Of: model.Reasons{{Code: model.HostFault, Text: "flow up lost much"}}}}

	return examplesOf(map[string]*model.Document{
		"both limits":        run(340e3, 1e9, 1.4e6, on),
		"packets only, once": run(50e3, 1e9, 1.4e6, on, func(p *made) { p.repeats = 1 }),
		"bits only":          run(2e6, 50e6, 1.4e6, on),
		"the receiver":       run(300e3, 100e9, 1e6, at),
		"two sizes":          run(340e3, 500e6, 1e6, on, func(p *made) { p.sizes = []int{64, 1472} }),
		"two sizes, of which one brings most of both": edited(run(340e3, 500e6, 1e6, on,
			func(p *made) { p.sizes = []int{64, 1472} }),
			func(f *model.FlowResult) {
				if f.PayloadBytes == 64 {
					f.ReceivePPS, f.GoodputBPS = 10e3, 5.12e6
				}
			}),
		"the sender, of small sizes": run(2e6, 1e9, 400e3, on),
		"a rate that is not":         run(300e3, 50e6, 1e6, on, func(p *made) { p.rate = unit.PacketRate(10e3) }),
		"a receiver that is slow at an asked rate": run(8e3, 100e9, 1e6, at,
			func(p *made) { p.sizes, p.rate = []int{64}, unit.PacketRate(10e3) }),
		"TCP, slow small writes": edited(run(8e3, 1e9, 1e6, on, func(p *made) { p.sizes = []int{64, 1000} }),
			func(f *model.FlowResult) {
				f.Protocol, f.TCP, f.Ledger = model.TCP, &model.TCPFacts{Writes: 1}, model.Ledger{}
			}),
		"nothing arrives":      run(0, 1e9, 1e6, on),
		"next to nothing":      rare,
		"a trial that was cut": cut,
		"nine packets":         few(9),
		"ten packets":          few(10),
		"held by the sender's queue": edited(run(300e3, 1e9, 25_700, "",
			func(p *made) { p.sizes, p.rate = []int{200}, unit.PacketRate(30e3) }),
			func(f *model.FlowResult) {
				f.SenderCPU.ThreadRatio = 0.5
				f.Ledger.Pacing = []model.PacingLine{{Cause: model.PacingBackpressure, Host: "sender", Packets: 4300,
					Queue: &model.Queue{Kind: "tbf", Interface: "eth0", RateBPS: 50e6}}}
			}),
		"a queue that grows":                    waiting(700 * time.Millisecond),
		"a pause of the receiver":               waiting(time.Millisecond),
		"one trial of three lost all":           outage,
		"one trial of three began with nothing": blocked,
		"a size that does not fit": refuse(model.Reason{Code: model.PacketTooBig,
			Numbers: map[string]float64{"path_mtu_bytes": 1400}}),
		"a size that is refused": refuse(model.Reason{Code: model.SendRefused, Name: "EPERM"}),
		"silent receivers": edited(run(300e3, 1e9, 400e3, "", func(p *made) { p.sizes = []int{200} }),
			func(f *model.FlowResult) {
				f.Silent = []model.Silence{{Node: "receiver-49", Streams: 1, Of: 1, AfterS: 30},
					{Node: "h3", Streams: 1, Of: 1, AfterS: 30},
					{Node: "receiver", Streams: 2, Of: 8, AfterS: 30}, {Node: "receiver-7", Streams: 1, Of: 1,
						AfterS: 30}, {Node: "receiver-8", Streams: 1, Of: 1, AfterS: 30}}
			}),
	}, append([]Rule{curveRule, repeatsRule("goodput_bps"), silentRule, grownRule}, generalRules()...)...)
}

// edited changes the first flow of each trial.
func edited(d *model.Document, change func(*model.FlowResult)) *model.Document {
	for i := range d.Results {
		change(&d.Results[i].Flows[0])
	}
	return d
}

// TestWords: each sentence parses, and one whose numbers are missing shows it.
func TestWords(t *testing.T) {
	words, numbers := regexp.MustCompile(`\{\*?([a-z0-9]+)`), regexp.MustCompile(`\{(\*|[a-z0-9]+_)`)
	options := regexp.MustCompile(`\[[^\[\]]*\]`)
	for code, text := range sentences {
		f := Finding{Code: code, Words: map[string]string{}}
		for _, w := range words.FindAllStringSubmatch(text+f.command(), -1) {
			f.Words[w[1]] = "word"
		}
		got := f.Text() + f.Command()
		if strings.ContainsAny(got, "{}[]|") || strings.Contains(got, "no words") {
			t.Errorf("%s: %s", code, got)
		}
		needed := text + f.command()
		for options.MatchString(needed) {
			needed = options.ReplaceAllString(needed, "")
		}
		if numbers.MatchString(needed) != strings.Contains(got, "<no ") {
			t.Errorf("%s without numbers is %q", code, got)
		}
	}
	if got := (Finding{Code: "gone"}).Text(); got != "<no words for gone>" {
		t.Error(got)
	}
	if got := (Finding{Code: "curve.kept"}).Text(); !strings.Contains(got, "<no path>") {
		t.Error(got)
	}
	hostile := "host; rm -rf $HOME '\x1b[31m\u202e\n"
	got := say("explain", Next, "run", hostile).Command()
	if want := `pelt explain 'host; rm -rf $HOME '\''�[31m� '`; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

// inTable is a code in a table of sentences.
var inTable = regexp.MustCompile(`(?m)^\t"[a-z.-]+":`)

// Each sentence is of a finding that some code makes: its code, or the beginning of it, is
// written somewhere; and each code that is written whole has a sentence. No sentence is there twice.
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
				source.Write(inTable.ReplaceAll(text, nil))
			}
		}
	}
	left := len(sentences)
	for _, t := range tables {
		left -= len(t)
	}
	if left != 0 {
		t.Errorf("%d sentences are there twice", -left)
	}
	made := regexp.MustCompile(`(?:say\(|Code = |Code: )"([a-z.+-]+[a-z])"`)
	for _, m := range made.FindAllStringSubmatch(source.String(), -1) {
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

// TestPathIsSaidOnly: the words of a stored finding have the target, and its reader reads of the path to it.
func TestPathIsSaidOnly(t *testing.T) {
	d := made{pps: 300e3, bits: 1e9, sender: 1e9, sizes: []int{64, 1472}, repeats: 1}.doc()
	d.Plan.Target = "192.0.2.1"
	kept := curveRule(table.Rows(d))[0].Stored(true)
	if kept.Words["target"] != d.Plan.Target || kept.Words["path"] != "" ||
		!strings.HasPrefix(kept.Text, "The path to 192.0.2.1 ") {
		t.Errorf("%+v", kept)
	}
	if again := FromStored(kept, words.Chinese).Text(); !strings.HasPrefix(again, "路径 192.0.2.1") {
		t.Error(again)
	}
}

// TestStoredWordsAreTranslated: older files have English words only; those that the language has are said in it.
func TestStoredWordsAreTranslated(t *testing.T) {
	kept := say("curve.kept", Answer, "sizes", everySize, pathTarget, "lab:direct", "way", "LAN to WAN").Stored(false)
	said := FromStored(kept, words.Chinese)
	if !strings.Contains(said.Parts()[0], "各种包长") || said.W("way") != "LAN 到 WAN" || kept.Words["sizes"] != everySize {
		t.Errorf("%s, %v; the stored one has %v", said.Parts()[0], said.Words, kept.Words)
	}
	one := model.Finding{Code: "curve.one", Words: map[string]string{"best": "64 B", "target": "lab:nat"},
		Numbers: []model.FindingNumber{{Metric: "receive_pps", Role: "best", Value: 262e3},
			{Metric: "goodput_bps", Role: "wide", Value: 134e6}}}
	want := "lab:nat saturates at 262 kpps, which is 134 Mbit/s, at 64 B."
	if got := FromStored(one, words.English).Parts()[0]; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
