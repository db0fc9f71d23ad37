package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// inside runs a program in one of the hosts.
func (h hosts) inside(t *testing.T, ns, command string) string {
	t.Helper()
	out, err := exec.Command("ip", "netns", "exec", ns, "sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %s: %v\n%s", ns, command, err, out)
	}
	return string(out)
}

// TestLedgerBetweenHosts makes faults that pelt knows nothing of, between a
// pelt serve and a pelt curve that are two processes in two namespaces.
func TestLedgerBetweenHosts(t *testing.T) {
	const rule = "nft 'table ip t { chain c { type filter hook %s priority 0; udp dport 7359 meta length 92 numgen random mod 27 0 counter drop; }; }'"
	for _, c := range []struct {
		name      string
		near, far string // commands
		flags     string
		stop      bool // the receiver's process stands still for a while
		want      []expectation
		counted   string // host whose rule counts
	}{
		{name: "packet filter of the receiver", far: fmt.Sprintf(rule, "input"), want: []expectation{{layer: "receiver-filter", host: "receiver", cause: "NETFILTER_DROP"}}, counted: "far"},
		{name: "packet filter of the sender", near: fmt.Sprintf(rule, "output"), want: []expectation{{layer: "send-call", host: "sender", cause: "EPERM"}}, counted: "near"},
		{name: "queue of the sender", near: "tc qdisc add dev eth0 root tbf rate 5mbit burst 2kb limit 3000", want: []expectation{{layer: "sender-qdisc", host: "sender", cause: "QDISC_.*"}}},
		{name: "a reader that stops", flags: "--receive-buffer 65536", stop: true, want: []expectation{{layer: "receiver-buffer", host: "receiver", cause: "SOCKET_RCVBUFF"}}},
		{name: "queue, filter and buffer", near: "tc qdisc add dev eth0 root tbf rate 12mbit burst 2kb limit 3000", far: fmt.Sprintf(rule, "input"), flags: "--receive-buffer 4608",
			want: []expectation{{layer: "sender-qdisc", host: "sender", cause: "QDISC_.*"}, {layer: "receiver-filter", host: "receiver", cause: "NETFILTER_DROP"},
				{layer: "receiver-buffer", host: "receiver", cause: "SOCKET_RCVBUFF"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHosts(t)
			s := h.serve(t)
			if c.near != "" {
				h.inside(t, h.near, c.near)
			}
			if c.far != "" {
				h.inside(t, h.far, c.far)
			}
			path := filepath.Join(h.work, "out.json")
			flags := "--payload 64 --rate 20kpps --burst 400 --time 2s --warmup 0s --repeats 1 --drops seq --json " + path + " " + c.flags
			rule := func() uint64 {
				ns := map[string]string{"near": h.near, "far": h.far}[c.counted]
				text := h.inside(t, ns, `nft list table ip t | sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'`)
				n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			var counted uint64
			if c.counted != "" {
				counted = rule()
			}
			if c.stop {
				var stopped sync.WaitGroup
				stopped.Go(func() { h.stopReader(t, s) })
				defer stopped.Wait()
			}
			if out, err := h.run(t, s, strings.Fields(flags)...); err != nil {
				t.Fatalf("%v\n%s\nserver: %s", err, out, s.stderr)
			}
			d, err := readDocument(path, "")
			if err != nil {
				t.Fatal(err)
			}
			if r := d.Results[0]; r.Engine != "udp" || r.EngineReason != "udp sockets: the asked rate needs no frames" {
				t.Errorf("carried by %s: %s", r.Engine, r.EngineReason)
			}
			f := d.Results[0].Flows[0]
			t.Log(f.ledgerText())
			var sum uint64
			for _, e := range c.want {
				n, sure := f.line(e)
				if n == 0 || !sure {
					t.Errorf("%s at the %s: %d packets, exact-seq %v", e.layer, e.host, n, sure)
				}
				sum += n
			}
			// What a burst loses on the way when this machine is busy is real, and has a name.
			more, sure := f.line(expectation{layer: "receiver-backlog", host: "receiver", cause: "CPU_BACKLOG"})
			if sum+more != f.Ledger.Lost || f.Ledger.Unattributed != 0 || !sure {
				t.Errorf("the faults' lines hold %d of %d lost, the backlog %d; %d unattributed", sum, f.Ledger.Lost, more, f.Ledger.Unattributed)
			}
			if c.counted != "" {
				n, again := rule()-counted, f.again(t)
				if got, _ := f.line(c.want[0]); n != got+again {
					t.Errorf("the rule dropped %d, the line says %d, and %d were offered twice", n, got, again)
				}
			}
		})
	}
}

// stopReader stops the server for a while, once packets flow to it.
func (h hosts) stopReader(t *testing.T, s *server) {
	sent := func() (n int) {
		text, _ := exec.Command("ip", "netns", "exec", h.near, "cat", "/sys/class/net/eth0/statistics/tx_packets").Output()
		n, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
	begun := sent()
	for limit := time.Now().Add(30 * time.Second); sent() < begun+5000; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Errorf("no 5000 packets flowed in 30 s")
			return
		}
	}
	pid := s.cmd.Process.Pid // ip netns exec becomes pelt serve: its process is the one to stop
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	time.Sleep(300 * time.Millisecond)
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// TestLostReceiver kills the far host's pelt in the middle: its side of the
// ledger is not observed, and nobody takes that for nothing lost there.
func TestLostReceiver(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	s := h.serve(t)
	path := filepath.Join(h.work, "out.json")
	kill := make(chan bool)
	go func() {
		defer close(kill)
		for range 200 { // until packets flow
			text, _ := exec.Command("ip", "netns", "exec", h.near, "cat", "/sys/class/net/eth0/statistics/tx_packets").Output()
			if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n > 1000 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		_ = s.cmd.Process.Kill()
	}()
	defer func() { <-kill }()
	out, err := h.command(h.near, append(s.line, strings.Fields("--payload 64 --rate 5kpps --burst 100 --time 8s --warmup 0s --repeats 1 --json "+path)...)...).CombinedOutput()
	if err == nil {
		t.Fatalf("a test that lost its receiver ended well:\n%s", out)
	}
	d, err := readDocument(path, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := d.Results[0]
	if r.State != "aborted" {
		t.Errorf("state %s: %s", r.State, r.Why)
	}
	for _, o := range r.Observed {
		if o.Node == "receiver" && (o.Mode != "" || o.Why == "") {
			t.Errorf("the receiver was killed, and yet observed in mode %q: %s", o.Mode, o.Why)
		}
		if o.Node == "sender" && o.Mode == "" {
			t.Errorf("the sender was not observed: %s", o.Why)
		}
	}
	f := r.Flows[0]
	t.Log(f.ledgerText())
	told := false
	for _, c := range f.Ledger.Checks {
		told = told || strings.Contains(c.Text, "not observed")
	}
	if !told || f.Ledger.Unattributed != f.Ledger.Lost-sum(f) {
		t.Errorf("no check says that the receiver was not observed: %+v", f.Ledger.Checks)
	}
}

func sum(f flow) (n uint64) {
	for _, l := range f.Ledger.Lines {
		n += l.Packets
	}
	return n
}
