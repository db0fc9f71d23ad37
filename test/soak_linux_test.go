package test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// TestSoakOutlivesItsControlConnection: the test goes on while hosts do not hear each other, and all that was measured is
// in the result. Package fleet has the control connection alone.
func TestSoakOutlivesItsControlConnection(t *testing.T) {
	t.Parallel() // 500 packets a second: mostly waiting
	const seconds, pps = 9, 500
	r := newRouted(t)
	r.serve(r.far, wanCode)
	soak := at(r.near, r.work).Start("soak", "10.77.1.2", "--code", wanCode, "--rate", fmt.Sprintf("%dpps", pps), "--burst", "100", "--payload", "100",
		"--time", fmt.Sprintf("%ds", seconds), "--warmup", "200ms", "--json", "soak.json")
	waitPackets(t, r.near.Sent, 3*pps/2)
	begun := time.Now()
	mend := r.router.Down("to-far")
	from := time.Now()
	time.Sleep(3300 * time.Millisecond)
	least := time.Since(from)
	mend() // a carrier may take a second to come back
	most := time.Since(begun)
	if err := orInvalid(soak.Wait()); err != nil {
		t.Fatalf("%v\n%s", err, soak)
	}
	result := document(t, filepath.Join(r.work, "soak.json"), "").Results[0]
	f := result.Flows[0]
	t.Logf("%d attempted, %d lost: %+v; gaps %+v", f.Attempted, f.Lost, f.Ledger.Lines, result.Gaps)
	lowest, highest := (least.Seconds()-1)*pps, (most.Seconds()+1)*pps
	if result.State == model.Aborted || f.Attempted < seconds*pps*9/10 || float64(f.Lost) < lowest || float64(f.Lost) > highest {
		t.Errorf("%s %s: %d attempted, %d lost; want about %d, and %.0f to %.0f", result.State, result.Why, f.Attempted, f.Lost, seconds*pps, lowest, highest)
	}
	if len(result.Gaps) != 1 || result.Gaps[0].DurationS < 3 || result.Gaps[0].DurationS > 8 || result.Gaps[0].StartS < 0 {
		t.Errorf("gaps %+v; want one of about 3.3 s", result.Gaps)
	}
	sum := 0.0
	for _, s := range result.Series {
		switch s.Metric {
		case "send_pps", "receive_pps":
			if len(s.Values) < seconds-1 {
				t.Errorf("%s has %d seconds", s.Metric, len(s.Values))
			}
		case "lost_pps":
			if s.Layer == "" {
				for _, v := range s.Values {
					sum += v
				}
			}
		}
	}
	if math.Abs(sum-float64(f.Lost)) > pps { // a last part of a second is in no series
		t.Errorf("%.0f packets are lost in the seconds, %d in all", sum, f.Lost)
	}
}

// TestSoakKilled: what was known when pelt was killed is told, and the run goes on.
func TestSoakKilled(t *testing.T) {
	testenv.Root(t)
	t.Parallel() // 500 packets a second: mostly waiting
	work, data := t.TempDir(), t.TempDir()
	host := peltproc.Host{T: t, Dir: work, Data: data}
	soak := host.Start(strings.Fields("soak lab:direct --rate 500pps --burst 100 --payload 100 --time 5s --warmup 100ms --link-receiver loss=10%")...)
	stored(t, data, `"checkpoint"`, 2)
	out, err := host.Run("report", "last", "--all")
	if err != nil || !strings.Contains(out, "Not finished") || !strings.Contains(out, "link sender-receiver") {
		t.Errorf("while it runs: %v\n%s", err, out)
	}
	soak.Kill()
	if out, err := host.Run("run", "--resume", "last", "--json", "soak.json"); orInvalid(err) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d := document(t, filepath.Join(work, "soak.json"), "")
	if len(d.Results) != 2 || d.Results[0].State != model.Aborted || d.Results[1].State == model.Aborted {
		t.Fatalf("%d results: %+v", len(d.Results), d.Results)
	}
	for i, r := range d.Results {
		f := r.Flows[0]
		if f.Attempted < 400 || f.LossRatio < 0.05 || f.LossRatio > 0.17 || len(f.Ledger.Lines) == 0 || f.Ledger.Lines[0].Cause != model.CauseLinkLoss {
			t.Errorf("result %d: %d attempted, loss %.3f: %+v", i, f.Attempted, f.LossRatio, f.Ledger)
		}
	}
}

// TestSoakTimedChange: the way out of the lab's router gets slow when it is told to, and the
// losses begin there and then.
func TestSoakTimedChange(t *testing.T) {
	testenv.Root(t)
	testenv.Tool(t, "sh", "uname") // to watch the router
	t.Parallel()                   // 1000 packets a second
	work := t.TempDir()
	line := "soak lab:router --rate 1kpps --burst 100 --payload 500 --time 7s --warmup 100ms --link-receiver rate=100mbit --at 3s:link-receiver=rate=2mbit --json soak.json"
	if out, err := (peltproc.Host{T: t, Dir: work, Data: t.TempDir()}).Run(strings.Fields(line)...); orInvalid(err) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := document(t, filepath.Join(work, "soak.json"), "").Results[0]
	if len(r.Made) != 1 || r.Made[0].Failure != "" || math.Abs(r.Made[0].AtS-3) > 0.5 {
		t.Errorf("made %+v; want one at 3 s", r.Made)
	}
	for _, s := range r.Series {
		if s.Metric != "lost_pps" || s.Layer != model.LayerNetwork || s.At != "router" {
			continue
		}
		for second, v := range s.Values {
			if lost := second >= 4; lost && v < 300 || second < 3 && v != 0 { // 2 Mbit/s are 461 of 1000 frames of 542 B
				t.Errorf("second %d: %.0f lost at the router", second, v)
			}
		}
		return
	}
	t.Errorf("nothing was lost at the router: %+v", r.Flows[0].Ledger.Lines)
}
