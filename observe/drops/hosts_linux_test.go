//go:build amd64 || arm64

package drops

import (
	"net/netip"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
)

// A host is known by the address that faced the packets, wherever it dropped them. Another namespace that has got the
// inode of one that is gone is not taken for it.
func TestAddressOfAHost(t *testing.T) {
	m := machine(t)
	for _, six := range []bool{false, true} {
		nodes := netbed.Chain(t, "client", "router", "server")
		client, router, server := nodes[0], nodes[1], nodes[2]
		facing := map[*netbed.Node]string{client: "10.77.0.2", server: "10.77.1.1"}
		if six {
			facing = map[*netbed.Node]string{client: "fd77::2", server: "fd77:0:0:1::1"}
		}
		for _, hook := range []*nftables.ChainHook{nftables.ChainHookPrerouting, nftables.ChainHookForward,
			nftables.ChainHookPostrouting} {
			undo := router.Rule(hook, &expr.Verdict{Kind: expr.VerdictDrop})
			for from, to := range map[*netbed.Node]*netbed.Node{client: server, server: client} {
				k, err := m.Meet(testTrial, "up", testTrial, 1)
				if err != nil {
					t.Fatal(err)
				}
				s := from.Open(six, netbed.Connected(netip.AddrPortFrom(to.IP(six), testPort)))
				for range 10 {
					_, _ = unix.Write(s.FD, meetingPacket(testTrial, 1, 1)) // EPERM is none here
				}
				d := collect(t, m, testTrial)
				if len(d.Sites) != 1 || d.Sites[0].Address != facing[from] || d.Sites[0].Interface == "" {
					t.Errorf("hook %d, IPv6 %v: %+v; want one site at %s", *hook, six, d, facing[from])
				}
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			}
			undo()
		}
		other := newNames(m.names.reasons)
		for id, p := range m.names.places {
			if p.space == router.ID() {
				p.key.Cookie += 1 << 40 // the next one is perhaps that of a namespace which had this inode later
				other.places[id] = place{key: p.key, space: p.space}
			}
		}
		other.locate()
		for id := range other.places {
			if s, _ := other.site(id); s.Address != "" || s.Interface != "" {
				t.Errorf("of another namespace: %+v", s)
			}
		}
	}
}
