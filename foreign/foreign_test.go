package foreign_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/foreign"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/table"
	"pelt/test/golden"
)

const most = 1 << 24

func read(t testing.TB, path string) (model.Document, []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	testenv.Must(t, err)
	if b, err = foreign.Unpack(b, path, most); err != nil {
		t.Fatal(err)
	}
	d, ok, err := foreign.Read(b, path)
	if err != nil || !ok {
		t.Fatalf("%s: %v, of another tool: %v", path, err, ok)
	}
	return d, b
}

// figures lists what a document knows: each metric of each flow of each trial, and its series.
func figures(d model.Document) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s, target %q, started %s, complete %v\n", d.Tool.Name, d.Tool.Version, d.Plan.Target,
		d.Started.Format(model.TimeLayout), d.Complete)
	for _, h := range d.Host {
		fmt.Fprintf(&out, "host %s %s %s\n", h.Node, h.Name, h.Address)
	}
	for _, r := range table.Rows(&d) {
		fmt.Fprintf(&out, "trial %d %s [%s] repeat %d %v\n  %s, %s from %s:", r.TrialNumber(), r.Trial.State,
			r.Trial.Cell.Key(), r.Trial.Repeat, r.Trial.Why, r.Flow.Name, r.Flow.Protocol, r.Flow.From)
		for _, m := range table.Metrics() {
			if v, ok := m.Value(r); ok {
				fmt.Fprintf(&out, " %s=%.6g", m.Name, v)
			}
		}
		out.WriteString("\n")
		for _, s := range r.Trial.Series {
			if s.Flow == r.Flow.Name {
				fmt.Fprintf(&out, "  %s at %s, %d steps of %g s: %.4g\n", s.Metric, s.At, len(s.Values), s.StepSeconds,
					s.Values[:min(len(s.Values), 3)])
			}
		}
	}
	return out.String()
}

// TestFiles: files that iperf3 and flent wrote are runs of what they hold.
func TestFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.*")
	testenv.Must(t, err)
	var out strings.Builder
	for _, path := range paths {
		if filepath.Base(path) == "figures.txt" {
			continue
		}
		d, _ := read(t, path)
		fmt.Fprintf(&out, "== %s\n%s", filepath.Base(path), figures(d))
		again, err := model.EncodeDocument(d)
		testenv.Must(t, err)
		if back, err := model.DecodeDocument(again, path); err != nil || figures(back) != figures(d) {
			t.Errorf("%s: as a run document it is another one: %v", path, err)
		}
	}
	golden.File(t, "testdata/figures.txt", out.String())
}

// TestCut: of a test whose file was cut anywhere, what is whole is kept, and no trial passes for one that ran to its
// end.
func TestCut(t *testing.T) {
	for _, name := range []string{"iperf3-3.12-udp-loss.json", "iperf3-3.21-tcp-stream.jsonl"} {
		whole, b := read(t, filepath.Join("testdata", name))
		kept := 0
		for n := range b {
			d, ok, err := foreign.Read(b[:n], name)
			switch {
			case !ok && n > 20:
				t.Errorf("%s cut at %d: is of no tool", name, n)
			case err == nil && ok && figures(d) != figures(whole) && d.Results[0].State != model.Aborted:
				t.Errorf("%s cut at %d: the trial is %s", name, n, d.Results[0].State)
			case err == nil && ok:
				kept++
			}
		}
		if kept < len(b)/2 {
			t.Errorf("%s: something was kept of %d of %d cut files", name, kept, len(b))
		}
	}
}

// TestNoNumbers: what C prints for 0/0 is absent, also where it stands in a text.
func TestNoNumbers(t *testing.T) {
	_, b := read(t, "testdata/iperf3-3.12-udp-loss.json")
	text := string(b)
	for _, word := range []string{"-nan", "nan", "inf", "-inf", "null"} {
		from := strings.Index(text, `"sum_received"`)
		jitter := strings.Index(text[from:], `"jitter_ms":`) + from
		end := strings.IndexByte(text[jitter:], ',') + jitter
		bad := text[:jitter] + `"jitter_ms": ` + word + text[end:]
		bad = strings.Replace(bad, `"Linux `, `"a \"nan, inf `, 1)
		d, _, err := foreign.Read([]byte(bad), "x")
		if err != nil {
			t.Errorf("%s: %v", word, err)
			continue
		}
		if f := d.Results[0].Flows[0]; slices.Contains(f.Told, "jitter_ns") || !slices.Contains(f.Told, "loss_ratio") {
			t.Errorf("%s: told %v", word, f.Told)
		}
		if kernel := d.Host[0].Kernel; !strings.HasPrefix(kernel, `a "nan, inf `) {
			t.Errorf("%s: the text became %q", word, kernel)
		}
	}
}

// TestOneSum: before 3.11 the one sum of UDP has what was sent and the losses of the receiver: no goodput is told.
func TestOneSum(t *testing.T) {
	d, b := read(t, "testdata/iperf3-3.12-udp-loss.json")
	whole := d.Results[0].Flows[0]
	text := strings.NewReplacer(`"sum_sent"`, `"other_sent"`, `"sum_received"`, `"other_received"`).Replace(string(b))
	d, _, err := foreign.Read([]byte(text), "x")
	testenv.Must(t, err)
	f := d.Results[0].Flows[0]
	if slices.Contains(f.Told, "goodput_bps") || !slices.Contains(f.Told, "send_bps") ||
		f.SendGoodputBPS < whole.GoodputBPS || f.Lost != whole.Lost ||
		f.LossRatio != whole.LossRatio || f.Received != whole.Received {
		t.Errorf("got  %+v\nwant what was sent and the losses of %+v", f, whole)
	}
}

// TestSeveral: tests one after another are repeats where their settings are alike.
func TestSeveral(t *testing.T) {
	_, one := read(t, "testdata/iperf3-3.12-udp-loss.json")
	_, other := read(t, "testdata/iperf3-3.21-tcp-stream.jsonl")
	_, refused := read(t, "testdata/iperf3-3.21-refused.json")
	d, _, err := foreign.Read(slices.Concat(one, other, one, refused, other[:len(other)/2]), "x")
	testenv.Must(t, err)
	var got []string
	for _, r := range d.Results {
		got = append(got, fmt.Sprintf("%s %s %d", r.Cell["protocol"].Text, r.State, r.Repeat))
	}
	if want := "udp valid 0, tcp valid 0, udp valid 1,  aborted 0, tcp aborted 0"; strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

// TestWrong: a file that is wrong says what, in one line.
func TestWrong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"start": {}, "end": {}}`, "x:1: holds no test of iperf3"},
		{`{"start": {"version": "iperf 3.12"},` + "\n" + `"intervals": 7}`, "x:2: want a list, not 7"},
		{`{"start": {"version": 3}}`, "x:1: version: want text, not a JSON number"},
		{`{"start": 3}` + "\n", "x:1: want an object, not a JSON number"},
		{`{"start": {},` + "\n\n" + `"end": {"sum_sent":` + "\n" + `{"bytes": "1"}}}` + "\n",
			"x:4: sum_sent.bytes: want a number, not a JSON string"},
		{`{"start": {},` + "\n" + `"end": {"sum_sent": {"bytes": 1e309}}}`,
			"x:2: sum_sent.bytes: want a number from -1.79e308 to 1.79e308, not 1e309"},
		{"{\n" + `"version": 3, "x_values": [1], "results": {}}` + "\n\n", "x:1: is no flent data file of version 4"},
		{`{"start": {"version": "iperf 3.12"`, "x:1: the JSON value is cut short"},
		{`{"event":"start","data":{"version":"iperf 3.21"}}` + "\niperf3: done",
			"x:2: not JSON: invalid character 'i' looking for beginning of value"},
		{`{"version": 3, "x_values": [1], "results": {}}`, "x:1: is no flent data file of version 4"},
		{`{"version": 4, "x_values": [], "results": {}}`, "x:1: x_values: want a value at least"},
		{`{"version": 4, "x_values": [0], "results": {"a": [1, 2]}}`,
			`x:1: results: "a" has 2 values; want one for each of the 1 x_values`},
		{`{"version": 4, "x_values": [0], "results": {"a": [1]}}`,
			"x:1: has no series of rates or round trips that was measured"},
		{`{"version": 4, "x_values": [0]`, "x:1: the JSON value is cut short"},
	} {
		_, ok, err := foreign.Read([]byte(c.text), "x")
		var file *model.FileError
		if !ok || !errors.As(err, &file) {
			t.Errorf("%s: %v, of another tool: %v", c.text, err, ok)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.text, err, c.want)
		}
	}
	for _, b := range []string{"\x1f\x8bgarbage", "\x1f\x8b", "BZhgarbage"} {
		if _, err := foreign.Unpack([]byte(b), "x", most); err == nil {
			t.Errorf("%q was unpacked", b)
		}
	}
	for _, b := range []string{"", "[]", "{}", "pelt", `{"format":"pelt/run/1"}`, `{"results":[],"format":"pelt/run/1"}`} {
		if _, ok, err := foreign.Read([]byte(b), "x"); ok || err != nil {
			t.Errorf("%q is of another tool: %v", b, err)
		}
	}
}

// checkRead: whatever a file holds, it is refused in one line, or is a run that can be written, also for flent, and read
// again, whose figures are numbers.
func checkRead(t rapid.TB, b []byte) {
	t.Helper()
	d, ok, err := foreign.Read(b, "x")
	switch {
	case err != nil && (!ok || strings.ContainsAny(err.Error(), "\n\r")):
		t.Fatalf("%v: %q", ok, err)
	case err != nil || !ok:
		return
	case len(d.Results) == 0:
		t.Fatal("a run without trials")
	}
	for _, r := range table.Rows(&d) {
		for _, m := range table.Metrics() {
			if v, ok := m.Value(r); ok && (math.IsNaN(v) || math.IsInf(v, 0) || v < 0) {
				t.Fatalf("%s is %g", m.Name, v)
			}
		}
		for _, s := range r.Trial.Series {
			if slices.ContainsFunc(s.Values, func(v float64) bool { return math.IsInf(v, 0) }) {
				t.Fatalf("%s is %g", s.Metric, s.Values)
			}
		}
	}
	for i, test := range foreign.FlentTests(&d) {
		if test == "" {
			continue
		}
		if err := foreign.WriteFlent(io.Discard, &d, &d.Results[i], ""); err != nil {
			t.Fatalf("as a file of flent: %v", err)
		}
	}
	text, err := model.EncodeDocument(d)
	testenv.Must(t, err)
	if _, err := model.DecodeDocument(text, "x"); err != nil {
		t.Fatalf("%v in %s", err, bytes.TrimSpace(text))
	}
}

// TestOddNumbers: a file of a tool in which any of the numbers is another one, however large or small.
func TestOddNumbers(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.[jf]*") // but figures.txt
	testenv.Must(t, err)
	files := map[string][]byte{}
	for _, path := range paths {
		_, files[path] = read(t, path)
	}
	number := regexp.MustCompile(`([:,\[]\s*)(-?[0-9][-+.0-9eE]*)`)
	odd := []string{"0", "-1", "5e-324", "1e-300", "1e15", "1e18", "1e300", "1.7e308", "1e309"}
	rapid.Check(t, func(t *rapid.T) {
		b := files[rapid.SampledFrom(paths).Draw(t, "file")]
		put, rare := rapid.SampledFrom(odd).Draw(t, "number"), rapid.IntRange(1, 300).Draw(t, "one of")
		n := rapid.IntRange(1, rare).Draw(t, "which")
		checkRead(t, number.ReplaceAllFunc(b, func(old []byte) []byte {
			parts := number.FindSubmatch(old)
			if n++; n%rare > 0 || string(parts[2]) == "4" { // as flent's version
				return old
			}
			return slices.Concat(parts[1], []byte(put))
		}))
	})
}

// FuzzRead: whatever a file holds.
func FuzzRead(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.*")
	for _, path := range paths {
		b, err := os.ReadFile(path)
		testenv.Must(f, err)
		if b, err = foreign.Unpack(b, path, most); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if b, err := foreign.Unpack(b, "x", 1<<20); err == nil {
			checkRead(t, b)
		}
	})
}
