// Package nic asks a network card's driver how it is set, and sets it.
//
// The name of an interface comes in; its driver's name, statistics and
// settings (ring, channels) go out as text. A setting changes only
// by Set. It knows of no default and no good value, and keeps no old one.
// Netdev asks the kernel's netdev family, and leaves the answer as it is.
package nic

// Setting is one of a driver's: the ring in descriptors, channels in queues.
type Setting struct {
	Name  string
	Value string
	Max   uint32 // the most that it can be; 0: not told
}
