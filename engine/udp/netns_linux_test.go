package udp

import (
	"os/exec"
	"strings"
	"testing"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
)

var (
	farFour = netbed.Address(false, 2)
	farSix  = netbed.Address(true, 2)
)

// linked makes two hosts with a cable: eth0 of near to eth0 of far, which has farFour and farSix.
func linked(t testing.TB) (near, far *netbed.Node) {
	t.Helper()
	nodes := netbed.Chain(t, "near", "far")
	return nodes[0], nodes[1]
}

// loopback makes a host with nothing but its loopback, of an MTU.
func loopback(t testing.TB, mtu int) *netbed.Node {
	t.Helper()
	n := netbed.Namespace(t)
	n.MTU("lo", mtu)
	return n
}

// rules loads an nft table.
func rules(n *netbed.Node, text string) {
	n.T.Helper()
	testenv.Tool(n.T, "nft")
	n.Must(func() error {
		c := exec.Command("nft", "-f", "-")
		c.Stdin = strings.NewReader(text)
		out, err := c.CombinedOutput()
		if err != nil {
			n.T.Logf("nft: %s", out)
		}
		return err
	})
}
