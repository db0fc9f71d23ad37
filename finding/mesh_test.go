package finding

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
)

func meshHosts(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("h%d", i+1))
	}
	return names
}

// someOf draws how many of n packets are lost at random.
func someOf(r *rand.Rand, n uint64, share float64) (k uint64) {
	for i := uint64(0); share > 0; i++ { // the gap between two losses is geometric
		if i += uint64(math.Log(1-r.Float64()) / math.Log1p(-share)); i >= n {
			break
		}
		k++
	}
	return k
}

func always(string, int) string { return "" }

// meshTexts are the findings of a mesh, without the answer and what is of every mesh.
func meshTexts(d *model.Document) (out []string) {
	for _, f := range meshRule(table.Rows(d)) {
		if !slices.Contains([]string{"mesh.lost", "mesh.fine", "mesh.whole", "mesh.once", "mesh.rounds", "mesh.page"},
			f.Code) {
			out = append(out, f.Text())
		}
	}
	return out
}

// TestMeshFaults: each fault is named once, and nobody else is blamed for it.
func TestMeshFaults(t *testing.T) {
	const noise = 1e-5
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := sample.MeshOf(meshHosts(12), 1, func(from, to string, _ int, sent uint64) sample.Lost {
			switch {
			case to == "h3":
				return sample.Lost{Packets: someOf(r, sent, 0.3), Layer: model.LayerReceiverFilter, Host: to,
					Cause: "NETFILTER_DROP"}
			case to == "h7":
				return sample.Lost{Packets: someOf(r, sent, 0.01+0.02*r.Float64()), Layer: model.LayerReceiverBuffer,
					Host: to, Cause: "SOCKET_RCVBUFF"}
			case from == "h10" && to == "h2":
				return sample.Lost{Packets: someOf(r, sent, 0.01), Layer: model.LayerNetwork,
					Cause: model.CauseElimination}
			}
			return sample.Lost{Packets: someOf(r, sent, noise), Layer: model.LayerNetwork,
				Cause: model.CauseElimination}
		}, always)
		got := meshTexts(&d)
		want := []string{"All 11 hosts lose packets to h3", "netfilter rule at h3",
			"All 11 hosts lose packets to h7",
			"h7 socket buffer full", "h10 to h2 loses", "the way back is fine"}
		for _, w := range want {
			if !strings.Contains(strings.Join(got, "\n"), w) {
				t.Errorf("seed %d: no %q", seed, w)
			}
		}
		if len(got) != 3 || t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(got, "\n"))
		}
	}
}

// TestMeshHealthy: of meshes that lose packets only at random, now and then one may be told of, and no more.
func TestMeshHealthy(t *testing.T) {
	for _, c := range []struct {
		share float64
		cycles, seeds,
		most int
	}{{1e-5, 1, 60, 4}, {1e-3, 1, 20, 2}, {0.02, 1, 15, 1}, {1e-5, 40, 4, 1}} {
		var wrong []string
		for seed := range uint64(c.seeds) {
			r := rand.New(rand.NewPCG(seed, 2))
			d := sample.MeshOf(meshHosts(12), c.cycles, func(_, _ string, _ int, sent uint64) sample.Lost {
				return sample.Lost{Packets: someOf(r, sent, c.share)}
			}, always)
			if got := meshTexts(&d); len(got) > 0 {
				wrong = append(wrong, fmt.Sprintf("seed %d: %s", seed, strings.Join(got, "\n")))
			}
		}
		if len(wrong) > c.most {
			t.Errorf("loss of %v, %d cycles: %d of %d meshes, as\n%s", c.share, c.cycles, len(wrong), c.seeds, wrong[0])
		}
	}
}

// meshExamples are meshes of some hosts, in which a pair loses a share or was not measured.
func meshExamples(*testing.T) []example {
	docs := map[string]*model.Document{}
	lossy := func(name string, hosts int, share float64, loses func(from, to string) bool) {
		d := sample.MeshOf(meshHosts(hosts), 1, func(from, to string, _ int, sent uint64) (lost sample.Lost) {
			if loses(from, to) {
				lost.Packets = uint64(share * float64(sent))
			}
			return lost
		}, always)
		docs[name] = &d
	}
	silent := func(name, why string, of func(pair string) bool) {
		d := sample.MeshOf(meshHosts(5), 1, func(string, string, int, uint64) sample.Lost { return sample.Lost{} },
			func(pair string, _ int) string { return map[bool]string{true: why}[of(pair)] })
		docs[name] = &d
	}
	lossy("both ways", 6, 0.05, func(from, to string) bool { return from == "h2" || to == "h2" })
	lossy("a pair", 6, 0.05, func(from, to string) bool { return from+to == "h1h2" || from+to == "h2h1" })
	lossy("half of a host's ways", 9, 0.05, func(from, to string) bool { return to == "h1" && from < "h6" })
	lossy("all alike", 6, 0.02, func(string, string) bool { return true })
	share := map[string]float64{"h1": 0.01, "h2": 0.02, "h4": 0.04, "h5": 0.05}
	d := sample.MeshOf(meshHosts(5), 1, func(from, to string, _ int, sent uint64) (lost sample.Lost) {
		if to == "h3" {
			lost.Packets = uint64(share[from] * float64(sent))
		}
		return lost
	}, always)
	docs["of an even number of pairs the median is one that a pair lost"] = &d
	lossy("two hosts", 2, 0.3, func(from, _ string) bool { return from == "h1" })
	silent("a pair is not reached", "h2 does not reach h3", func(pair string) bool { return pair == "h2..h3" })
	several := sample.MeshOf(meshHosts(5), 1, func(string, string, int, uint64) sample.Lost { return sample.Lost{} },
		func(pair string, _ int) string {
			return map[string]string{"h1..h4": "no packet came through", "h2..h4": "no packet came through",
				"h3..h4": "h3 slept", "h4..h5": "h5 slept"}[pair]
		})
	docs["a host is gone for several reasons"] = &several
	cycles := sample.MeshCycles()
	docs["cycles"] = &cycles
	return examplesOf(docs, meshRule)
}

// TestMeshBursts: pairs that lose no more than a share are rarely told to, though each burst of losses takes many
// packets; nearly all that lose clearly more are told.
func TestMeshBursts(t *testing.T) {
	const meshes, burst, seconds, pps = 400, 30, 10, 1000
	for _, c := range []struct {
		share float64
		least int // meshes in which a pair is told of; 0: few may be
	}{{share: table.Lossless}, {20 * table.Lossless, meshes * 9 / 10}} {
		told := 0
		for seed := range uint64(meshes) {
			r := rand.New(rand.NewPCG(seed, 2))
			lost := map[string][]float64{} // by the second
			d := sample.MeshOf(meshHosts(5), 1, func(from, to string, _ int, sent uint64) sample.Lost {
				by := make([]float64, seconds)
				for range someOf(r, sent, c.share/burst) {
					for at, n := r.IntN(int(sent)), 0; n < burst; n++ {
						by[min(at+n, int(sent)-1)/pps]++
					}
				}
				lost[from+" "+to] = by
				all := 0.0
				for _, n := range by {
					all += n
				}
				return sample.Lost{Packets: uint64(all), Layer: model.LayerNetwork, Cause: model.CauseElimination}
			}, always)
			for i := range d.Results {
				a, b, _ := model.PairHosts(d.Results[i].Cell["pair"].Text)
				d.Results[i].Series = append(d.Results[i].Series,
					model.Series{Metric: "lost_pps", Flow: "up", StepSeconds: 1, Values: lost[a+" "+b]},
					model.Series{Metric: "lost_pps", Flow: "down", StepSeconds: 1, Values: lost[b+" "+a]})
			}
			ways := waysOf(table.Rows(&d))
			if slices.ContainsFunc(ways, func(w way) bool { return w.bad || w.above(table.Lossless, len(ways)) }) {
				told++
			}
		}
		t.Logf("a true loss of %.4f: told in %d of %d meshes", c.share, told, meshes)
		if most := meshes / 20; c.least == 0 && told > most || told < c.least {
			t.Errorf("a true loss of %.4f: told in %d of %d meshes", c.share, told, meshes)
		}
	}
}
