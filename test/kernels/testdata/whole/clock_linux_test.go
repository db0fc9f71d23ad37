package whole

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// Whoever sets the time of a fleet's hosts changes nothing of a mesh: its cycles begin when they should, and no packet
// counts as lost or as hours late.
func TestTimeIsSet(t *testing.T) {
	const every, cycles, code = 20 * time.Second, 3, "--code=heron-58-umber-otter-17-slate"
	nodes := netbed.Chain(t, "near", "far")
	near := peltproc.Host{T: t, In: nodes[0], Data: t.TempDir()}
	far := peltproc.Host{T: t, In: nodes[1], Data: t.TempDir()}
	hosts := func(want string) {
		testenv.Await(t, want, func() bool {
			said, _ := near.Run("hosts", code)
			return strings.Contains(said, want)
		})
	}
	near.Start("hub", code)
	hosts("no host has joined")
	near.Start("join", "10.77.0.1", code, "--name", "near")
	far.Start("join", "10.77.0.1", code, "--name", "far")
	hosts("near")
	hosts("far")
	var mesh *peltproc.Process
	var began time.Time
	for try := 1; ; try++ {
		began = time.Now()
		mesh = near.Start("mesh", "fleet:near,far", code, "--rate", "50pps", "--time", "1s", "--json", "-",
			"--every", every.String(), "--for", (cycles * every).String())
		setTime(t, mesh.Ended)
		if code := mesh.Code(); code == 0 {
			break
		} else if code != disturbed || try == 3 {
			t.Fatalf("exit code %d\n%s", code, mesh)
		}
	}
	took := time.Since(began)
	var results []model.Result // one of each run
	for docs := json.NewDecoder(strings.NewReader(mesh.Out.String())); docs.More(); {
		var doc model.Document
		if err := docs.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		results = append(results, doc.Results...)
	}
	if took < (cycles-1)*every || took > (cycles+1)*every || len(results) != cycles {
		t.Errorf("%d cycles in %v, want %d, one each %v\n%s", len(results), took, cycles, every, mesh.Err)
	}
	for cycle, r := range results {
		if r.State != model.Valid || len(r.Flows) != 2 {
			t.Errorf("cycle %d is %s: %v", cycle, r.State, r.Why)
		}
		for _, f := range r.Flows {
			if f.Attempted < 47 || f.Lost != 0 || f.Duplicates != 0 || f.Delay == nil || f.Delay.Min < 0 ||
				f.Delay.Max > 1e9 {
				t.Errorf("cycle %d, %s: %d of %d lost, %d twice, delay %+v", cycle, f.Name, f.Lost, f.Attempted,
					f.Duplicates, f.Delay)
			}
		}
	}
}

// setTime sets the clock an hour forth or back each second until then, and at the end as it was.
func setTime(t *testing.T, until <-chan struct{}) {
	t.Helper()
	set := time.NewTicker(time.Second)
	defer set.Stop()
	var ahead time.Duration
	for running := true; running; {
		step := time.Hour
		if ahead > 0 {
			step = -2 * time.Hour
		}
		select {
		case <-set.C:
		case <-until:
			step, running = -ahead, false
		}
		now := unix.NsecToTimespec(time.Now().Add(step).UnixNano())
		if err := unix.ClockSettime(unix.CLOCK_REALTIME, &now); err != nil {
			t.Fatal(err)
		}
		ahead += step
	}
}
