//go:build amd64 || arm64

package xdp

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A kernel built for many cores takes no small set for the answer.
func TestAllowedCPUsOfManyCores(t *testing.T) {
	kernel := func(cores int, failure error, allowed ...int) func(unix.CPUSetDynamic) error {
		return func(set unix.CPUSetDynamic) error {
			if failure != nil {
				return failure
			}
			if 64*len(set) < cores {
				return unix.EINVAL
			}
			for _, core := range allowed {
				set.Set(core)
			}
			return nil
		}
	}
	for _, c := range []struct {
		name string
		get  func(unix.CPUSetDynamic) error
		want []int
		err  error
	}{
		{"few", kernel(8, nil, 0, 7), []int{0, 7}, nil},
		{"many", kernel(8192, nil, 3, 1024, 8191), []int{3, 1024, 8191}, nil},
		{"more than there can be", kernel(1<<20, nil, 3), nil, unix.EINVAL},
		{"forbidden", kernel(8, unix.EPERM), nil, unix.EPERM},
	} {
		if got, err := allowedCPUs(c.get); !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, err, c.want, c.err)
		}
	}
}
