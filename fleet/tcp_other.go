//go:build !linux

package fleet

import "net"

// quietTCP does nothing where the system has no such option.
func quietTCP(net.Conn) {}
