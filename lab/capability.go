package lab

import "pelt/internal/netns"

// Capability is one thing labs can or cannot do on this machine.
type Capability struct {
	Name   string // network-namespace, user-namespace, veth, bridge, relay, tbf, masquerade, fast-path, tun
	OK     bool
	Reason string // of a no
	Remedy string // for a no
}

// Privileged reports whether this process may make labs as it is.
func Privileged() bool { return netns.Privileged() }
