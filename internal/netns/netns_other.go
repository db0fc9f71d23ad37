//go:build !linux

package netns

import "errors"

func (h *Handle) Inode() (uint64, error) { return 0, unsupported() }
func within(*Handle, func() error) error { return unsupported() }
func unsupported() error                 { return opError("network namespace", errors.ErrUnsupported) }
func Privileged() bool                   { return false }
