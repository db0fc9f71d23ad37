package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
	"pelt/test/golden"
)

// reported is what a line of testdata/accounts.txt changes of an honest trial.
type reported struct {
	Flow          *model.Flow
	Timing        *model.Timing
	OneClock      bool
	Receivers     int // of a star, each with the same reports
	Cut           model.Reason
	Load          map[string]engine.Load
	Slowest       [2]float64 // links of the path, bit/s
	Send, Receive *engine.Report
}

// TestAccounts: each line of the file changes, in JSON, what the ends of an honest trial report. Below stand the state
// of the trial that comes of it, and what else differs from the honest one: reasons, figures, series, warnings.
func TestAccounts(t *testing.T) {
	trial, placed, out := honest()
	usual := strings.Split(inWords(account(trial, placed, out, path{})), "\n")
	golden.Table(t, "testdata/accounts.txt", func(question string) string {
		trial, placed, out := honest()
		f, o := &placed.Flows[0], &out.Flows[0]
		x := reported{Flow: &f.Flow, Timing: &trial.Timing, Load: out.Load, Send: o.Send, Receive: o.Receive}
		_, change, _ := strings.Cut(question, ": ")
		d := json.NewDecoder(strings.NewReader(change))
		if d.DisallowUnknownFields(); d.Decode(&x) != nil {
			t.Fatalf("%s: cannot be read", question)
		}
		trial.Flows[0], placed.Timing, placed.OneClock = f.Flow, trial.Timing, x.OneClock
		out.Cut, o.Send, o.Receive = x.Cut, x.Send, x.Receive
		for _, r := range []*engine.Report{o.Send, o.Receive} {
			if r != nil { // as the controller does
				r.Clamp(trial.Timing)
			}
		}
		for i := range x.Receivers {
			one := placed.Flows[0]
			one.Flow.Name, one.Flow.To = fmt.Sprint("up/", i+1), fmt.Sprint("receiver-", i+1)
			placed.Flows, out.Flows = append(placed.Flows, one), append(out.Flows, out.Flows[0])
		}
		if x.Receivers > 0 {
			placed.Flows, out.Flows = placed.Flows[1:], out.Flows[1:]
		}
		all := strings.Split(inWords(account(trial, placed, out, path{slowest: x.Slowest})), "\n")
		other := slices.DeleteFunc(all[1:], func(line string) bool {
			return change != "{}" && slices.Contains(usual, line)
		})
		return all[0] + "\n" + strings.Join(other, "\n")
	})
}

func inWords(r model.Result) string {
	var out strings.Builder
	fmt.Fprintln(&out, r.State)
	for _, w := range r.Why {
		fmt.Fprintf(&out, "%s of %s/%s %s: %s", w.Code, w.Flow, w.Node, w.Name, finding.Clause(w))
		for _, name := range slices.Sorted(maps.Keys(w.Numbers)) {
			fmt.Fprintf(&out, ", %s %.4g", name, w.Numbers[name])
		}
		out.WriteString("\n")
	}
	for _, f := range r.Flows {
		fmt.Fprintf(&out, "%s: %d planned, %d attempted, %d received, %d lost, %d unattributed", f.Name, f.Planned,
			f.Attempted, f.Received, f.Lost, f.Ledger.Unattributed)
		fmt.Fprintf(&out, " in %.4g s: %.4g pps, %.4g bit/s", f.DurationS, f.ReceivePPS, f.GoodputBPS)
		if u := f.Uneven; u != nil {
			fmt.Fprintf(&out, ", %d of %d by streams %v", u.Lost, u.Attempted, u.Streams)
		}
		for _, l := range f.Ledger.Pacing {
			fmt.Fprintf(&out, ", %d %s", l.Packets, l.Cause)
		}
		if f.Unheard != nil {
			fmt.Fprintf(&out, ", %d unheard", f.Unheard.Packets)
		}
		if p := f.Pacing; p != nil {
			fmt.Fprintf(&out, ", %s in %.4g rounds, gaps of %.4g ns", p.Profile, p.Rounds, p.AskedGap.P50)
			if p.Distance != nil {
				fmt.Fprintf(&out, " %.4g apart", *p.Distance)
			}
		}
		if f.TCP != nil && f.TCP.Completion != nil {
			fmt.Fprintf(&out, ", completion %+v", *f.TCP.Completion)
		}
		out.WriteString("\n")
	}
	for _, s := range r.Series {
		fmt.Fprintf(&out, "%s at %s from %.3g s: %.4g each %.3g s\n", s.Metric, s.At, s.StartSeconds, s.Values,
			s.StepSeconds)
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(&out, finding.Clause(w))
	}
	return out.String()
}
