package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/test/sample"
)

// command runs a command line on an empty store, and returns what it printed.
func command(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	t.Setenv("PELT_DATA", t.TempDir())
	t.Setenv("PELT_LANG", "en")
	var out, talk bytes.Buffer
	if code := execute(args, &out, &talk); code != want {
		t.Errorf("%q: exit code %d, want %d\n%s", args, code, want, &talk)
	}
	return out.String(), talk.String()
}

func document(t *testing.T, d model.Document) string {
	t.Helper()
	b, err := model.EncodeDocument(d)
	path := filepath.Join(t.TempDir(), "run.json")
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	testenv.Must(t, err)
	return path
}

// TestForeignFiles: RUN may be a file of iperf3 or of flent, in each command that reads runs.
func TestForeignFiles(t *testing.T) {
	three, ping := "../../foreign/testdata/iperf3-3.21-three.json", "../../foreign/testdata/flent-ping.flent.gz"
	if out, _ := command(t, exitOK, "report", three); !strings.HasPrefix(out, "iperf3 received ") {
		t.Errorf("report: %s", out)
	}
	if out, _ := command(t, exitOK, "report", ping); !strings.HasPrefix(out,
		"flent: longest median round trip 228 µs, 99 % within 11.3 ms, Ping (ms) UDP.\n") {
		t.Errorf("flent's pings: %s", out)
	}
	if out, _ := command(t, exitOK, "report", ping, "--csv", "-"); !strings.Contains(out, "round_trip_p99_ns") ||
		!strings.Contains(out, "\n1,valid,flent,Ping (ms) UDP,udp,,,1,1,") || strings.Contains(out, "receive_pps") {
		t.Errorf("columns of flent's pings: %s", out)
	}
	if out, _ := command(t, exitOK, "report", three, "--prom", "-"); strings.Contains(out, "pelt_build_info") ||
		!strings.Contains(out, "pelt_goodput_bits_per_second") {
		t.Errorf("figures for Prometheus: %s", out)
	}
	if out, _ := command(t, exitOK, "explain", three); out != "iperf3 does not say where packets were lost.\n" {
		t.Errorf("explain: %q", out)
	}
	if out, _ := command(t, exitOK, "tune", "advise", three); !strings.Contains(out, "iperf3 does not say where packets") {
		t.Errorf("advice for a run of iperf3: %s", out)
	}
	text, err := os.ReadFile(three)
	other := filepath.Join(t.TempDir(), "other.json")
	if err == nil {
		err = os.WriteFile(other, text, 0o600)
	}
	testenv.Must(t, err)
	if out, _ := command(t, exitOK, "compare", three, other); !strings.Contains(out, "tied") ||
		!strings.Contains(out, "As far as the files of iperf3 tell, the set-up was the same.") {
		t.Errorf("compare: %s", out)
	}
	command(t, exitUsage, "report", three, "--since", "7d")
	if _, talk := command(t, exitUsage, "report", three, "--lang", "zh", "--sort", "x"); !strings.Contains(talk, "排序") {
		t.Errorf("a wrong column: %q", talk)
	}
}

// TestBrokenFile: a file that cannot be read is the user's to mend, whichever tool wrote it.
func TestBrokenFile(t *testing.T) {
	for _, c := range []struct{ name, text, english, chinese string }{
		{"iperf3.json", `{"start":{"version":"iperf 3.12"},"intervals":3}`, ":1: want a list, not 3", "应为列表，而不是 3"},
		{"flent.json", `{"metadata":{"NAME":"rrul"},"version":4,"x_values":[]}`, ":1: x_values: want a value at least",
			": x_values：至少要有一个值"},
		{"run.json", `{"format":"pelt/run/1","host":3}`, ":1: host: want a list, not a JSON number",
			"host：应为列表，而不是 JSON 的 number"},
		{"none.json", "hello",
			":1: not JSON: invalid character 'h' looking for beginning of value; want a run, as --json writes it", "应为 --json 写出的运行"},
		{"other.json", `{"format":"pelt/run/9"}`, `: format: is "pelt/run/9"; want "pelt/run/1", as --json writes it`,
			`应为 --json 写出的 "pelt/run/1"`},
		{"state.json", `{"format":"pelt/run/1","results":[{"state":"ok"}]}`,
			`: results[0].state: want valid, invalid or aborted, not "ok"`, `results[0].state`},
		{"log.jsonl", `{"format":"pelt/runlog/2","id":"x"}` + "\n",
			":1: is damaged, and holds the plan of the run: its checksum differs", "已损坏，而运行的计划在其中：校验和不符"},
		{"packed.json", "\x1f\x8b", ": the compressed file is cut short", "压缩文件不完整"},
	} {
		file := filepath.Join(t.TempDir(), c.name)
		testenv.Must(t, os.WriteFile(file, []byte(c.text), 0o600))
		for _, args := range [][]string{{"report", file}, {"explain", file}, {"compare", file, file}} {
			if _, talk := command(t, exitUsage, args...); talk != "pelt: "+file+c.english+"\n" {
				t.Errorf("pelt %s: %q, want %q", args[0], talk, c.english)
			}
		}
		if _, talk := command(t, exitUsage, "report", file, "--lang", "zh"); !strings.Contains(talk, c.chinese) {
			t.Errorf("%s: %q, want %q in it", c.name, talk, c.chinese)
		}
	}
}

// TestReportFlent: each valid trial with rates over time is a data file of flent.
func TestReportFlent(t *testing.T) {
	dir, d := t.TempDir(), sample.Latency()
	two := d.Results[:2]
	d.Results = two[:1]
	out, _ := command(t, exitOK, "report", document(t, d), "--flent", "-")
	var file struct {
		Metadata struct{ NAME string }
	}
	if err := json.Unmarshal([]byte(out), &file); err != nil || file.Metadata.NAME != "udp_flood" {
		t.Errorf("%v: test %q in %.200s", err, file.Metadata.NAME, out)
	}
	d.Results = two
	both := document(t, d)
	command(t, exitUsage, "report", both, "--flent", "-")
	_, talk := command(t, exitOK, "report", both, "--flent", filepath.Join(dir, "a.b.flent.gz"))
	for _, name := range []string{"a.b-1.flent.gz", "a.b-2.flent.gz"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
			t.Errorf("%s is not packed: %v", name, err)
		}
	}
	if n := strings.Count(talk, "wrote "); n != 2 {
		t.Errorf("%d files are told of: %s", n, talk)
	}
	for i := range d.Results {
		d.Results[i].Series = nil
	}
	_, talk = command(t, exitUsage, "report", document(t, d), "--flent", filepath.Join(dir, "b.flent"))
	if !strings.HasPrefix(talk, "pelt: --flent: no valid trial fits a test of flent") || strings.Count(talk, "\n") != 1 {
		t.Errorf("a run without rates over time: %q", talk)
	}
}
