//go:build !(linux && (amd64 || arm64))

package fastpath

import (
	"errors"
	"fmt"
	"runtime"
)

// Path can't be had here.
type Path struct{}

func unsupported() error {
	return fmt.Errorf("there is a fast path on Linux on amd64 and arm64 only, not on %s/%s: %w", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)
}

// Load fails.
func Load([2]Port, Timeouts) (*Path, error) { return nil, unsupported() }

// Attach fails.
func (*Path) Attach(int) error { return unsupported() }

// Carry fails.
func (*Path) Carry(bool) error { return unsupported() }

// Counts fails.
func (*Path) Counts() ([]Count, error) { return nil, unsupported() }

// Close does nothing.
func (*Path) Close() error { return nil }
