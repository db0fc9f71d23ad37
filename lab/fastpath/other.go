//go:build !(linux && (amd64 || arm64))

package fastpath

import (
	"errors"
	"fmt"
	"runtime"
)

type Path struct{}

func unsupported() error {
	return fmt.Errorf("there is a fast path on Linux on amd64 and arm64 only, not on %s/%s: %w", runtime.GOOS,
		runtime.GOARCH, errors.ErrUnsupported)
}

func Load([2]Port, Timeouts) (*Path, error) { return nil, unsupported() }
func (*Path) Attach(int) error              { return unsupported() }
func (*Path) Carry(bool) error              { return unsupported() }
func (*Path) Counts() ([]Count, error)      { return nil, unsupported() }
func (*Path) Close() error                  { return nil }
