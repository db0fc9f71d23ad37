package counters

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pelt/model"
)

// Families of chains that a tool older than nft tells of.
const (
	iptables  = "iptables"
	ip6tables = "ip6tables"
)

type chainKey struct {
	family       string // inet, ip, ...; or iptables, ip6tables
	table, chain string
}

// sibling is another chain of the table.
func (k chainKey) sibling(name string) chainKey { return chainKey{k.family, k.table, name} }

type chain struct {
	chainKey
	hook    string // it hangs on; "" if it is only jumped to
	drops   bool   // its policy
	counted bool   // the policy has a counter
	packets uint64 // that met the policy
}

type rule struct {
	chainKey
	number  uint64 // its handle; of iptables, its place in the chain
	counted bool   // a counter tells exactly the packets that meet its verdict
	packets uint64 // counted
	refuses bool   // it drops or rejects
	maps    bool   // to a verdict for each of several values, which may be to drop
	always  bool   // it matches all packets
	jumps   string // chain to which its verdict sends them
	asks    bool   // a program that reads queue is to judge them; without one they are lost
	queue   uint64
	text    uint64 // a sum of what the rule says, where its number is a place that another rule may come to have
}

// addRules adds the counters of rules that drop, and of chains whose policy does.
func (s *Snapshot) addRules(chains []chain, rules []rule) {
	from, closed := hooks(chains, rules), closedChains(rules)
	add := func(k chainKey, last string, text, packets uint64) {
		name := ruleName(k, from[k], last)
		s.add(series{name: name, scope: namespaceScope, unit: skbUnit, bits: 64, role: primary | loss}, text, packets)
	}
	for _, r := range rules {
		if r.counted && (r.refuses || closed[r.sibling(r.jumps)]) {
			add(r.chainKey, decimal(r.number), r.text, r.packets)
		}
		if r.counted && r.asks && !slices.Contains(s.heard, r.queue) {
			s.add(series{name: fmt.Sprintf("nfqueue.%d.unheard", r.queue), scope: namespaceScope, unit: skbUnit,
				bits: 64, role: loss}, cmp.Or(r.text, r.number), r.packets)
		}
	}
	for _, c := range chains {
		if c.hook != "" && c.drops && c.counted {
			add(c.chainKey, "policy", 0, c.packets)
		}
	}
}

// mostUncounted bounds the chains that are told of: among so many no rule can be named.
const mostUncounted = 16

// setUncounted tells of each chain how many of its rules may drop packets and count none. Its
// policy is one of them.
func (s *Snapshot) setUncounted(chains []chain, rules []rule) {
	from, uncounted := hooks(chains, rules), map[chainKey]uint64{}
	for _, r := range rules {
		if r.maps || r.refuses && !r.counted {
			uncounted[r.chainKey]++
		}
	}
	for _, c := range chains {
		if c.hook != "" && c.drops && !c.counted {
			uncounted[c.chainKey]++
		}
	}
	if len(uncounted) > mostUncounted {
		return
	}
	for k, n := range uncounted {
		s.setLevel(strings.TrimSuffix(ruleName(k, from[k], ""), "..packets")+model.UncountedRules, n)
	}
}

// closedChains are those that let nothing through and count nothing, as OpenWrt's handle_reject: whatever jumps there
// is lost, and the rule that jumps counts it.
func closedChains(rules []rule) map[chainKey]bool {
	open, closed := map[chainKey]bool{}, map[chainKey]bool{}
	for _, r := range rules {
		open[r.chainKey] = open[r.chainKey] || !r.refuses || r.counted
		closed[r.chainKey] = r.always && !open[r.chainKey] // of the last rule
	}
	return closed
}

// hookNames are the hooks of most families in the order of their numbers.
var hookNames = []string{"prerouting", "input", "forward", "output", "postrouting", "ingress"}

// hooks finds the one hook from which each chain is reached, through jumps that
// stand in rules; those from verdict maps are not looked up. A chain reached from
// several hooks, or none, has "".
func hooks(chains []chain, rules []rule) map[chainKey]string {
	found := map[chainKey]string{}
	next := map[chainKey][]chainKey{}
	for _, r := range rules {
		if r.jumps != "" {
			next[r.chainKey] = append(next[r.chainKey], r.sibling(r.jumps))
		}
	}
	for _, base := range chains {
		if base.hook == "" {
			continue
		}
		seen := map[chainKey]bool{base.chainKey: true}
		for queue := []chainKey{base.chainKey}; len(queue) > 0; queue = queue[1:] {
			c := queue[0]
			if was, other := found[c]; other && was != base.hook {
				found[c] = ""
			} else {
				found[c] = base.hook
			}
			for _, target := range next[c] {
				if !seen[target] {
					seen[target] = true
					queue = append(queue, target)
				}
			}
		}
	}
	return found
}

// ruleName is the name of a rule's counter; last is its handle or policy.
func ruleName(k chainKey, hook, last string) string {
	place := plainName(k.chain)
	switch {
	case hook == k.chain:
		place = hook
	case hook != "":
		place += "." + hook
	}
	tool := "nft." + k.family
	if k.family == iptables || k.family == ip6tables {
		tool = k.family
	}
	return fmt.Sprintf("%s.%s.%s.%s.packets", tool, plainName(k.table), place, last)
}

// plainName makes a name that a user chose one component, and one that cannot be
// taken for a hook's. nft's own names have no colon; package finding makes the chosen name of it again.
func plainName(name string) string {
	if slices.Contains(hookNames, name) {
		return ":" + name
	}
	return strings.NewReplacer(".", ":", ":", "?").Replace(name)
}
