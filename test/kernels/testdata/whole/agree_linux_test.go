// Package whole runs the pelt that a user builds where there is what only guests have: netem, with which pelt's
// emulated link must agree, and a clock that may be set. Only package kernels builds it.
package whole

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pelt/internal/peltproc"
	"pelt/model"
)

// By hand more repeats and longer trials make the intervals narrow.
var (
	repeats = flag.Int("agree.repeats", 3, "trials of each cell")
	seconds = flag.Float64("agree.time", 2, "seconds of each trial")
)

// bottleneck is before the link that is compared, and impaired what that does each way.
const (
	bottleneck = "rate=5mbit,queue=60,toward=router"
	impaired   = "delay=40ms,loss=2%"
)

// byNetem leaves a lab whose far link is netem's for a test.
func byNetem(t *testing.T) (target string) {
	t.Helper()
	pelt(t, "lab up router --name netem --link-sender "+bottleneck)
	t.Cleanup(func() { pelt(t, "lab down netem") })
	for _, iface := range []string{"to-sender", "to-receiver"} {
		pelt(t, "lab exec netem router -- tc qdisc add dev "+iface+" root netem limit 100000 delay 40ms loss 2%")
	}
	for _, end := range []string{"sender", "receiver"} { // or a buffer of segments would be one frame to netem
		pelt(t, "lab exec netem "+end+" -- ip link set eth0 gso_max_segs 1")
	}
	return "lab:netem"
}

// disturbed is pelt's exit code for a run of which the machine spoilt trials.
const disturbed = 4

// pelt runs it. A guest is slow: it may spoil some trials, and the valid ones tell.
func pelt(t *testing.T, args string) string {
	t.Helper()
	p := peltproc.Host{T: t, Data: t.TempDir()}.Start(strings.Fields(args)...)
	if code := p.Code(); code != 0 && code != disturbed {
		t.Fatalf("pelt %s: exit code %d\n%s", args, code, p)
	}
	return p.Out.String()
}

// compare runs pelt cc over a lab, with draws of the round's. The begin is not measured: with some draws of losses the
// receive window grows too slowly there, which is neither link's doing.
func compare(t *testing.T, target string, round int) (doc model.Document) {
	t.Helper()
	out := pelt(t,
		fmt.Sprintf("cc %s --control cubic,bbr --no-store --seed %d --warmup 1s --time %.0fms --repeats %d --json -",
			target, 1+round, 1000**seconds, *repeats))
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Two threes of one kind do not meet in one of ten cases, two sixes in one of 462: so
// what does not meet is measured once more, and all together must meet.
func TestControlsAgreeWithNetem(t *testing.T) {
	netem, own := byNetem(t), "lab:router --link-sender "+bottleneck+" --link-receiver "+impaired
	all := map[string][2][]float64{}
	apart := map[string]string{}
	for round := range 2 {
		kernel, user := compare(t, netem, round), compare(t, own, round)
		clear(apart)
		for _, control := range []string{"cubic", "bbr"} {
			a, b := goodputs(kernel, control), goodputs(user, control)
			if len(a) == 0 || len(b) == 0 {
				t.Fatalf("%s: nothing measured: %v, %v", control, a, b)
			}
			v := all[control]
			v[0], v[1] = append(v[0], a...), append(v[1], b...)
			all[control] = v
			t.Logf("%s: netem %.3g Mbit/s, pelt %.3g Mbit/s", control, v[0], v[1])
			if slices.Min(v[0]) > slices.Max(v[1]) || slices.Min(v[1]) > slices.Max(v[0]) {
				apart[control] = fmt.Sprintf("over netem %.3g Mbit/s, over pelt's link %.3g: they do not meet", v[0],
					v[1])
			}
		}
		if len(apart) == 0 {
			return
		}
	}
	for control, said := range apart {
		t.Errorf("%s: %s", control, said)
	}
}

// goodputs are those of the valid trials of a control, in Mbit/s.
func goodputs(d model.Document, control string) (list []float64) {
	for _, r := range d.Results {
		if r.State == model.Valid && r.Cell["control"].Text == control {
			list = append(list, r.Flows[0].GoodputBPS/1e6)
		}
	}
	return list
}
