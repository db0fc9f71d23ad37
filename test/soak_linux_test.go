package test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// TestSoakKilled: what was known when pelt was killed is told, and the run goes on.
func TestSoakKilled(t *testing.T) {
	testenv.Root(t)
	t.Parallel() // 500 packets a second: mostly waiting
	work, data := t.TempDir(), t.TempDir()
	host := peltproc.Host{T: t, Dir: work, Data: data}
	soak := host.Start(strings.Fields("soak lab:direct --rate 500pps --burst 100 --payload 100 --time 8s --warmup 100ms " +
		"--link-receiver loss=10%")...)
	stored(t, data, `"checkpoint"`, 2)
	out, err := host.Run("report", "last", "--all")
	if err != nil || !strings.Contains(out, "Not finished") || !strings.Contains(out, "link sender-receiver") {
		t.Errorf("while it runs: %v\n%s", err, out)
	}
	out, err = host.Run("run", "--resume", "last")
	if err == nil || orInvalid(err) == nil || strings.Count(out, "\n") != 1 {
		t.Errorf("gone on with while it runs: %v\n%s", err, out)
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
		chance := 5 * math.Sqrt(0.1*0.9/float64(f.Attempted)) // a busy sender has sent less by a checkpoint
		if f.Attempted < 100 || math.Abs(f.LossRatio-0.1) > chance || len(f.Ledger.Lines) == 0 ||
			f.Ledger.Lines[0].Cause != model.CauseLinkLoss {
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
	line := "soak lab:router --rate 1kpps --burst 100 --payload 500 --time 5s --warmup 100ms --link-receiver rate=100mbit --at 2s:link-receiver=rate=2mbit --json soak.json"
	var r model.Result
	for try := 1; ; try++ {
		if out, err := (peltproc.Host{T: t, Dir: work,
			Data: t.TempDir()}).Run(strings.Fields(line)...); orInvalid(err) != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		r = document(t, filepath.Join(work, "soak.json"), "").Results[0]
		if len(r.Made) != 1 || len(r.Made[0].Failure) > 0 || r.Made[0].AtS < 2 {
			t.Fatalf("made %+v; want one from 2 s on", r.Made)
		}
		if r.Made[0].AtS < 3 || try == 3 {
			break
		}
		t.Logf("measured again: the kernel of a busy machine made the change of try %d only at %.1f s", try, r.Made[0].AtS)
	}
	made := r.Made[0].AtS // later on a busy machine
	for _, s := range r.Series {
		if s.Metric != "lost_pps" || s.Layer != model.LayerNetwork || s.At != "router" {
			continue
		}
		for second, v := range s.Values {
			// 2 Mbit/s are 461 of 1000 frames of 542 B
			if lost := float64(second) > made+0.9; lost && v < 300 || second < 2 && v != 0 {
				t.Errorf("second %d: %.0f lost at the router", second, v)
			}
		}
		return
	}
	t.Errorf("nothing was lost at the router: %+v", r.Flows[0].Ledger.Lines)
}
