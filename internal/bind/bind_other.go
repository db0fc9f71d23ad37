//go:build !linux

package bind

import (
	"errors"
	"syscall"
)

// Conn binds a socket to an interface before it connects. It does nothing without a name.
func Conn(_ syscall.RawConn, name string) error {
	if name == "" {
		return nil
	}
	return errors.ErrUnsupported
}

// Check returns errors.ErrUnsupported.
func Check(string) error { return errors.ErrUnsupported }
