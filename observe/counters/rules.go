package counters

import (
	"fmt"
	"slices"
	"strings"
)

// Values of include/uapi/linux/netfilter/nf_tables.h.
const (
	nfHeader = 4 // struct nfgenmsg: family, version, resource

	verdictDrop = 0
	verdictMask = 0xff // the rest may hold an errno
	verdictJump = 0xfffffffd
	verdictGoto = 0xfffffffc
)

// chainKey names a chain.
type chainKey struct {
	family       uint8
	table, chain string
}

// chain is a chain of rules.
type chain struct {
	chainKey
	hook    string // it hangs on; "" if it is only jumped to
	drops   bool   // its policy
	counted bool   // the policy has a counter
	packets uint64 // that met the policy
}

// rule is one rule.
type rule struct {
	chainKey
	handle  uint64
	loses   bool     // it drops or rejects exactly the packets that it counts
	packets uint64   // counted
	targets []string // chains it jumps to
}

var families = map[uint8]string{1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}

func family(number uint8) string {
	if name, ok := families[number]; ok {
		return name
	}
	return fmt.Sprintf("family%d", number)
}

// hookNames are the hooks of most families in the order of their numbers.
var hookNames = []string{"prerouting", "input", "forward", "output", "postrouting", "ingress"}

// hook names the hook by its number, which depends on the family.
func hook(family uint8, number uint32) string {
	names := hookNames
	switch family {
	case 3:
		names = []string{"input", "output", "forward"}
	case 5:
		names = []string{"ingress", "egress"}
	}
	if int64(number) < int64(len(names)) {
		return names[number]
	}
	return ""
}

// parseChain reads a message of type NFT_MSG_NEWCHAIN.
func parseChain(b []byte) (c chain, ok bool) {
	const (
		table    = 1
		name     = 3
		hookInfo = 4
		hookNum  = 1
		policy   = 5
		counters = 8
		packets  = 2
	)
	if len(b) < nfHeader {
		return chain{}, false
	}
	c.family = b[0]
	for kind, v := range attributes(b[nfHeader:]) {
		switch kind {
		case table:
			c.table = text(v)
		case name:
			c.chain = text(v)
		case hookInfo:
			for inner, v := range attributes(v) {
				if inner == hookNum && len(v) >= 4 {
					c.hook = hook(c.family, big32(v))
				}
			}
		case policy:
			c.drops = len(v) >= 4 && big32(v) == verdictDrop
		case counters:
			for inner, v := range attributes(v) {
				if inner == packets && len(v) >= 8 {
					c.counted, c.packets = true, big64(v)
				}
			}
		}
	}
	return c, c.table != "" && c.chain != ""
}

// parseRule reads a message of type NFT_MSG_NEWRULE.
func parseRule(b []byte) (r rule, ok bool) {
	const (
		table       = 1
		chainName   = 2
		handle      = 3
		expressions = 4
	)
	if len(b) < nfHeader {
		return rule{}, false
	}
	r.family = b[0]
	for kind, v := range attributes(b[nfHeader:]) {
		switch kind {
		case table:
			r.table = text(v)
		case chainName:
			r.chain = text(v)
		case handle:
			r.handle = big64(v)
		case expressions:
			r.read(v)
		}
	}
	return r, r.table != "" && r.chain != "" && r.handle != 0
}

// read goes through a rule's expressions, which run in order until one does not
// match: a counter tells what the verdict let go only if all between them matches always.
func (r *rule) read(list []byte) {
	const (
		name = 1
		data = 2
	)
	counted := false
	for _, expression := range attributes(list) {
		kind, body := "", []byte(nil)
		for inner, v := range attributes(expression) {
			switch inner {
			case name:
				kind = text(v)
			case data:
				body = v
			}
		}
		switch kind {
		case "counter":
			for inner, v := range attributes(body) {
				if inner == 2 && len(v) >= 8 { // NFTA_COUNTER_PACKETS
					counted, r.packets = true, big64(v)
				}
			}
		case "immediate":
			code, target, isVerdict := parseVerdict(body)
			switch {
			case !isVerdict:
			case code == verdictJump || code == verdictGoto:
				r.targets = append(r.targets, target)
			case code&verdictMask == verdictDrop && code>>31 == 0: // negative ones are nf_tables' own
				r.loses = r.loses || counted
			}
		case "reject":
			r.loses = r.loses || counted
		case "target": // iptables-nft
			for inner, v := range attributes(body) {
				if n := text(v); inner == 1 && (n == "REJECT" || n == "DROP") { // NFTA_TARGET_NAME
					r.loses = r.loses || counted
				}
			}
		case "log":
		default:
			counted = false
		}
	}
}

// parseVerdict reads the data of an immediate expression that sets the verdict.
func parseVerdict(body []byte) (code uint32, chain string, ok bool) {
	const (
		register = 1
		data     = 2
		verdict  = 2
		codeKind = 1
		target   = 2
	)
	for kind, v := range attributes(body) {
		switch kind {
		case register:
			if big32(v) != 0 { // NFT_REG_VERDICT
				return 0, "", false
			}
		case data:
			for kind, v := range attributes(v) {
				if kind != verdict {
					continue
				}
				for kind, v := range attributes(v) {
					switch {
					case kind == codeKind && len(v) >= 4:
						code, ok = big32(v), true
					case kind == target:
						chain = text(v)
					}
				}
			}
		}
	}
	return code, chain, ok
}

// hooks finds the one hook from which each chain is reached, through jumps that
// stand in rules; those from verdict maps are not looked up. A chain reached from
// several hooks, or none, has "".
func hooks(chains []chain, rules []rule) map[chainKey]string {
	found := map[chainKey]string{}
	next := map[chainKey][]chainKey{}
	for _, r := range rules {
		for _, target := range r.targets {
			next[r.chainKey] = append(next[r.chainKey], chainKey{r.family, r.table, target})
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
	return fmt.Sprintf("nft.%s.%s.%s.%s.packets", family(k.family), plainName(k.table), place, last)
}

// plainName makes a name that a user chose one component, and one that cannot be
// taken for a hook's.
func plainName(name string) string {
	if slices.Contains(hookNames, name) {
		return "named_" + name
	}
	return strings.ReplaceAll(name, ".", "_")
}
