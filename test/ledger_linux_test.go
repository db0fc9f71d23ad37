package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// bench is a held lab in which faults are made from outside of pelt:
//
//	sender ──── receiver                     direct
//	sender ──── router, nat, switch ──── receiver
type bench struct {
	peltproc.Host
	name string
}

var benches atomic.Uint32 // made so far

func newBench(t *testing.T, topology string, flags ...string) *bench {
	t.Helper()
	testenv.Root(t)
	testenv.Tool(t, "bridge", "cat", "grep", "ip", "nft", "sed", "seq", "sh", "tc")
	work := t.TempDir()
	b := &bench{peltproc.Host{T: t, Dir: work, Data: filepath.Join(work, "data")}, fmt.Sprintf("faults-%d-%d", os.Getpid(), benches.Add(1))}
	b.pelt(t, append([]string{"lab", "up", topology, "--name", b.name}, flags...)...)
	t.Cleanup(func() { b.pelt(t, "lab", "down", b.name) })
	return b
}

func (b *bench) pelt(t *testing.T, args ...string) {
	t.Helper()
	if out, err := b.Run(args...); err != nil {
		t.Fatalf("pelt %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// in runs a program in a node: "receiver: nft add table ip t".
func (b *bench) in(t *testing.T, line string) string {
	t.Helper()
	text, err := b.try(line)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (b *bench) try(line string) (string, error) {
	node, command, _ := strings.Cut(line, ": ")
	out, err := b.Run("lab", "exec", b.name, node, "--", "sh", "-c", command)
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", line, err, out)
	}
	return out, nil
}

// curve runs one trial and reads its document. Whether the trial is valid is a matter of the clock: a ledger balances in
// any case.
func (b *bench) curve(t *testing.T, flags string) model.Document {
	t.Helper()
	path := filepath.Join(b.Dir, "out.json")
	args := append([]string{"curve", "lab:" + b.name, "--engine", "udp"}, strings.Fields(flags)...)
	p := b.Start(append(args, "--repeats", "1", "--json", path)...)
	if err := orInvalid(p.Wait()); err != nil {
		t.Fatalf("pelt %s: %v\n%s", flags, err, p)
	}
	return document(t, path, "")
}

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

// again is how many packets were offered to the kernel a second time.
func offeredAgain(t *testing.T, f model.FlowResult) uint64 {
	t.Helper()
	for _, c := range f.Ledger.Checks {
		if c.Name == "again" {
			digits, _, _ := strings.Cut(c.Text, " packets")
			return number(t, strings.Join(strings.Fields(digits), ""))
		}
	}
	return 0
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

// fault is one way to lose packets; the line named holds what is lost.
type fault struct {
	name   string
	before []string // made before pelt starts
	flags  string
	named  expectation
}

const paced = " --payload 64 --rate 20kpps --burst 400 --time 600ms --warmup 0s"

// filter drops some of the packets of the paced flow.
func filter(node, family, hook string, percent int) string {
	length := map[string]int{"ip": 92, "ip6": 112}[family]
	return fmt.Sprintf("%s: nft 'table %s t { chain c { type filter hook %s priority 0; meta length %d numgen random mod 100 < %d counter drop; }; }'",
		node, family, hook, length, percent)
}

func filterCount(node, family string) string {
	return node + ": nft list table " + family + ` t | sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'`
}

// layered are five faults of different layers that a lab:router bears together.
// Each takes a part of what the others leave.
func layered() []fault {
	return []fault{
		{name: "send-call", before: []string{filter("sender", "ip", "output", 5)}, named: expectation{layer: "send-call", host: "sender", cause: "EPERM"}},
		{name: "sender-qdisc", before: []string{"sender: tc qdisc add dev eth0 root tbf rate 12mbit burst 2kb limit 3000"},
			named: expectation{layer: "sender-qdisc", host: "sender", cause: "QDISC_.*"}},
		{name: "network", before: []string{filter("router", "ip", "forward", 5)}, named: expectation{layer: "network", host: "router", cause: "NETFILTER_DROP"}},
		{name: "receiver-filter", before: []string{filter("receiver", "ip", "input", 5)}, named: expectation{layer: "receiver-filter", host: "receiver", cause: "NETFILTER_DROP"}},
		{name: "receiver-buffer", flags: " --receive-buffer 4608", named: expectation{layer: "receiver-buffer", host: "receiver", cause: "SOCKET_RCVBUFF"}},
	}
}

// TestFaultsTogether makes each two neighbours of five faults, and all five at once.
func TestFaultsTogether(t *testing.T) {
	all := layered()
	sets := [][]fault{all}
	for i := range len(all) - 1 {
		sets = append(sets, all[i:i+2])
	}
	for _, set := range sets {
		var names []string
		for _, f := range set {
			names = append(names, f.name)
		}
		t.Run(strings.Join(names, "+"), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "router")
			flags := paced
			for _, f := range set {
				for _, line := range f.before {
					b.in(t, line)
				}
				flags += f.flags
			}
			for _, mode := range []string{"seq", "off"} {
				before := b.ruleCounts(t)
				d := b.curve(t, flags+" --drops "+mode)
				f := d.Results[0].Flows[0]
				t.Logf("%s: %s", mode, ledgerText(f))
				after := b.ruleCounts(t)
				if mode == "off" {
					continue // readDocument has checked the balance
				}
				if f.Ledger.Unattributed != 0 {
					t.Errorf("%d unattributed", f.Ledger.Unattributed)
				}
				var sum, unseen uint64 // the latter lack a verdict, and count at any place that a counter leaves room for
				for _, l := range f.Ledger.Lines {
					if l.Confidence == "exact-count" {
						unseen += l.Packets - min(seen(l), l.Packets)
					}
				}
				for _, x := range set {
					got, sure := lineOf(f, x.named)
					sum += got
					if got == 0 || !sure {
						t.Errorf("%s: %d packets, exact-seq %v", x.name, got, sure)
					}
					if !strings.Contains(strings.Join(x.before, " "), "nft") {
						continue
					}
					again := uint64(0) // packets that the rule may have met twice
					if x.name == "send-call" {
						again = offeredAgain(t, f)
					}
					if n := after[x.named.host] - before[x.named.host]; n < got || n > got+again+unseen {
						t.Errorf("%s: the line says %d, the rule dropped %d, %d were offered again and %d not seen", x.name, got, n,
							again, unseen)
					}
				}
				if sum != f.Ledger.Lost {
					t.Errorf("the injected faults' lines hold %d of %d lost", sum, f.Ledger.Lost)
				}
			}
		})
	}
}

// ruleCounts reads each node's own rule in table ip t.
func (b *bench) ruleCounts(t *testing.T) map[string]uint64 {
	t.Helper()
	counts := map[string]uint64{}
	for _, node := range []string{"sender", "router", "receiver"} {
		if b.in(t, node+": nft list tables | grep 'ip t$' || true") != "" {
			counts[node] = number(t, b.in(t, filterCount(node, "ip")))
		}
	}
	return counts
}

// TestForeignTraffic floods the same namespaces with another generator, on
// other ports and hard enough to lose packets of its own: the lines stay right.
func TestForeignTraffic(t *testing.T) {
	t.Parallel()
	b := newBench(t, "router")
	b.in(t, "receiver: nft 'table ip t { chain i { type filter hook input priority 0; udp dport 7359 meta length 92 numgen random mod 100 < 7 counter drop; udp dport 5301 numgen random mod 100 < 50 drop; }; }'")
	b.Start("lab", "exec", b.name, "receiver", "--", "iperf3", "-s", "-p", "5301")
	b.Start("lab", "exec", b.name, "sender", "--", "sh", "-c",
		"until iperf3 -c 198.19.0.2 -p 5301 -u -b 20M -l 100 -t 8 >/dev/null 2>&1; do sleep 0.1; done")
	dropped := func() uint64 {
		return number(t, b.in(t, `receiver: nft list table ip t | sed -n 's/.*dport 7359.*counter packets \([0-9]*\) .*/\1/p'`))
	}
	time.Sleep(500 * time.Millisecond) // for the flood to begin; what the test asks holds without it, too
	for _, mode := range []string{"seq", "off"} {
		before := dropped()
		d := b.curve(t, " --payload 64 --rate 5kpps --burst 200 --time 1s --warmup 0s --drops "+mode)
		f := d.Results[0].Flows[0]
		t.Logf("%s: %s", mode, ledgerText(f))
		ruled := dropped() - before
		got, sure := lineOf(f, expectation{layer: "receiver-filter", host: "receiver", cause: ".*"})
		if got > f.Ledger.Lost {
			t.Errorf("%s: a line of %d is larger than the loss of %d", mode, got, f.Ledger.Lost)
		}
		if mode == "seq" && (got != ruled || !sure || f.Ledger.Unattributed != 0) {
			t.Errorf("the rule dropped %d, the line says %d, exact-seq %v; %d unattributed", ruled, got, sure, f.Ledger.Unattributed)
		}
	}
}
