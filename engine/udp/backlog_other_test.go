//go:build !linux

package udp

import "testing"

// backlogDrops is 0: other systems have no such queue.
func backlogDrops(testing.TB) uint32 { return 0 }
