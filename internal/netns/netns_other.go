//go:build !linux

package netns

import (
	"errors"
	"os"
)

// New fails: only Linux has network namespaces.
func New() (*Handle, error) { return nil, unsupported() }

// Current fails: only Linux has network namespaces.
func Current() (*Handle, error) { return nil, unsupported() }

// Open fails: only Linux has network namespaces.
func Open(string) (*Handle, error) { return nil, unsupported() }

// FromFile fails: only Linux has network namespaces.
func FromFile(*os.File) (*Handle, error) { return nil, unsupported() }

// Inode fails: only Linux has network namespaces.
func (h *Handle) Inode() (uint64, error) { return 0, unsupported() }

func within(*Handle, func() error) error { return unsupported() }

func unsupported() error { return opError("network namespace", errors.ErrUnsupported) }

// Enter fails: only Linux has network namespaces.
func (h *Handle) Enter() error { return unsupported() }

// Privileged is false: only Linux has network namespaces.
func Privileged() bool { return false }
