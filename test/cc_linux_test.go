package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// iperf3 is what it carries by Reno in 2 s, in bit/s.
func iperf3(t *testing.T, at peltproc.Host, lab string) float64 {
	t.Helper()
	server := at.Start("lab", "exec", lab, "receiver", "--", "iperf3", "-s", "-1", "-p", "5302")
	defer func() { _ = server.Wait() }()
	for began := time.Now(); ; {
		p := at.Start("lab", "exec", lab, "sender", "--", "iperf3", "-J", "-c", "198.18.0.2", "-p", "5302", "-C", "reno", "-t", "2")
		err := p.Wait()
		var report struct {
			End struct {
				Received struct {
					BPS float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		if json.Unmarshal([]byte(p.Out.String()), &report) == nil && report.End.Received.BPS > 0 {
			return report.End.Received.BPS
		}
		if time.Since(began) > testenv.Patience {
			t.Fatalf("iperf3: %v\n%s", err, p)
		}
		time.Sleep(50 * time.Millisecond) // its server is not there yet
	}
}

// Over the same emulated link iperf3 gets what pelt gets.
func TestClockControlAgreesWithIperf3(t *testing.T) {
	testenv.Clock(t)
	testenv.Root(t)
	testenv.Tool(t, "iperf3")
	work, lab := t.TempDir(), fmt.Sprint("iperf3-", os.Getpid())
	host := in(t, work)
	pelt(t, work, "lab", "up", "direct", "--name", lab, "--link", "rate=40mbit,delay=20ms,queue=160,loss=1%")
	t.Cleanup(func() { pelt(t, work, "lab", "down", lab) })
	var ours, theirs []float64
	// In turn. A trial whose link fell behind says nothing, whatever it carried: pelt repeats it, too.
	for tries := 0; len(ours) < 7; tries++ {
		if tries == 10 {
			t.Fatalf("%d of %d runs have a valid trial, want 7", len(ours), tries)
		}
		pelt(t, work, "cc", "lab:"+lab, "--repeats", "1", "--json", "cc.json", "--control", "reno", "--time", "2s")
		results := document(t, filepath.Join(work, "cc.json"), "").Results
		at := slices.IndexFunc(results, func(r model.Result) bool { return r.State == model.Valid })
		if at < 0 {
			t.Logf("not valid: %s", results[len(results)-1].Why)
			testenv.AwaitCalm(t.Logf)
			continue
		}
		ours = append(ours, results[at].Flows[0].GoodputBPS)
		theirs = append(theirs, iperf3(t, host, lab))
	}
	t.Logf("pelt %.4g, iperf3 %.4g bit/s", ours, theirs)
	// Of two sevens of one kind, all of one are above all of the other in 2 of 3432 cases: 0.06 %. iperf3 counts its
	// slow start, which loses up to 3 % of 2 s here.
	const slowStart = 1.03
	if slices.Min(ours) > slowStart*slices.Max(theirs) || slices.Max(ours) < slices.Min(theirs) {
		t.Errorf("pelt %.4g and iperf3 %.4g are not of one kind", ours, theirs)
	}
}

// Between hosts, whose clocks differ, the sender's TCP says when all has arrived; which
// controls the far side lacks is said before the first trial.
func TestControlsBetweenHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	h.otherClock = true
	s := h.serve(t)
	s.line[0] = "cc"
	path := filepath.Join(h.work, "cc.json")
	for _, c := range []struct {
		flags, by string
	}{
		{"--control cubic,reno --bytes 20MB --repeats 2", model.ByAcknowledged},
		{"--control reno --bytes 20MB --repeats 2 --http --streams 2 --direction down", model.ByAnswer},
		{"--control cubic+reno --time 1s --stagger 300ms --repeats 2", ""},
	} {
		out, err := h.run(s, append(strings.Fields(c.flags), "--json", path)...)
		if err != nil {
			t.Fatalf("%s: %v\n%s\nserver: %s", c.flags, err, out, s.Err)
		}
		doc := document(t, path, "")
		for _, r := range doc.Results {
			f := r.Flows[0]
			done := f.TCP.Completion
			switch {
			case f.GoodputBPS < 1e6 || f.TCP.Control == "" || f.Delay != nil:
				t.Errorf("%s: %+v", c.flags, f)
			case c.by == "" && (done != nil || len(f.TCP.PerStream) != 2 || f.TCP.PerStream[1].Control != "reno" || f.TCP.PerStream[1].StartSeconds < 0.29 || f.TCP.PerStream[1].ReceivedBytes == 0):
				t.Errorf("%s: completion %+v, streams %+v", c.flags, done, f.TCP.PerStream)
			case c.by != "" && (done == nil || !done.Done || done.By != c.by || f.TCP.ReceivedBytes != 20e6):
				t.Errorf("%s: completion %+v, %d B", c.flags, done, f.TCP.ReceivedBytes)
			}
		}
		for _, host := range doc.Host {
			if host.TCPSettings["congestion_control"] == "" {
				t.Errorf("%s: the settings of %s are missing", c.flags, host.Node)
			}
		}
	}
	out, err := h.run(s, "--control", "nonesuch", "--direction", "down", "--json", path)
	if peltproc.ExitCode(err) != 1 || !strings.Contains(out, `before the first trial: `) || !strings.Contains(out, `congestion control "nonesuch" is not in this kernel`) {
		t.Errorf("%v\n%s", err, out)
	}
}
