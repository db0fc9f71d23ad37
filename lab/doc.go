// Package lab makes a path real on one machine: nodes in unnamed network
// namespaces, links between them, and what the links do to packets.
//
// The name of a topology and a list of model.Link come in; a Lab goes out,
// whose nodes run functions and programs inside their namespaces. The package
// talks to the kernel over netlink only, never through ip, tc or nft. It gives
// nothing a name in the file system, touches no interface or setting of the
// host, and leaves nothing behind when its process ends in whatever way.
package lab
