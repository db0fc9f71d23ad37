package test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

// hidden is how many drops a watch may not see; see observe/drops/hidden_test.go.
const hidden = 300

// TestLedgerBetweenHosts makes faults that pelt knows nothing of, between a pelt serve and a pelt curve that are two
// processes in two namespaces. Package faults has each alone.
func TestLedgerBetweenHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	s := h.serve(t)
	inside(t, h.near, "tc qdisc add dev eth0 root tbf rate 12mbit burst 2kb limit 3000")
	inside(t, h.far, "nft 'table ip t { chain c { type filter hook input priority 0; "+
		"udp dport 7359 meta length 92 numgen random mod 27 0 counter drop; }; }'")
	d := h.measured(t, s, "", "--payload 64 --rate 20kpps --burst 400 --time 2s --warmup 0s "+
		"--drops seq --receive-buffer 4608")
	if r := d.Results[0]; r.Engine != "udp" || !model.Reasons(r.EngineReason).Has(model.SocketsFit) {
		t.Errorf("carried by %s: %v", r.Engine, r.EngineReason)
	}
	f := d.Results[0].Flows[0]
	const filter = "receiver-filter NETFILTER_DROP receiver"
	const backlog = "receiver-backlog CPU_BACKLOG receiver"  // what a burst loses on the way when this machine is busy
	lost, missed := map[string]uint64{backlog: 0}, uint64(0) // by the watch
	for _, l := range f.Ledger.Lines {
		lost[l.Layer+" "+l.Cause+" "+l.Host] += l.Packets
		seen := uint64(0)
		for _, e := range l.Evidence {
			switch {
			case strings.HasPrefix(e.Counter, "verdict "):
				seen += e.Delta
			case e.Counter == "SO_MEMINFO drops" && e.Role == "primary": // stands in for what the kernel hid
				missed += e.Delta
			}
		}
		if l.Confidence != "exact-seq" && (seen == 0 || seen >= l.Packets ||
			l.Packets-seen > min(hidden, l.Packets/3)) {
			t.Errorf("not by sequence, and no counter stands in for few of them: %+v", l)
		}
	}
	const want = backlog + ", receiver-buffer SOCKET_RCVBUFF receiver, " + filter + `, sender-qdisc QDISC_\w+ sender`
	got := strings.Join(slices.Sorted(maps.Keys(lost)), ", ")
	if !regexp.MustCompile("^"+want+"$").MatchString(got) || f.Ledger.Unattributed != 0 {
		t.Errorf("lost at %q and %d unattributed, want %q alone: %+v", got, f.Ledger.Unattributed, want, f.Ledger)
	}
	// Also some of the rule's are missed, if a packet of another flow was dropped there.
	rule := number(t, inside(t, h.far, `nft list table ip t | sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'`))
	if n := lost[filter]; n > rule || rule-n > missed {
		t.Errorf("the rule dropped %d, the line says %d, and the watch missed %d packets", rule, n, missed)
	}
}
