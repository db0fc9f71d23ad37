package test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLedgerBetweenHosts makes faults that pelt knows nothing of, between a pelt serve and a pelt curve that are two
// processes in two namespaces. Package faults has each alone.
func TestLedgerBetweenHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	s := h.serve(t)
	inside(t, h.near, "tc qdisc add dev eth0 root tbf rate 12mbit burst 2kb limit 3000")
	inside(t, h.far, "nft 'table ip t { chain c { type filter hook input priority 0; udp dport 7359 meta length 92 numgen random mod 27 0 counter drop; }; }'")
	path := filepath.Join(h.work, "out.json")
	flags := "--payload 64 --rate 20kpps --burst 400 --time 2s --warmup 0s --repeats 1 --drops seq --receive-buffer 4608 --json " + path
	if out, err := h.run(s, strings.Fields(flags)...); err != nil {
		t.Fatalf("%v\n%s\nserver: %s", err, out, s.Err)
	}
	d := document(t, path, "")
	if r := d.Results[0]; r.Engine != "udp" || r.EngineReason != "udp sockets: the asked rate needs no frames" {
		t.Errorf("carried by %s: %s", r.Engine, r.EngineReason)
	}
	f := d.Results[0].Flows[0]
	t.Log(ledgerText(f))
	var sum uint64
	for _, e := range []expectation{
		{"sender-qdisc", "sender", "QDISC_.*"}, {"receiver-filter", "receiver", "NETFILTER_DROP"}, {"receiver-buffer", "receiver", "SOCKET_RCVBUFF"},
	} {
		n, sure := lineOf(f, e)
		if n == 0 || !sure {
			t.Errorf("%s at the %s: %d packets, exact-seq %v", e.layer, e.host, n, sure)
		}
		sum += n
	}
	// What a burst loses on the way when this machine is busy is real, and has a name.
	more, sure := lineOf(f, expectation{layer: "receiver-backlog", host: "receiver", cause: "CPU_BACKLOG"})
	if sum+more != f.Ledger.Lost || f.Ledger.Unattributed != 0 || !sure {
		t.Errorf("the faults' lines hold %d of %d lost, the backlog %d; %d unattributed", sum, f.Ledger.Lost, more, f.Ledger.Unattributed)
	}
	// Verdicts that the kernel hid from the watch are missing, and the socket's count stands in for them: also for some of
	// the rule's, if a packet of another flow was dropped there.
	hidden := uint64(0)
	for _, l := range f.Ledger.Lines {
		for _, e := range l.Evidence {
			if e.Counter == "SO_MEMINFO drops" && e.Role == "primary" {
				hidden += e.Delta
			}
		}
	}
	rule := number(t, inside(t, h.far, `nft list table ip t | sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'`))
	if n, _ := lineOf(f, expectation{layer: "receiver-filter", host: "receiver", cause: ".*"}); n > rule || rule-n > hidden {
		t.Errorf("the rule dropped %d, the line says %d, and the watch missed %d packets", rule, n, hidden)
	}
}
