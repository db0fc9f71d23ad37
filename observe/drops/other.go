//go:build !(linux && (amd64 || arm64))

package drops

import (
	"errors"
	"net/netip"
	"runtime"

	"pelt/model"
)

// Open and Watch fail here, so there is nothing whose methods could be called.
type (
	// Machine can't be had here.
	Machine struct{ machine }
	// Track can't be had here.
	Track struct{ track }
	// Live can't be had here.
	Live struct{ live }

	machine interface {
		Track(uint16, string, []model.Tuple, TrackOptions) (*Track, error)
		Meet(uint16, string, uint16, uint16) (*Track, error)
		MeetTCP(uint16, string, uint16, netip.Addr) (*Track, error)
		Collect(uint16, bool) (model.Drops, error)
		Missed() (uint64, error)
		NearlyFull() bool
		Reasons() bool
		Why() model.Reasons
		Close() error
	}
	track interface {
		Mode() model.DropMode
		BeginMeasured() error
		Why() model.Reasons
		Close() error
	}
	live interface {
		Read() (LiveAccount, error)
		Why() model.Reasons
		Close() error
	}
)

func unsupported() *Error {
	return refuse(watching, model.Reason{Code: model.DropsElsewhere, Name: runtime.GOOS + "/" + runtime.GOARCH},
		errors.ErrUnsupported)
}

func Open(int) (*Machine, error)    { return nil, unsupported() }
func Watch([]uint16) (*Live, error) { return nil, unsupported() }
