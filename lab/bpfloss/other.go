//go:build !(linux && (amd64 || arm64))

package bpfloss

import (
	"errors"
	"fmt"
	"runtime"

	"pelt/lab/impair"
)

// Program can't be had here.
type Program struct{}

func unsupported() error {
	return fmt.Errorf("frames are lost by eBPF on Linux on amd64 and arm64 only, not on %s/%s: %w", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)
}

// Load fails.
func Load(impair.Settings) (*Program, error) { return nil, unsupported() }

// FD is none.
func (*Program) FD() int { return -1 }

// MapID fails.
func (*Program) MapID() (uint32, error) { return 0, unsupported() }

// Close does nothing.
func (*Program) Close() error { return nil }

// CountsOf fails.
func CountsOf(uint32) (Counts, error) { return Counts{}, unsupported() }

// Restart fails.
func Restart(uint32, impair.Settings) error { return unsupported() }
