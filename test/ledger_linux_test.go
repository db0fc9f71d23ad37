package test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pelt/model"
)

// hidden is how many drops a watch may not see; see observe/drops/hidden_test.go.
const hidden = 300

// exact tells whether a line is by sequence, but for what this machine may hide: a counter stands in for that.
func exact(l model.Line) bool {
	if l.Confidence == "exact-seq" {
		return true
	}
	seen, counter := seen(l), false
	for _, e := range l.Evidence {
		counter = counter || !strings.HasPrefix(e.Counter, "verdict ") && e.Role == "primary"
	}
	return counter && seen > 0 && seen < l.Packets && l.Packets-seen <= min(hidden, l.Packets/3)
}

// seen is how many packets of a line have verdicts.
func seen(l model.Line) (n uint64) {
	for _, e := range l.Evidence {
		if strings.HasPrefix(e.Counter, "verdict ") {
			n += e.Delta
		}
	}
	return n
}

// expectation is the line that a fault must make.
type expectation struct {
	layer string
	host  string
	cause string // regular expression
}

func lineOf(f model.FlowResult, e expectation) (packets uint64, sure bool) {
	sure = true
	for _, l := range f.Ledger.Lines {
		if l.Layer == e.layer && l.Host == e.host && regexp.MustCompile("^(?:"+e.cause+")$").MatchString(l.Cause) {
			packets += l.Packets
			sure = sure && exact(l)
		}
	}
	return packets, sure
}

func ledgerText(f model.FlowResult) string {
	text := fmt.Sprintf("attempted %d, lost %d, unattributed %d\n", f.Attempted, f.Ledger.Lost, f.Ledger.Unattributed)
	for _, l := range f.Ledger.Lines {
		text += fmt.Sprintf("  %-17s %-10s %-24s %8d %s\n", l.Layer, l.Host, l.Cause, l.Packets, l.Confidence)
		for _, e := range l.Evidence {
			text += fmt.Sprintf("      %s %s %s %d excess %d %s\n", e.Host, e.Counter, e.Unit, e.Delta, e.Excess, e.Role)
		}
	}
	for _, c := range f.Ledger.Checks {
		text += fmt.Sprintf("  %v %s: %s\n", c.Held, c.Name, c.Text)
	}
	return text
}

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
