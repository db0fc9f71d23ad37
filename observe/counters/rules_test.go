package counters

import (
	"maps"
	"testing"
)

// TestUncountedRules: what may drop packets and has no counter is told by its chain.
func TestUncountedRules(t *testing.T) {
	at := func(chain string) chainKey { return chainKey{"inet", "fw", chain} }
	chains := []chain{{chainKey: at("input"), hook: "input"}, {chainKey: at("mine")},
		{chainKey: at("forward"), hook: "forward", drops: true},
		{chainKey: at("out"), hook: "output", drops: true, counted: true}}
	rules := []rule{{chainKey: at("input"), refuses: true, counted: true}, {chainKey: at("input"), jumps: "mine"},
		{chainKey: at("mine"), refuses: true}, {chainKey: at("mine"), maps: true}, {chainKey: at("mine")}}
	var s Snapshot
	s.setUncounted(chains, rules)
	want := map[string]uint64{"nft.inet.fw.mine.input.uncounted": 2, "nft.inet.fw.forward.uncounted": 1}
	if !maps.Equal(s.levels, want) {
		t.Errorf("%v, want %v", s.levels, want)
	}
}
