//go:build amd64 || arm64

package drops

import (
	"fmt"
	"net/netip"
	"regexp"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/model"
)

// run sends packets over a bed and holds the verdicts against what did not come.
type run struct {
	six     bool
	payload int
	packets uint64
	listen  []func(fd int) error // the receiver's socket
	send    []func(fd int) error // the sender's socket
	before  func(b *bed)         // makes the fault
	during  func(b *bed, from, to socket)
	after   func(b *bed, to socket) // when all is sent, before the receiver reads
	options TrackOptions
	quiet   bool // no receiver

	reason, function string // regular expressions that each verdict meets
	space            func(b *bed) uint64
	iface            string
	received         bool
	least            uint64 // packets lost, or the fault was none
}

func inSender(b *bed) uint64   { return inode(b.t, b.sender) }
func inReceiver(b *bed) uint64 { return inode(b.t, b.receiver) }
func unknown(*bed) uint64      { return 0 }

func (r run) test(t *testing.T) {
	if r.payload == 0 {
		r.payload = 64
	}
	if r.packets == 0 {
		r.packets = 1000
	}
	if r.listen == nil {
		r.listen = []func(int) error{option(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)}
	}
	b := newBed(t)
	to := socket{fd: -1, port: testPort}
	if !r.quiet {
		to = open(t, b.receiver, r.six, append(r.listen, bound(netip.AddrPortFrom(address(r.six, 2), testPort)))...)
	}
	from := open(t, b.sender, r.six, append(r.send, connected(netip.AddrPortFrom(address(r.six, 2), testPort)))...)
	m := machine(t)
	track(t, m, testTrial, "up", r.options, model.Tuple{From: from.port, To: testPort})
	if r.before != nil {
		r.before(b)
	}
	if r.during != nil {
		r.during(b, from, to)
	} else {
		send(t, from, testTrial, 0, r.packets, r.payload)
	}
	if r.after != nil {
		r.after(b, to)
	}
	got := map[uint64]int{}
	if !r.quiet {
		to.drain(t, testTrial, got)
	}
	d, err := m.Collect(testTrial)
	if err != nil {
		t.Fatal(err)
	}
	r.check(t, b, d, got)
}

func (r run) check(t *testing.T, b *bed, d model.Drops, got map[uint64]int) {
	t.Helper()
	said := verdicts(t, d, "up", 0)
	var lost, unnamed, wrong uint64
	for q := range r.packets {
		site, named := said[q]
		switch arrived := got[q] > 0; {
		case arrived && named:
			wrong++
		case !arrived && !named:
			unnamed++
		}
		if got[q] == 0 {
			lost++
		}
		if named && !r.expected(b, site) {
			t.Errorf("sequence %d: %+v", q, site)
			break
		}
	}
	if unnamed > 0 || wrong > 0 || lost < r.least || lost == 0 {
		t.Errorf("%d lost of %d, of them %d without a verdict; %d verdicts about packets that came; want at least %d lost, all of them named",
			lost, r.packets, unnamed, wrong, r.least)
	}
	if d.Overwritten+d.SitesLost+d.Unreadable > 0 {
		t.Errorf("not accounted for: %+v", d)
	}
	var sum uint64
	for _, c := range d.Flows[0].Counts {
		sum += c.Packets
	}
	if sum < lost {
		t.Errorf("tallies of %d packets, but %d are lost", sum, lost)
	}
	if t.Failed() {
		stats, _ := machine(t).Stats()
		t.Logf("sites %+v\ncounts %+v\nstats %+v", d.Sites, d.Flows[0].Counts, stats)
	}
}

func (r run) expected(b *bed, s model.Site) bool {
	want := uint64(0)
	if r.space != nil {
		want = r.space(b)
	}
	return matches(r.reason, s.Reason) && matches(r.function, s.Function) && s.Namespace == want &&
		s.Interface == r.iface && s.Received == r.received
}

func matches(pattern, s string) bool { return regexp.MustCompile("^(" + pattern + ")$").MatchString(s) }

// slowReader keeps a tenth of what is sent in its socket.
var slowReader = []func(int) error{option(unix.SOL_SOCKET, unix.SO_RCVBUF, 20_000)}

func TestFaults(t *testing.T) {
	for name, r := range map[string]run{
		"receive buffer": {listen: slowReader, reason: "SOCKET_RCVBUFF", function: ".*udp.*_queue_rcv_.*", space: inReceiver, iface: "vb",
			received: true, least: 900},
		"nft input": {before: func(b *bed) { dropEvery(b, b.receiver, nftables.ChainHookInput) }, reason: "NETFILTER_DROP",
			function: "nft_do_chain.*|nf_hook_slow", space: inReceiver, iface: "vb", received: true, least: 250},
	} {
		t.Run(name, r.test)
		r.six = true
		t.Run(name+" over IPv6", r.test)
	}
}

// dropEvery makes a rule that drops every fourth sequence.
func dropEvery(b *bed, h *netns.Handle, hook *nftables.ChainHook) {
	b.t.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(int(h.File().Fd())))
	if err != nil {
		b.t.Fatal(err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "fault"})
	chain := c.AddChain(&nftables.Chain{Name: fmt.Sprint("hook", *hook), Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook,
		Priority: nftables.ChainPriorityFilter})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		// the last byte of the sequence: 8 B of UDP header and 10 B in
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 17, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{3}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0}},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}})
	if err := c.Flush(); err != nil {
		b.t.Fatal(err)
	}
}
