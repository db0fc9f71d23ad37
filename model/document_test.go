package model

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pelt/internal/testenv"
)

func sampleDocument() Document {
	loss, core := 0.001, 3
	return Document{
		Format: RunFormat, ID: "20261121-0741-k3f", Started: time.Date(2026, 11, 21, 7, 41, 0, 0, time.UTC),
		Tool: Tool{Version: "1"}, Plan: samplePlan(func(p *Plan) { p.MaxLossRatio = &loss }),
		Host: []Host{{Node: Sender, Name: "a", Cores: 2}},
		Results: []Result{{
			Cell: Cell{"payload_bytes": Number(64), "direction": Word("up")}, State: Valid,
			Flows: []FlowResult{{Name: "up", Protocol: UDP, Attempted: 10, Received: 9, Lost: 1, LossRatio: math.NaN(),
				Delay: &Percentiles{P50: math.Inf(1)}}},
			Series: []Series{{Metric: "receive_pps", Core: &core, StepSeconds: 1, Values: []float64{1, math.NaN(), 3}}},
		}},
		Findings: []Finding{{Code: "verdict", Text: "a < b & c",
			Numbers: []FindingNumber{{Metric: "a_pps", Value: 1}, {Metric: "b_pps", Value: math.Inf(-1)}}}},
	}
}

func samplePlan(change func(*Plan)) Plan {
	p := Plan{
		Format: PlanFormat, Command: "curve", Target: "lab:router",
		Flows:   []Flow{{Name: "up", Protocol: UDP, From: Sender, To: Receiver, PayloadBytes: 64, Streams: 1}},
		Factors: []Factor{{Knob: "payload_bytes", Levels: []Value{Number(64), Number(1472)}}},
		Design:  Design{Repeats: 2},
		Timing:  Timing{WarmupSeconds: 0.5, MeasureSeconds: 2, DrainSeconds: 1},
		Engine:  "auto",
	}
	if change != nil {
		change(&p)
	}
	return p
}

func TestDocumentRoundTrip(t *testing.T) {
	in := sampleDocument()
	b, err := EncodeDocument(in)
	testenv.Must(t, err)
	if strings.Contains(string(b), `\u003c`) || !strings.Contains(string(b), `"warnings": []`) {
		t.Errorf("encoded document escapes HTML or has null lists:\n%s", b)
	}
	out, err := DecodeDocument(b, "x.json")
	testenv.Must(t, err)
	if v := out.Results[0].Series[0].Values; len(v) != 3 || v[0] != 1 || !math.IsNaN(v[1]) || v[2] != 3 {
		t.Errorf("series values: got %v, want [1 NaN 3]", v)
	}
	if n := out.Findings[0].Numbers; len(n) != 2 || n[1].Value != 0 {
		t.Errorf("an infinite value was kept: %v", n)
	}
	if f := out.Results[0].Flows[0]; f.LossRatio != 0 || f.Delay.P50 != 0 {
		t.Errorf("NaN and Inf scalars: got %v and %v, want 0", f.LossRatio, f.Delay.P50)
	}
	again, err := EncodeDocument(out)
	if err != nil || string(again) != string(b) {
		t.Errorf("second encoding differs: %v\n%s\nwant\n%s", err, again, b)
	}
	if !reflect.DeepEqual(out.Plan, in.Plan) {
		t.Errorf("plan: got %+v\nwant %+v", out.Plan, in.Plan)
	}
	if !math.IsNaN(in.Results[0].Flows[0].LossRatio) {
		t.Errorf("encoding changed its input")
	}
}

func TestDecodeDocumentRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty": {"", "f.json:1: the JSON value is cut short; want a run, as --json writes it"},
		"cut": {"{\"format\":\n\"pelt/run/1\",",
			"f.json:2: the JSON value is cut short; want a run, as --json writes it"},
		"not json": {"hello",
			"f.json:1: not JSON: invalid character 'h' looking for beginning of value; want a run, as --json writes it"},
		"other format": {`{"format":"pelt/run/9"}`,
			`f.json: format: is "pelt/run/9"; want "pelt/run/1", as --json writes it`},
		"no format": {`{}`, `f.json: format: is ""; want "pelt/run/1", as --json writes it`},
		"a list": {`[]`,
			"f.json:1: want an object, not a JSON array; want a run, as --json writes it"},
		"trailing": {`{"format":"pelt/run/1"}` + "\n{}",
			"f.json:2: more text after the end of the JSON value; want a run, as --json writes it"},
		"wrong type": {"{\"format\":\"pelt/run/1\",\n\"host\":[{\"cores\":\"x\"}]}",
			"f.json:2: host.cores: want a whole number, not a JSON string"},
		"wrong setting": {"{\"format\":\"pelt/run/1\",\n\"plan\":{\"set\":{\"warmup_s\":\"x\"}}}",
			`f.json:2: warmup_s: want a number, not "x"`},
		"great number": {`{"format":"pelt/run/1","results":[{"series":[{"values":[1e309]}]}]}`,
			"f.json:1: want a number from -1.79e308 to 1.79e308, not 1e309"},
		"bad state": {`{"format":"pelt/run/1","results":[{"state":"ok"}]}`,
			`f.json: results[0].state: want valid, invalid or aborted, not "ok"`},
		"impossible": {`{"format":"pelt/run/1","results":[{"state":"valid","flows":[{"protocol":"udp","received_packets":1}]}]}`, "f.json: results[0].flows[0].received_packets: 1 is more than the 0 attempted"},
		"bad rate":   {`{"format":"pelt/run/1","plan":{"flows":[{"set":{"rate_pps":"5"}}]}}`, ""},
		"other plan": {`{"format":"pelt/run/1","plan":{"format":"pelt/plan/1"}}`,
			`f.json:1: format: is "pelt/plan/1"; this pelt reads pelt/plan/2, as --print-plan writes it`},
		"negative count": {`{"format":"pelt/run/1","results":[{"flows":[{"lost_packets":-1}]}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeDocument([]byte(c.text), "f.json")
			if err == nil || strings.Contains(err.Error(), "\n") || c.want != "" && err.Error() != c.want {
				t.Errorf("DecodeDocument(%q)\n got %v\nwant %v", c.text, err, c.want)
			}
		})
	}
}

func FuzzDecodeDocument(f *testing.F) {
	good, err := EncodeDocument(sampleDocument())
	testenv.Must(f, err)
	f.Add(good)
	f.Add([]byte(`{"format":"pelt/run/1","results":[{"state":"valid","series":[{"values":[null,1]}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := DecodeDocument(b, "f")
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of more than one line: %q", err)
			}
			return
		}
		out, err := EncodeDocument(d)
		if err != nil {
			t.Fatalf("decoded document does not encode: %v", err)
		}
		if _, err := DecodeDocument(out, "f"); err != nil {
			t.Fatalf("encoded document does not decode: %v\n%s", err, out)
		}
	})
}
