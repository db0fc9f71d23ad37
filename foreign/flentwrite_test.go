package foreign_test

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pelt/foreign"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/test/sample"
)

// over is a run of one flow whose goodput is measured each second.
func over(protocol model.Protocol, from string) model.Document {
	d := sample.Single()
	d.Results = slices.Clone(d.Results[:1])
	r := &d.Results[0]
	r.Started = d.Started
	f := &r.Flows[0]
	f.Protocol, f.From, f.To = protocol, model.Sender, model.Receiver
	if f.GoodputBPS, f.LossRatio = 8e6, 0.03; from == model.Receiver {
		f.From, f.To, f.Name = f.To, f.From, "down"
	}
	if protocol == model.TCP {
		f.TCP = &model.TCPFacts{ReceivedBytes: 3e6, Retransmits: 7, Control: "cubic"}
	}
	r.Series = []model.Series{{Metric: "goodput_bps", Flow: f.Name, At: f.To, StepSeconds: 1,
		Values: []float64{9e6, math.NaN(), 7e6}}, {Metric: "send_pps", Flow: f.Name, At: f.From, StepSeconds: 1,
		Values: []float64{1, 2, 3}}}
	return d
}

// runs are of each test that flent has for pelt's, by its name there.
func runs() map[string]model.Document {
	both, back := over(model.TCP, model.Sender), over(model.TCP, model.Receiver).Results[0]
	both.Results[0].Flows = append(both.Results[0].Flows, back.Flows...)
	both.Results[0].Series = append(both.Results[0].Series, back.Series...)
	return map[string]model.Document{"udp_flood": over(model.UDP, model.Sender), "tcp_1up": over(model.TCP, model.Sender),
		"tcp_1down": over(model.TCP, model.Receiver), "tcp_bidirectional": both}
}

func write(t *testing.T, d model.Document) []byte {
	t.Helper()
	var out bytes.Buffer
	testenv.Must(t, foreign.WriteFlent(&out, &d, &d.Results[0], "64 B"))
	return out.Bytes()
}

// TestWriteFlent: what is written for flent and read again has the same rates, losses and series.
func TestWriteFlent(t *testing.T) {
	for test, d := range runs() {
		if got := foreign.FlentTests(&d); !slices.Equal(got, []string{test}) {
			t.Errorf("the tests of flent are %q, want %q", got, test)
			continue
		}
		back, ok, err := foreign.Read(write(t, d), "x")
		if err != nil || !ok {
			t.Errorf("%s: %v", test, err)
			continue
		}
		if back.Plan.Command != test || !back.Started.Equal(d.Started) || back.Plan.Target != d.Plan.Target ||
			len(back.Results[0].Flows) != len(d.Results[0].Flows) {
			t.Errorf("%s: read as %s", test, figures(back))
		}
		for _, f := range back.Results[0].Flows {
			loss := 0.0
			if f.Protocol == model.UDP {
				loss = 0.03
			} else if f.TCP.Retransmits != 7 || f.TCP.Control != "cubic" {
				t.Errorf("%s: %+v", test, f.TCP)
			}
			if math.Abs(f.GoodputBPS-8e6) > 1 || f.LossRatio != loss {
				t.Errorf("%s: %s has %g bit/s and a loss of %g", test, f.Name, f.GoodputBPS, f.LossRatio)
			}
		}
		for _, s := range back.Results[0].Series {
			if v := s.Values; len(v) != 3 || math.Abs(v[0]-9e6) > 1 || !math.IsNaN(v[1]) || math.Abs(v[2]-7e6) > 1 {
				t.Errorf("%s: series %v", test, s)
			}
		}
	}
	cut := over(model.UDP, model.Sender)
	cut.Results[0].State = model.Aborted
	short := over(model.UDP, model.Sender)
	short.Results[0].Series = nil
	for _, d := range []model.Document{short, over(model.UDP, model.Receiver), cut} {
		if got := foreign.FlentTests(&d); slices.ContainsFunc(got, func(test string) bool { return test != "" }) {
			t.Errorf("flent has %q for a run without a series up", got)
		}
	}
}

// TestWriteForeign: of a run of another tool only the figures that its file had are written, under their own names.
func TestWriteForeign(t *testing.T) {
	back := over(model.TCP, model.Receiver)
	back.Tool = model.Tool{Name: "iperf3", Version: "3.21"}
	back.Results[0].Flows[0].Told = []string{"goodput_bps"}
	text := string(write(t, back))
	if strings.Contains(text, "TCP_RETRANSMIT") || !strings.Contains(text, `"NOTE": "iperf3 3.21"`) {
		t.Errorf("a figure that iperf3 did not tell: %s", text)
	}
	pings, _ := read(t, "testdata/flent-ping.flent.gz")
	several, _ := read(t, "testdata/flent-tcp_nup.flent.gz")
	if got := foreign.FlentTests(&pings); !slices.Equal(got, []string{"ping"}) {
		t.Errorf("pings are of %q", got)
	}
	again, _, err := foreign.Read(write(t, pings), "x")
	testenv.Must(t, err)
	if got, want := again.Results[0].Series[0].Values[0], pings.Results[0].Series[1].Values[0]; math.Abs(got-want) > 1 {
		t.Errorf("a round trip over UDP of %g ns, want %g", got, want)
	}
	if got := foreign.FlentTests(&several); !slices.Equal(got, []string{""}) {
		t.Errorf("a test of two flows up is %q", got)
	}
}

// flent runs it on a packed file of each run.
func flent(t *testing.T, each func(test, path string)) {
	testenv.Tool(t, "flent")
	for test, d := range runs() {
		path := filepath.Join(t.TempDir(), test+".flent.gz")
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write(write(t, d))
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			err = os.WriteFile(path, packed.Bytes(), 0o600)
		}
		testenv.Must(t, err)
		each(test, path)
	}
}

// TestFlentSummary: flent reads the files, and has the mean of the series that the receiver's rate is.
func TestFlentSummary(t *testing.T) {
	flent(t, func(test, path string) {
		out, err := exec.Command("flent", "-i", path, "-f", "summary").CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", test, err, out)
		}
		lines := regexp.MustCompile(`(?m)^ *(TCP|UDP) (up|down)load +: +([0-9.]+) .*Mbits/s`).FindAllSubmatch(out, -1)
		if len(lines) == 0 {
			t.Errorf("%s: no rate in\n%s", test, out)
		}
		for _, m := range lines {
			if rate, err := strconv.ParseFloat(string(m[3]), 64); err != nil || rate != 8 {
				t.Errorf("%s: a rate of %s, want 8", test, m[3])
			}
		}
	})
}

// TestNightlyFlentPlots: flent draws each file. It needs matplotlib, which is large.
func TestNightlyFlentPlots(t *testing.T) {
	testenv.Nightly(t)
	flent(t, func(test, path string) {
		picture := path + ".png"
		out, err := exec.Command("flent", "-i", path, "-p", "totals", "-o", picture).CombinedOutput()
		if info, e := os.Stat(picture); err != nil || e != nil || info.Size() < 1000 {
			t.Errorf("%s: %v, %v\n%s", test, err, e, out)
		}
	})
}
