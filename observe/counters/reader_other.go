//go:build !linux

package counters

import (
	"errors"
	"fmt"
	"net/netip"

	"pelt/model"
)

// Reader reads the counters of one network namespace; only Linux has any.
type Reader struct{}

// Open fails with errors.ErrUnsupported.
func Open(func(func() error) error) (*Reader, error) {
	return nil, fmt.Errorf("read the kernel's counters: %w", errors.ErrUnsupported)
}

func (r *Reader) Read() Snapshot                                       { return Snapshot{} }
func (r *Reader) Namespace() uint64                                    { return 0 }
func Knobs(func(func() error) error, string) []model.HostSetting       { return nil }
func RouteTo(func(func() error) error, netip.Addr, string) model.Route { return model.Route{} }
