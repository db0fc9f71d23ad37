package counters

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Messages of netfilter's netlink: sub-system, then kind (nfnetlink.h,
// nf_tables.h, nfnetlink_conntrack.h).
const (
	newChain = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWCHAIN
	getChain = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETCHAIN
	newRule  = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWRULE
	getRule  = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE
	ctStats  = unix.NFNL_SUBSYS_CTNETLINK<<8 | 4 // IPCTNL_MSG_CT_GET_STATS_CPU, the answer's type, too
)

// anyFamily is a request for what all families of protocols have.
var anyFamily = []byte{unix.AF_UNSPEC, 0, 0, 0}

// Values of include/uapi/linux/netfilter/nf_tables.h.
const (
	nfHeader = 4 // struct nfgenmsg: family, version, resource

	verdictDrop = 0
	verdictMask = 0xff // the rest may hold an errno
)

var families = map[uint8]string{1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}

func family(number uint8) string {
	if name, ok := families[number]; ok {
		return name
	}
	return fmt.Sprintf("family%d", number)
}

// hook names the hook by its number, which depends on the family.
func hook(family uint8, number uint64) string {
	names := hookNames
	switch family {
	case 3:
		names = []string{"input", "output", "forward"}
	case 5:
		names = []string{"ingress", "egress"}
	}
	if number < uint64(len(names)) {
		return names[number]
	}
	return ""
}

// decodeChain reads a message of type NFT_MSG_NEWCHAIN.
func decodeChain(b []byte) (chain, error) {
	a := decode(b, nfHeader, binary.BigEndian)
	if a.of.err != nil {
		return chain{}, a.of.err
	}
	hooked, counters := a.nested(unix.NFTA_CHAIN_HOOK), a.nested(unix.NFTA_CHAIN_COUNTERS)
	c := chain{
		chainKey: chainKey{family(b[0]), a.text(unix.NFTA_CHAIN_TABLE), a.text(unix.NFTA_CHAIN_NAME)},
		drops:    a.has(unix.NFTA_CHAIN_POLICY) && a.number(unix.NFTA_CHAIN_POLICY) == verdictDrop,
		counted:  counters.has(unix.NFTA_COUNTER_PACKETS), packets: counters.number(unix.NFTA_COUNTER_PACKETS),
	}
	if hooked.has(unix.NFTA_HOOK_HOOKNUM) {
		c.hook = hook(b[0], hooked.number(unix.NFTA_HOOK_HOOKNUM))
	}
	if a.of.err == nil && (c.table == "" || c.chain == "") {
		return c, errors.New("a chain has no name")
	}
	return c, a.of.err
}

// decodeRule reads a message of type NFT_MSG_NEWRULE.
func decodeRule(b []byte) (rule, error) {
	a := decode(b, nfHeader, binary.BigEndian)
	if a.of.err != nil {
		return rule{}, a.of.err
	}
	r := rule{
		chainKey: chainKey{family(b[0]), a.text(unix.NFTA_RULE_TABLE), a.text(unix.NFTA_RULE_CHAIN)},
		number:   a.number(unix.NFTA_RULE_HANDLE), always: true,
	}
	for _, expression := range a.nested(unix.NFTA_RULE_EXPRESSIONS).list {
		r.addExpression(a.of.attributes(expression.Data))
	}
	if a.of.err == nil && (r.table == "" || r.chain == "" || r.number == 0) {
		return r, errors.New("a rule has no handle")
	}
	return r, a.of.err
}

// addExpression takes in one of a rule's expressions, which run in order until one does not match: a counter tells
// what the verdict let go only if all between them matches always.
func (r *rule) addExpression(a attributes) {
	body := a.nested(unix.NFTA_EXPR_DATA)
	switch a.text(unix.NFTA_EXPR_NAME) {
	case "counter":
		r.packets, r.counted = body.number(unix.NFTA_COUNTER_PACKETS), body.has(unix.NFTA_COUNTER_PACKETS)
		return
	case "immediate":
		verdict := body.nested(unix.NFTA_IMMEDIATE_DATA).nested(unix.NFTA_DATA_VERDICT)
		code := int32(verdict.number(unix.NFTA_VERDICT_CODE))
		switch {
		case body.number(unix.NFTA_IMMEDIATE_DREG) != unix.NFT_REG_VERDICT || !verdict.has(unix.NFTA_VERDICT_CODE):
		case code == unix.NFT_JUMP || code == unix.NFT_GOTO:
			r.jumps = verdict.text(unix.NFTA_VERDICT_CHAIN)
		case code >= 0 && code&verdictMask == verdictDrop: // negative ones are nf_tables' own
			r.refuses = true
		}
		return
	case "reject":
		r.refuses = true
		return
	case "queue": // without the flag to pass without a program
		r.queue = body.number(unix.NFTA_QUEUE_NUM)
		r.asks = body.has(unix.NFTA_QUEUE_NUM) && body.number(unix.NFTA_QUEUE_TOTAL) <= 1 &&
			body.number(unix.NFTA_QUEUE_FLAGS)&unix.NFT_QUEUE_FLAG_BYPASS == 0
		return
	case "target": // iptables-nft
		name := body.text(unix.NFTA_TARGET_NAME)
		r.refuses = r.refuses || name == "REJECT" || name == "DROP"
		return
	case "log":
		return
	case "lookup":
		r.maps = r.maps || body.has(unix.NFTA_LOOKUP_DREG) && body.number(unix.NFTA_LOOKUP_DREG) == unix.NFT_REG_VERDICT
	}
	r.counted, r.always = false, false
}

// loaded reports whether a module is in the kernel; when in doubt it says yes.
func loaded(module string) bool {
	list, err := os.ReadFile("/proc/modules")
	if err != nil || bytes.HasPrefix(list, []byte(module+" ")) || bytes.Contains(list, []byte("\n"+module+" ")) {
		return true // a kernel without modules has what it has
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	builtin, err := os.ReadFile("/lib/modules/" + oneLine(release) + "/modules.builtin")
	return err != nil || // without that directory no module can be loaded either
		bytes.Contains(builtin, []byte("/"+module+".ko"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readFilter adds what netfilter counts. Asking a sub-system that is not there would make the kernel load its module,
// so it is asked only where it is. Some kernels have no file of connection tracking's statistics.
func (r *Reader) readFilter(s *Snapshot) {
	r.tables = r.tables || loaded("nf_tables")
	tracking := exists("/proc/sys/net/netfilter/nf_conntrack_count") &&
		!exists("/proc/thread-self/net/stat/nf_conntrack")
	if !r.tables && !tracking {
		return
	}
	c, err := dial(unix.NETLINK_NETFILTER)
	if err != nil {
		s.lacks("netfilter", err)
		return
	}
	defer c.Close()
	if r.tables {
		if err := s.askRules(c); err != nil {
			s.lacks("nft rules", err)
		}
	}
	if tracking {
		if err := s.askConntrack(c); err != nil {
			s.lacks("conntrack", err)
		}
	}
}

// askRules adds the counters of rules that drop, and of chains whose policy does.
func (s *Snapshot) askRules(c *netlink.Conn) error {
	chains, err := list(c, getChain, newChain, anyFamily, decodeChain)
	if err != nil || len(chains) == 0 {
		return err
	}
	rules, err := list(c, getRule, newRule, anyFamily, decodeRule)
	if err != nil {
		return err
	}
	s.addRules(chains, rules)
	if !hasTables("ip_tables_names") && !hasTables("ip6_tables_names") { // whose rules are not among these
		s.setUncounted(chains, rules)
	}
	return nil
}

// hasTables reports whether a file lists tables of the filter that was before nft; when in doubt it says yes.
func hasTables(file string) bool {
	list, err := os.ReadFile("/proc/thread-self/net/" + file)
	return len(list) > 0 || err != nil && !errors.Is(err, os.ErrNotExist)
}

// askConntrack adds the statistics of connection tracking, by processor.
func (s *Snapshot) askConntrack(c *netlink.Conn) error {
	payloads, err := dump(c, ctStats, ctStats, anyFamily)
	if err == nil && len(payloads) == 0 {
		err = errors.New("no processor listed")
	}
	for i := 0; i < len(payloads) && err == nil; i++ {
		err = s.decodeConntrack(payloads[i])
	}
	return err
}

func (s *Snapshot) decodeConntrack(b []byte) error {
	a := decode(b, nfHeader, binary.BigEndian)
	if a.of.err != nil {
		return a.of.err
	}
	processor := uint64(binary.BigEndian.Uint16(b[2:])) // the resource of struct nfgenmsg
	for _, c := range conntrackCounters {
		if a.has(c.attribute) {
			s.addNamed("conntrack", c.name, processor, uint64(uint32(a.number(c.attribute))))
		}
	}
	return a.of.err
}
