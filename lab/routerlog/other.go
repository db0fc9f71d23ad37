//go:build !linux

package routerlog

import (
	"errors"
	"fmt"
	"io"
)

// Log can't be had here.
type Log struct{}

// Open fails: the log is of Linux's.
func Open(uint16, map[uint32]string) (*Log, error) {
	return nil, fmt.Errorf("log packets: %w", errors.ErrUnsupported)
}

// Counts are none.
func (*Log) Counts() Counts { return Counts{} }

// WriteTo writes nothing.
func (*Log) WriteTo(io.Writer) (int64, error) { return 0, nil }

// Close does nothing.
func (*Log) Close() error { return nil }
