package plan

import (
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

func TestReadTrace(t *testing.T) {
	for _, c := range []struct {
		name, text string
		gaps       bool
		want       []int64
		rate       string
	}{
		{"times", "0\n0.001\n0.004\n", false, []int64{1e6, 3e6, 2e6}, "500pps"},
		{"times since 1970", "1700000000.000000001\n1700000000.000000003\n", false, []int64{2, 2}, "500Mpps"},
		{"gaps", "0.001\n0.003\n", true, []int64{1e6, 3e6}, "500pps"},
		{"gaps of nothing", "0\n0\n0.002\n", true, []int64{0, 0, 2e6}, "1.5kpps"},
		{"comments and blanks", "\ufeff# a trace\r\n\r\n0\r\n 1e-3 \r\n", false, []int64{1e6, 1e6}, "1kpps"},
		{"one column with a name", "gap_us\n1000\n3000\n", false, []int64{1e6, 3e6}, "500pps"},
		{"CSV", "stream,sequence,send_ns,bytes\n0,0,100,64\n1,0,50,64\n0,1,150,64\n", false, []int64{50, 50, 50}, "20Mpps"},
		{"a column that is empty", "trial,send_ns,receive_ns,delay_ns\n1,100,7,\n1,150,9,\n", false, []int64{50, 50}, "20Mpps"},
		{"empty columns anywhere", "\ttime_s\t\tsize\t\n\t0\t\t\t\n7\t0.001\t\t64\n", false, []int64{1e6, 1e6}, "1kpps"},
		{"a comma behind each time", "0,\n0.001,\n", false, []int64{1e6, 1e6}, "1kpps"},
		{"a gap before a time", `"time_s";"gap_ms"` + "\n0;1\n1;3\n", false, []int64{1e6, 3e6}, "500pps"},
	} {
		p, rate, err := readTrace(strings.NewReader(c.text), "t.csv", c.gaps)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := model.ReadTraceText(p.Trace)
		if err != nil || !slices.Equal(got, c.want) || rate.String() != c.rate || p.File != "t.csv" || p.Gaps != c.gaps {
			t.Errorf("%s: gaps %v at %v, %+v, %v; want %v at %s", c.name, got, rate, p, err, c.want, c.rate)
		}
	}
}

func TestReadTraceRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		gaps       bool
		want       string
	}{
		{"nothing", "", false, "t.csv: has 0 times"},
		{"one time", "1\n", false, "two at least"},
		{"no gaps", "#\n", true, "t.csv: has no gaps"},
		{"equal gaps taken for times", "0.001\n0.001\n", false, "say gaps=FILE"},
		{"gaps taken for times", "1\n2\n0.5\n", false, "t.csv:3: 0.5 is before the time above it"},
		{"sizes", "0 64\n", false, "t.csv:1: \"0 64\""},
		{"a column of sizes", "0,64\n", false, "--payload says"},
		{"words", "0\nsoon\n", false, `t.csv:2: "soon" is not a time`},
		{"another header", "when,what\n1,2\n", false, "t.csv:1: no column"},
		{"no gaps in a header", "time_s\n1\n", true, "no column"},
		{"a short line", "a,time_s\n1,2\n3\n", false, "t.csv:3: has 1 columns, the header 2"},
		{"separators alone", ",\n", false, "t.csv:1: has 0 columns"},
		{"before all time", "-1e3\n", true, "less than no time"},
		{"a huge number", "0\n1e999999999\n", false, "is not a time"},
		{"a record of two trials", "trial,flow,send_ns\n1,up,5\n1,up,6\n2,up,7\n", false, "t.csv:4: is of another trial or flow"},
		{"a record of two flows", "trial,flow,send_ns\n1,up,5\n1,down,6\n", false, "t.csv:3: is of another trial or flow"},
		{"far apart", "0\n1e9\n", false, "gap 1 is"},
		{"a long line", strings.Repeat("1", 100_000), false, "t.csv:1:"},
	} {
		_, _, err := readTrace(strings.NewReader(c.text), "t.csv", c.gaps)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("0\n0.001\n0.004\n", false)
	f.Add("gap_us\n1000\n3000\n", false)
	f.Add("stream,send_ns\n0,100\n1,50\n", true)
	f.Add("1e-3\n;\n,,,\n", true)
	f.Add(";\n", false)
	f.Add("time_s,x\n,\n0.1,\n0.2,3", false)
	f.Fuzz(func(t *testing.T, text string, gaps bool) {
		p, rate, err := readTrace(strings.NewReader(text), "t.csv", gaps)
		if err != nil {
			return
		}
		flow := model.Flow{Name: "up", Protocol: model.UDP, From: "a", To: "b", PayloadBytes: 64, Rate: rate, Streams: 1, Profile: &p}
		if _, err := (model.Plan{Flows: []model.Flow{flow}, Timing: model.Timing{MeasureSeconds: 1}}).Trial(nil, 0); err != nil {
			t.Errorf("%q makes %v of %q, which cannot be run: %v", text, rate, p.Trace, err)
		}
	})
}
