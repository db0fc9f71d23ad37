package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

func hostNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("h%d", i+1))
	}
	return names
}

// TestPairs: each round has half of the hosts' number of pairs, none of which share a host, and all rounds
// together have each pair once.
func TestPairs(t *testing.T) {
	for n := 2; n <= 40; n++ {
		pairs, seen := Pairs(hostNames(n)), map[model.Value]bool{}
		if len(pairs) != n*(n-1)/2 {
			t.Fatalf("%d hosts have %d pairs", n, len(pairs))
		}
		for round := range slices.Chunk(pairs, n/2) {
			busy := map[string]bool{}
			for _, p := range round {
				a, b, _ := strings.Cut(p.Text, model.PairSeparator)
				if busy[a] || busy[b] || a == b || seen[p] || len(round) != n/2 {
					t.Fatalf("%d hosts: round %v, pair %v", n, round, p)
				}
				busy[a], busy[b], seen[p] = true, true, true
			}
		}
	}
}

func TestMesh(t *testing.T) {
	for _, c := range []struct {
		hosts         int
		target, flags string
		repeats       int
		once          bool
		wrong         string // part of the error
	}{
		{hosts: 12, flags: "", repeats: 1},
		{hosts: 6, flags: "every=5m for=7d", repeats: 2016, once: true},
		{hosts: 7, flags: "every=5m for=1h", repeats: 12},
		{hosts: 12, flags: "every=5m rate=400pps", repeats: model.MaxTrials / 66, once: true},
		{hosts: 2, flags: "every=1m", repeats: model.MaxCycles, once: true},
		{hosts: 12, flags: "every=5m for=7d", wrong: "--every: 2016 cycles of 66 pairs are more than pelt keeps; want --every 6m40s or --for 126h"},
		{hosts: 12, flags: "every=1m", wrong: "--every: a cycle of 66 pairs takes longer than 1 min 52.2 s"},
		{hosts: 3, flags: "for=1h", wrong: "--for: is for --every"},
		{hosts: 3, flags: "every=5m for=5m", wrong: "--for: want more than one"},
		{hosts: 1, wrong: "TARGET: a mesh has two hosts at least; 1 of the fleet take part"},
		{hosts: 3, target: "fleet:h1,h3", repeats: 1},
		{hosts: 3, target: "fleet:h1,h9", wrong: `TARGET: the fleet has no host h9; it has h1, h2, h3`},
		{hosts: 3, target: "fleet:h1,h1", wrong: "h1 stands twice"},
		{hosts: 3, target: "fleet:h1,h/2", wrong: `TARGET: "h/2" is no host of a fleet`},
		{hosts: 3, target: "10.0.0.1", wrong: "TARGET: want fleet:"},
		{hosts: 3, flags: "rate=max", wrong: "--rate: a mesh has a rate"},
		{hosts: 3, flags: "payload=64,128", wrong: "--payload: want one size"},
	} {
		flags := map[string][]string{}
		for _, f := range strings.Fields(c.flags) {
			name, value, _ := strings.Cut(f, "=")
			flags[name] = []string{value}
		}
		if c.target == "" {
			c.target = "fleet:"
		}
		p, err := Mesh.Plan(Settings{Target: c.target, Hosts: hostNames(c.hosts), Flags: flags})
		switch {
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s %s: %v, want %s", c.target, c.flags, err, c.wrong)
		case c.wrong == "" && err != nil:
			t.Errorf("%s %s: %v", c.target, c.flags, err)
		case c.wrong == "" && (p.Design.Repeats != c.repeats || p.AtOnce != c.once || len(p.Flows) != 2):
			t.Errorf("%s %s: %d cycles, at once %v, %d flows", c.target, c.flags, p.Design.Repeats, p.AtOnce, len(p.Flows))
		}
		if c.wrong != "" {
			continue
		}
		text, err := Print(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(text, "plan"); err != nil || fmt.Sprint(again) != fmt.Sprint(p) {
			t.Errorf("%s: read back %v: %v", c.flags, again, err)
		}
	}
}
