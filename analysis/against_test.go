package analysis

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pelt/model"
	"pelt/unit"
)

// publishedCSV is the published table as its authors wrote it.
func publishedCSV() string {
	var b strings.Builder
	b.WriteString("count,interval_ms,size_bytes,loss_percent,send_kib_s,recv_kib_s\n")
	for _, p := range published {
		fmt.Fprintf(&b, "1000,%d,%d,%g,%g,%g\n", p.intervalMS, p.payload, p.lossPercent, p.sendKiBps, p.recvKiBps)
	}
	return b.String()
}

func TestAgainst(t *testing.T) {
	table, err := ReadTable("published.csv", strings.NewReader(publishedCSV()))
	if err != nil {
		t.Fatal(err)
	}
	doc := publishedDocument()
	f, ok := Against(doc, table)
	if !ok || f.Values["sizes"] != 8 || f.Values["settings"] != 32 || f.Values["size_rank_correlation"] != 1 || f.Values["setting_rank_correlation"] != 1 {
		t.Errorf("beside itself: %v", f)
	}
	for i := range doc.Results { // the other way round
		doc.Results[i].Flows[0].GoodputBPS = 1e9 - doc.Results[i].Flows[0].GoodputBPS
	}
	if f, _ := Against(doc, table); f.Values["setting_rank_correlation"] != -1 {
		t.Errorf("beside its reverse: %v", f)
	}
	doc.Results = doc.Results[:1]
	if f, _ := Against(doc, table); !strings.Contains(f.Text, "1 setting in both, too few") || math.IsNaN(f.Values["settings"]) {
		t.Errorf("beside one setting: %v", f)
	}
	doc.Plan.Command = "curve"
	if _, ok := Against(doc, table); ok {
		t.Error("a curve has an order of settings")
	}
}

func TestReadTable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "line of names first",
		"a,b\n1,2\n":                       "no column of the payload",
		"size_bytes,send\n1,2\n":           "no column of the speed; want goodput_bps, receive_kib_s",
		"size,recv_kib_s\n":                "no lines",
		"size,recv_kib_s\n64,fast\n":       `line 2: recv_kib_s "fast" is not a number`,
		"size,recv_kib_s\n64,-1\n":         `line 2: recv_kib_s "-1" is not`,
		"size,recv_kib_s\n64\n":            "wrong number of fields",
		"size,payload,recv_kib_s\n1,1,1\n": "once more",
	} {
		if _, err := ReadTable("x.csv", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "x.csv") {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add(publishedCSV())
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ReadTable("x", strings.NewReader(text))
		if err == nil {
			if f, ok := Against(publishedDocument(), table); ok && f.Text == "" {
				t.Error("no text")
			}
		}
	})
}

// Of pelt's own table, which has the flow's name, each valid line counts, of several
// flows their sum; of others likewise.
func TestOwnTable(t *testing.T) {
	for _, flow := range []string{"name", "flow"} {
		table, err := ReadTable("own.csv", strings.NewReader("repeat,state,"+flow+",payload_bytes,interval_ns,goodput_bps\n"+
			"0,valid,up,64,1000000,10\n1,valid,up,64,1000000,20\n2,invalid,up,64,1000000,900\n0,valid,down,64,1000000,5\n1,valid,down,64,1000000,5\n2,aborted,,64,1000000,\n"+
			"0,valid,up,64,2000000,7\n0,valid,up,128,1000000,30\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(table.settings()); got != "[{64 0.001  20 } {64 0.002  7 } {128 0.001  30 }]" {
			t.Errorf("column %s: %s", flow, got)
		}
	}
}

func TestIntervalOf(t *testing.T) {
	paced := model.Plan{Flows: []model.Flow{{Rate: unit.IntervalRate(5 * time.Millisecond), PayloadBytes: 64}}}
	for _, c := range []struct {
		cell model.Cell
		plan model.Plan
		want float64
	}{
		{model.Cell{"interval_ns": model.Number(2e6)}, paced, 0.002}, {model.Cell{"rate_pps": model.Number(1000)}, paced, 0.001},
		{model.Cell{"rate_pps": model.Word("max")}, paced, 0}, {model.Cell{}, paced, 0.005}, {model.Cell{}, model.Plan{Flows: []model.Flow{{}}}, 0}, {model.Cell{}, model.Plan{}, 0},
	} {
		if got := intervalOf(c.plan, spot{cell: c.cell, payload: 64}); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %g s, want %g", c.cell, got, c.want)
		}
	}
}

// A run beside its own table ranks as that does, whatever it varies: each setting is held
// against itself.
func TestAgainstItself(t *testing.T) {
	for _, knob := range []struct {
		name   string
		levels []model.Value
	}{
		{"rate_pps", []model.Value{model.Number(1000), model.Number(50000), model.Word("max")}},
		{"link.loss_ratio", []model.Value{model.Number(0), model.Number(0.01), model.Number(0.05)}},
		{"streams", []model.Value{model.Number(1), model.Number(4), model.Number(16)}},
	} {
		doc := publishedDocument()
		like := doc.Results[0]
		doc.Plan.Factors = []model.Factor{{Knob: "payload_bytes"}, {Knob: knob.name, Levels: knob.levels}}
		doc.Results = nil
		table := "payload_bytes," + knob.name + ",goodput_bps\n"
		for i, payload := range []int{64, 512, 1472} {
			doc.Plan.Factors[0].Levels = append(doc.Plan.Factors[0].Levels, model.Number(float64(payload)))
			for j, level := range knob.levels {
				r, speed := like, float64(1e6*(i+1)+7e5*j*(2-i))
				r.Cell = model.Cell{"payload_bytes": model.Number(float64(payload)), knob.name: level}
				f := r.Flows[0]
				f.PayloadBytes, f.GoodputBPS = payload, speed
				r.Flows = []model.FlowResult{f}
				doc.Results = append(doc.Results, r)
				table += fmt.Sprintf("%d,%s,%g\n", payload, level, speed)
			}
		}
		own, err := ReadTable("own.csv", strings.NewReader(table))
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := Against(doc, own); !ok || f.Values["settings"] != 9 || f.Values["setting_rank_correlation"] != 1 {
			t.Errorf("%s: %v", knob.name, f)
		}
	}
}
