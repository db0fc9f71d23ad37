// Package nic asks a network card's driver how it is set, and sets it.
//
// The name of an interface comes in; its driver's name, statistics, features and
// settings (rings, channels, coalescing) go out as text. A setting changes only
// by Set. It knows of no default and no good value, and keeps no old one.
package nic

// Settings are the names that Get and Set know, in the order they are told:
// rings in descriptors, channels in queues, coalescing in microseconds and frames.
// coalesce_adaptive_rx is on or off.
func Settings() []string {
	return []string{
		"rx_ring", "tx_ring", "channels_combined", "channels_rx", "channels_tx",
		"coalesce_rx_usecs", "coalesce_rx_frames", "coalesce_tx_usecs", "coalesce_tx_frames", "coalesce_adaptive_rx",
	}
}

// Setting is one of a driver's, with the most that it can be where the driver says.
type Setting struct {
	Name  string
	Value string
	Max   uint32 // 0: not told
}
