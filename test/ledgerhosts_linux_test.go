package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pelt/internal/netbed"
)

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
				inside(t, h.near, c.near)
			}
			if c.far != "" {
				inside(t, h.far, c.far)
			}
			path := filepath.Join(h.work, "out.json")
			flags := "--payload 64 --rate 20kpps --burst 400 --time 2s --warmup 0s --repeats 1 --drops seq --json " + path + " " + c.flags
			rule := func() uint64 {
				n := map[string]*netbed.Node{"near": h.near, "far": h.far}[c.counted]
				return number(t, inside(t, n, `nft list table ip t | sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'`))
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
			for _, e := range c.want {
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
			if c.counted != "" {
				n, again := rule()-counted, offeredAgain(t, f)
				if got, _ := lineOf(f, c.want[0]); n != got+again {
					t.Errorf("the rule dropped %d, the line says %d, and %d were offered twice", n, got, again)
				}
			}
		})
	}
}

// stopReader stops the server for a while, once packets flow to it.
func (h hosts) stopReader(t *testing.T, s *server) {
	waitPackets(t, h.near.Sent, 5000)
	pid := s.Cmd.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	time.Sleep(300 * time.Millisecond)
	_ = syscall.Kill(pid, syscall.SIGCONT)
}
