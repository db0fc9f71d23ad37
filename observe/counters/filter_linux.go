package counters

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
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
	getGen   = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN
	ctStats  = unix.NFNL_SUBSYS_CTNETLINK<<8 | 4 // IPCTNL_MSG_CT_GET_STATS_CPU, the answer's type, too
)

// rulePlan is which rules of a rule set are worth reading. It holds until the
// set has another generation.
type rulePlan struct {
	generation uint32
	chains     []chainKey // those with such rules
	policies   bool       // chains drop what no rule decides, and count it
	hooks      map[chainKey]string
	rules      map[ruleKey]*series
}

type ruleKey struct {
	chainKey
	handle uint64
}

// anyFamily is a request for what all families of protocols have.
var anyFamily = []byte{unix.AF_UNSPEC, 0, 0, 0}

// fewChains is up to how many chains are read one by one rather than all rules at once.
const fewChains = 8

// openFilter readies what netfilter counts. Asking a sub-system that is not
// there would make the kernel load its module, so it is asked only where it is.
// It runs again when a module came later.
func (r *Reader) openFilter() {
	if !r.tracked {
		r.tracked = r.openFiles(module)
		if _, err := os.Stat("/proc/sys/net/netfilter/nf_conntrack_count"); err == nil && !r.tracked {
			r.tracked, r.conntrack = true, true
		}
	}
	if r.rules == nil && loaded("nf_tables") {
		r.rules = &rulePlan{}
	}
	if r.rules == nil && !r.conntrack {
		return
	}
	// Both want CAP_NET_ADMIN; then each reading would say the same.
	var probe Snapshot
	r.readFilter(&probe)
	if len(probe.Unread) > 0 {
		r.filterRefused, r.rules, r.conntrack = true, nil, false
		r.unread = append(r.unread, probe.Unread...)
	}
}

// openLate readies what came into the kernel since.
func (r *Reader) openLate() {
	if r.filterRefused {
		return
	}
	_, noTables := os.Stat("/sys/module/nf_tables")
	_, noTracking := os.Stat("/sys/module/nf_conntrack")
	if r.rules == nil && noTables == nil || !r.tracked && noTracking == nil {
		_ = r.do(func() error { // if it fails, nothing is different
			r.openFilter()
			return nil
		})
	}
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

func (r *Reader) readFilter(s *Snapshot) {
	if r.rules != nil {
		if err := r.readRules(s); err != nil {
			s.lacks("nft rules", err)
			r.rules = &rulePlan{}
		}
	}
	if r.conntrack {
		if err := r.readConntrack(s); err != nil {
			s.lacks("conntrack", err)
		}
	}
}

// nfMessage is struct nfgenmsg and, if named, the table and the chain whose rules are wanted.
func nfMessage(family uint8, of ...chainKey) ([]byte, error) {
	attributes := netlink.NewAttributeEncoder()
	for _, c := range of {
		attributes.String(unix.NFTA_RULE_TABLE, c.table)
		attributes.String(unix.NFTA_RULE_CHAIN, c.chain)
	}
	b, err := attributes.Encode()
	return append([]byte{family, 0, 0, 0}, b...), err
}

// generation returns the number of the rule set, which changes with it.
func (r *Reader) generation() (number uint32, err error) {
	answer, err := r.filter.ask(getGen, 0, anyFamily)
	if err != nil {
		return 0, err
	}
	err = errors.New("the kernel does not tell the rule set's generation")
	for _, m := range answer {
		err = decode(m.Data, nfHeader, binary.BigEndian, func(a *netlink.AttributeDecoder) {
			if a.Type() == unix.NFTA_GEN_ID {
				number = a.Uint32()
			}
		})
	}
	return number, err
}

// readRules adds the counters of rules that drop, and of chains whose policy does.
func (r *Reader) readRules(s *Snapshot) error {
	for range maxDumps {
		readings, whole, err := r.tryRules()
		if err != nil {
			return err
		}
		if whole {
			s.readings = append(s.readings, readings...)
			return nil
		}
	}
	return errChanging
}

// tryRules reads the counters; whole is false if the rule set changed meanwhile.
func (r *Reader) tryRules() (readings []reading, whole bool, err error) {
	generation, err := r.generation()
	if err != nil {
		return nil, false, err
	}
	var rules []rule
	var chains []chain
	fresh := r.rules.hooks == nil || r.rules.generation != generation
	if fresh || r.rules.policies {
		if chains, err = list(&r.filter, getChain, newChain, anyFamily, decodeChain); err != nil {
			return nil, false, err
		}
	}
	wanted := [][]byte{anyFamily}
	if !fresh && len(r.rules.chains) <= fewChains {
		wanted = nil
		for _, c := range r.rules.chains {
			request, err := nfMessage(c.family, c)
			if err != nil {
				return nil, false, err
			}
			wanted = append(wanted, request)
		}
	}
	for _, request := range wanted {
		some, err := list(&r.filter, getRule, newRule, request, decodeRule)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil // deleted meanwhile
		}
		if err != nil {
			return nil, false, err
		}
		rules = append(rules, some...)
	}
	after, err := r.generation()
	if err != nil || after != generation {
		return nil, false, err
	}
	if fresh {
		r.rules.renew(generation, chains, rules)
	}
	for _, rule := range rules {
		if known := r.rules.rules[ruleKey{rule.chainKey, rule.handle}]; known != nil {
			readings = append(readings, reading{known, 0, rule.packets})
		}
	}
	for _, c := range chains {
		if known := r.rules.rules[ruleKey{c.chainKey, 0}]; known != nil {
			readings = append(readings, reading{known, 0, c.packets})
		}
	}
	return readings, true, nil
}

// renew plans what to read of a rule set.
func (p *rulePlan) renew(generation uint32, chains []chain, rules []rule) {
	p.generation, p.chains, p.policies = generation, nil, false
	p.hooks = hooks(chains, rules)
	p.rules = map[ruleKey]*series{}
	add := func(k chainKey, handle uint64, last string) {
		p.rules[ruleKey{k, handle}] = &series{
			name: ruleName(k, p.hooks[k], last), scope: namespaceScope, unit: skbUnit, bits: 64, role: primary | loss,
		}
	}
	seen := map[chainKey]bool{}
	for _, r := range rules {
		if !r.loses {
			continue
		}
		add(r.chainKey, r.handle, decimal(r.handle))
		if !seen[r.chainKey] {
			seen[r.chainKey] = true
			p.chains = append(p.chains, r.chainKey)
		}
	}
	for _, c := range chains {
		if c.hook != "" && c.drops && c.counted {
			p.policies = true
			add(c.chainKey, 0, "policy") // no rule has handle 0
		}
	}
}

// readConntrack asks for the statistics of connection tracking where the kernel has no file of them.
func (r *Reader) readConntrack(s *Snapshot) error {
	payloads, err := r.filter.dump(ctStats, ctStats, anyFamily)
	if err != nil {
		return err
	}
	if len(payloads) == 0 {
		return errors.New("no processor listed")
	}
	for _, b := range payloads {
		if err := r.cache.readConntrack(s, b); err != nil {
			return err
		}
	}
	return nil
}

// readConntrack adds one processor's answer of IPCTNL_MSG_CT_GET_STATS_CPU.
func (c *cache) readConntrack(s *Snapshot, b []byte) error {
	return decode(b, nfHeader, binary.BigEndian, func(a *netlink.AttributeDecoder) {
		processor := uint64(binary.BigEndian.Uint16(b[2:])) // the resource of struct nfgenmsg
		for _, e := range conntrackCounters {
			if e.attribute == a.Type() {
				known := c.named["conntrack"][e.column]
				s.readings = append(s.readings, reading{known, processor, uint64(a.Uint32())})
			}
		}
	})
}
