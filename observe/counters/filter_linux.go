package counters

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

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

// fewChains is up to how many chains are read one by one rather than all rules at once.
const fewChains = 8

// openFilter readies what netfilter counts. Asking a sub-system that is not
// there would make the kernel load its module, so it is asked only where it is.
// It runs again when a module came later.
func (r *Reader) openFilter() {
	if !r.tracked {
		stat, err := os.Open("/proc/thread-self/net/stat/nf_conntrack")
		if err == nil {
			r.files = append(r.files, procFile{stat, "nf_conntrack", readConntrackFile})
		} else if _, missing := os.Stat("/proc/sys/net/netfilter/nf_conntrack_count"); missing == nil {
			r.conntrack = true
		}
		r.tracked = err == nil || r.conntrack
	}
	if r.rules == nil && loaded("nf_tables") {
		r.rules = &rulePlan{}
	}
	if r.rules == nil && !r.conntrack {
		return
	}
	if r.filter == nil {
		var err error
		if r.filter, err = netlink.Dial(unix.NETLINK_NETFILTER, nil); err != nil {
			r.refuse("netfilter: " + plain(err))
			return
		}
	}
	// Both want CAP_NET_ADMIN; then each reading would say the same.
	var probe Snapshot
	r.readFilter(&probe)
	if len(probe.Unread) > 0 {
		r.refuse(probe.Unread...)
	}
}

// refuse gives netfilter up.
func (r *Reader) refuse(lines ...string) {
	r.filterRefused, r.rules, r.conntrack = true, nil, false
	r.unread = append(r.unread, lines...)
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
	list, err := os.Open("/proc/modules")
	if err != nil {
		return true // a kernel without modules has what it has
	}
	defer list.Close()
	for lines := bufio.NewScanner(list); lines.Scan(); {
		if name, _, _ := strings.Cut(lines.Text(), " "); name == module {
			return true
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return true
	}
	builtin, err := os.ReadFile("/lib/modules/" + unix.ByteSliceToString(u.Release[:]) + "/modules.builtin")
	if errors.Is(err, fs.ErrNotExist) {
		return true // then no module can be loaded either
	}
	return err != nil || bytes.Contains(builtin, []byte("/"+module+".ko"))
}

func (r *Reader) readFilter(s *Snapshot) {
	if r.rules == nil && !r.conntrack {
		return
	}
	if r.filter == nil {
		if r.again(&r.filter, unix.NETLINK_NETFILTER); r.filter == nil {
			s.lacks("netfilter", errNoSocket)
			return
		}
	}
	if r.rules != nil {
		if err := r.readRules(s); err != nil {
			s.lacks("nft rules", err)
			r.rules = &rulePlan{}
			if r.again(&r.filter, unix.NETLINK_NETFILTER); r.filter == nil {
				return
			}
		}
	}
	if r.conntrack {
		if err := r.readConntrack(s); err != nil {
			s.lacks("conntrack", err)
			r.again(&r.filter, unix.NETLINK_NETFILTER)
		}
	}
}

func nfMessage(family uint8, attributes ...[]byte) []byte {
	return append([]byte{family, 0, 0, 0}, bytes.Join(attributes, nil)...)
}

// attribute makes a string attribute.
func attribute(kind uint16, value string) []byte {
	length := 4 + len(value) + 1
	b := make([]byte, (length+3)&^3)
	binary.NativeEndian.PutUint16(b, uint16(length))
	binary.NativeEndian.PutUint16(b[2:], kind)
	copy(b[4:], value)
	return b
}

// generation returns the number of the rule set, which changes with it.
func (r *Reader) generation() (uint32, error) {
	if err := r.filter.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return 0, err
	}
	answer, err := r.filter.Execute(netlink.Message{
		Header: netlink.Header{Type: getGen, Flags: netlink.Request},
		Data:   nfMessage(unix.AF_UNSPEC),
	})
	if err != nil {
		return 0, err
	}
	for _, m := range answer {
		if len(m.Data) < nfHeader {
			continue
		}
		for kind, v := range attributes(m.Data[nfHeader:]) {
			if kind == unix.NFTA_GEN_ID {
				return big32(v), nil
			}
		}
	}
	return 0, errors.New("the kernel does not tell the rule set's generation")
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
		if chains, err = r.listChains(); err != nil {
			return nil, false, err
		}
	}
	switch {
	case fresh, len(r.rules.chains) > fewChains:
		if rules, err = r.listRules(nfMessage(unix.AF_UNSPEC)); err != nil {
			return nil, false, err
		}
	default:
		for _, c := range r.rules.chains {
			some, err := r.listRules(nfMessage(c.family, attribute(unix.NFTA_RULE_TABLE, c.table), attribute(unix.NFTA_RULE_CHAIN, c.chain)))
			if errors.Is(err, fs.ErrNotExist) {
				return nil, false, nil // deleted meanwhile
			}
			if err != nil {
				return nil, false, err
			}
			rules = append(rules, some...)
		}
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

func (r *Reader) listChains() (chains []chain, err error) {
	payloads, err := dump(r.filter, getChain, newChain, nfMessage(unix.AF_UNSPEC))
	for _, b := range payloads {
		if c, ok := parseChain(b); ok {
			chains = append(chains, c)
		}
	}
	return chains, err
}

func (r *Reader) listRules(request []byte) (rules []rule, err error) {
	payloads, err := dump(r.filter, getRule, newRule, request)
	for _, b := range payloads {
		if parsed, ok := parseRule(b); ok {
			rules = append(rules, parsed)
		}
	}
	return rules, err
}

// readConntrackFile adds the statistics of connection tracking out of its file.
func readConntrackFile(r *Reader, s *Snapshot, b []byte) error {
	return parseStat(b, r.cache.addConntrack(s))
}

// readConntrack asks for the same where the kernel has no such file.
func (r *Reader) readConntrack(s *Snapshot) error {
	payloads, err := dump(r.filter, ctStats, ctStats, nfMessage(unix.AF_UNSPEC))
	if err != nil {
		return err
	}
	if len(payloads) == 0 {
		return fmt.Errorf("no processor listed")
	}
	for _, b := range payloads {
		r.cache.readConntrack(s, b)
	}
	return nil
}
