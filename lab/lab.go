package lab

import (
	"errors"
	"net/netip"
	"slices"
	"sync"

	"pelt/internal/netns"
	"pelt/lab/userlink"
	"pelt/model"
)

// Lab is an open lab. Its methods may be called concurrently, Close once.
type Lab struct {
	nodes []*Node
	held  []*netns.Handle // the nodes' namespaces and the hidden ones
	links []*Link         // of the topology
	pool  *userlink.Pool  // moves the frames of emulated links; nil: there are none here

	holder *client // of the process that holds the lab; nil: it is this one
	spec   topologySpec
	seed   uint64 // of emulated links that were given none
	router routerState

	mu    sync.Mutex // of what changes while the lab is open: this, and of each link
	facts model.LabFacts
}

// Node is one node of a lab. Its methods may be called concurrently. It stays
// usable until its lab is closed.
type Node struct {
	ns   *netns.Handle
	info nodeInfo
}

// nodeInfo is what a holder tells of a node.
type nodeInfo struct {
	Name       string      `json:"name"`
	Interfaces []Interface `json:"interfaces"`
	Frames     bool        `json:"frames,omitempty"` // its interfaces have a program of the lab's
}

// Interface is one of a node's network interfaces.
type Interface struct {
	Name  string       `json:"name"`
	Peer  string       `json:"peer"` // node at the other end of the link
	MTU   int          `json:"mtu_bytes"`
	Addr4 netip.Prefix `json:"addr4,omitzero"` // invalid for a switch's ports
	Addr6 netip.Prefix `json:"addr6,omitzero"` // invalid too where the MTU is below 1280 B or the kernel has no IPv6
}

// Facts says how the path was made.
func (l *Lab) Facts() model.LabFacts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts
}

// Nodes lists the nodes in travel order; wires hidden in the links are left out.
func (l *Lab) Nodes() []*Node { return slices.Clone(l.nodes) }

// Wires lists the relays hidden in links whose shaping needs a place of its
// own, as nodes named after their link.
func (l *Lab) Wires() (wires []*Node) {
	for _, k := range l.links {
		space := max(k.ways[0].shaper.Space, k.ways[1].shaper.Space)
		if space < len(l.nodes) {
			continue
		}
		toA, toB := l.spec.relayNames(k.number)
		wires = append(wires, &Node{ns: l.held[space], info: nodeInfo{Name: "link " + k.Ends[0] + "-" + k.Ends[1],
			Interfaces: []Interface{{Name: toA, Peer: k.Ends[0]}, {Name: toB, Peer: k.Ends[1]}}}})
	}
	return wires
}

// Node finds a node by name. The error is a *UsageError.
func (l *Lab) Node(name string) (*Node, error) {
	for _, n := range l.nodes {
		if n.info.Name == name {
			return n, nil
		}
	}
	facts := l.Facts()
	return nil, usagef("lab %s has no node %q; there are %s", facts.Topology, name,
		listed(facts.Nodes))
}

// Close lets go of every namespace; the kernel then removes what is in them,
// unless a program still runs in one. It tries all and joins the errors. On an
// attached lab it closes the copies only.
func (l *Lab) Close() error {
	var errs []error
	if l.holder != nil {
		errs = append(errs, l.holder.conn.Close())
	}
	errs = append(errs, l.router.close())
	if l.pool != nil {
		errs = append(errs, l.pool.Close())
		l.pool = nil
	}
	for _, h := range slices.Backward(l.held) {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}

// Name is sender, receiver, switch or router.
func (n *Node) Name() string { return n.info.Name }

// Do runs f on a thread inside the node's network namespace and returns its
// error. Sockets f opens stay in the node; goroutines f starts do not run there.
func (n *Node) Do(f func() error) error { return n.ns.Do(f) }

// TakesFrames reports whether the node's interfaces take XDP frames by themselves:
// a program of the lab's is there, and no other can be.
func (n *Node) TakesFrames() bool { return n.info.Frames }

// Interfaces lists the node's interfaces in travel order, without loopback.
func (n *Node) Interfaces() []Interface { return slices.Clone(n.info.Interfaces) }

// Interface is the node's first interface in travel order: an end's only one.
func (n *Node) Interface() Interface { return n.info.Interfaces[0] }

// Addr is the address of the node's first interface for family 4 or 6; for 0,
// the IPv4 address. It is the zero Addr where the node has none.
func (n *Node) Addr(family int) netip.Addr {
	if family == 6 {
		return n.Interface().Addr6.Addr()
	}
	return n.Interface().Addr4.Addr()
}

// NamespaceInode identifies the node's namespace on this machine, as in
// /proc/PID/ns/net.
func (n *Node) NamespaceInode() (uint64, error) { return n.ns.Inode() }

// Info describes a held lab.
type Info struct {
	Name     string   `json:"name"`
	Topology string   `json:"topology"`
	Nodes    []string `json:"nodes"`           // in travel order
	PID      int      `json:"pid"`             // of the holder
	Error    string   `json:"error,omitempty"` // why the rest could not be learned
	Why      error    `json:"-"`               // Error, to be said in another language
}
