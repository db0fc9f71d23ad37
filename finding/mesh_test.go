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
	for _, f := range Mesh(table.Rows(d)) {
		if !slices.Contains([]string{"mesh.lost", "mesh.fine", "mesh.whole", "mesh.once", "mesh.rounds", "mesh.page"}, f.Code) {
			out = append(out, f.Text())
		}
	}
	return out
}

// TestMeshFaults: each fault is named once, and nobody else is blamed for it.
func TestMeshFaults(t *testing.T) {
	const noise = 1e-5
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := sample.MeshOf(meshHosts(12), 1, func(from, to string, _ int, sent uint64) sample.Lost {
			switch {
			case to == "h3":
				return sample.Lost{Packets: someOf(r, sent, 0.3), Layer: model.LayerReceiverFilter, Host: to, Cause: "NETFILTER_DROP"}
			case to == "h7":
				return sample.Lost{Packets: someOf(r, sent, 0.01+0.02*r.Float64()), Layer: model.LayerReceiverBuffer, Host: to, Cause: "SOCKET_RCVBUFF"}
			case from == "h10" && to == "h2":
				return sample.Lost{Packets: someOf(r, sent, 0.01), Layer: model.LayerNetwork, Cause: model.CauseElimination}
			}
			return sample.Lost{Packets: someOf(r, sent, noise), Layer: model.LayerNetwork, Cause: model.CauseElimination}
		}, always)
		got := meshTexts(&d)
		want := []string{"11 of 11 hosts lose packets to h3", "netfilter rule at h3", "11 of 11 hosts lose packets to h7",
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
	}{{1e-5, 1, 200, 10}, {1e-3, 1, 60, 3}, {0.02, 1, 40, 2}, {1e-5, 40, 10, 1}} {
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

func TestMeshCases(t *testing.T) {
	full := func(share float64) func(sent uint64) sample.Lost {
		return func(sent uint64) sample.Lost { return sample.Lost{Packets: uint64(share * float64(sent))} }
	}
	for _, c := range []struct {
		name  string
		hosts int
		lose  func(from, to string) float64
		why   func(pair string, cycle int) string
		want  []string // beginnings
	}{
		{"both ways", 6, func(from, to string) float64 {
			if from == "h2" || to == "h2" {
				return 0.05
			}
			return 0
		}, always, []string{"h2 and nearly all hosts lose packets both ways: 5 % to it and 5 % from it. Look at h2 first."}},
		{"a pair", 6, func(from, to string) float64 {
			if from+to == "h1h2" || from+to == "h2h1" {
				return 0.05
			}
			return 0
		}, always, []string{"h1 and h2 lose packets both ways: 5 % there, and 5 % back."}},
		{"half of a host's ways", 9, func(from, to string) float64 {
			if to == "h1" && from < "h6" {
				return 0.05
			}
			return 0
		}, always, []string{"h2 to h1", "h3 to h1", "h4 to h1", "h5 to h1"}},
		{"all alike", 6, func(string, string) float64 { return 0.02 }, always, nil},
		{"two hosts", 2, func(from, _ string) float64 { return map[string]float64{"h1": 0.3}[from] }, always,
			[]string{"h1 to h2 loses 30 %; the way back is fine (0 %)."}},
		{"a host is gone", 5, func(string, string) float64 { return 0 }, func(pair string, _ int) string {
			return map[bool]string{true: "h4 does not answer"}[strings.Contains(pair, "h4")]
		}, []string{"h4 was not measured with any host: h4 does not answer."}},
		{"a pair is not reached", 5, func(string, string) float64 { return 0 }, func(pair string, _ int) string {
			return map[bool]string{true: "h2 does not reach h3"}[pair == "h2..h3"]
		}, []string{"h2 and h3 were not measured: h2 does not reach h3."}},
	} {
		d := sample.MeshOf(meshHosts(c.hosts), 1, func(from, to string, _ int, sent uint64) sample.Lost {
			return full(c.lose(from, to))(sent)
		}, c.why)
		got := meshTexts(&d)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", c.name, got)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", c.name, got[i], c.want[i])
			}
		}
	}
}

// TestMeshCycles: what changes over the cycles is told once, of the host that it has to do with.
func TestMeshCycles(t *testing.T) {
	d := sample.MeshCycles()
	got := meshTexts(&d)
	want := []string{"lon-1 to fra-1 loses", "sgp-1 was not measured with any host since 14 November, 22:10 UTC: sgp-1 does not answer.",
		"14 November, 21:00 UTC: the loss from lon-1 to fra-1 went from 0", "14 November, 20:10 UTC: the round trip from nearly all hosts to nyc-1 went from"}
	for _, w := range want {
		if !slices.ContainsFunc(got, func(text string) bool { return strings.HasPrefix(text, w) }) {
			t.Errorf("no %q", w)
		}
	}
	if len(got) != len(want) || t.Failed() {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
