package test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// events LINES CSV checks the events of a run of one trial: their numbers and order, samples where it was long enough,
// and that a trial's figures are those of its report.
func scriptEvents(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: events LINES CSV")
	}
	rows, err := csv.NewReader(strings.NewReader(ts.ReadFile(args[1]))).ReadAll()
	ts.Check(err)
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	count := map[string]int{}
	for i, line := range lines {
		var e map[string]json.RawMessage
		ts.Check(json.Unmarshal([]byte(line), &e))
		if string(e["id"]) != fmt.Sprint(i+1) || len(e) != 3 {
			ts.Fatalf("event %d: %s", i+1, line)
		}
		for name := range e {
			count[name]++
		}
		if (i == 0) != (e["started"] != nil) || (i == len(lines)-1) != (e["done"] != nil) {
			ts.Fatalf("event %d of %d: %s", i+1, len(lines), line)
		}
		if e["trial"] == nil {
			continue
		}
		var trial struct {
			Flows []struct{ Figures map[string]float64 }
		}
		ts.Check(json.Unmarshal(e["trial"], &trial))
		for _, name := range []string{"receive_pps", "received_packets", "loss_ratio", "goodput_bps"} {
			value, err := strconv.ParseFloat(rows[1][slices.Index(rows[0], name)], 64)
			ts.Check(err)
			if got := trial.Flows[0].Figures[name]; got != value {
				ts.Fatalf("%s: %v in the event, %v in the report", name, got, value)
			}
		}
	}
	if count["next"] != 1 || count["trial"] != 1 || count["findings"] != 1 || count["sample"] < 2 {
		ts.Fatalf("events: %v", count)
	}
}
