//go:build !(linux && (amd64 || arm64))

package drops

import (
	"errors"
	"runtime"

	"pelt/model"
)

// Machine can't be had here.
type Machine struct{}

// Track names the streams of one flow.
type Track struct{}

// Live can't be had here.
type Live struct{}

func unsupported() *Error {
	return refuse("drops can be watched on Linux on amd64 and arm64 only, not on "+runtime.GOOS+"/"+runtime.GOARCH, errors.ErrUnsupported)
}

// Open fails.
func Open(int) (*Machine, error) { return nil, unsupported() }

// Watch fails.
func Watch([]uint16) (*Live, error) { return nil, unsupported() }

// Why says what the machine can't tell.
func (*Machine) Why() string { return unsupported().why }

// Track fails.
func (*Machine) Track(uint16, string, []model.Tuple, TrackOptions) (*Track, error) {
	return nil, unsupported()
}

// Collect fails.
func (*Machine) Collect(uint16) (model.Drops, error) { return model.Drops{}, unsupported() }

// Counts is not supported here.
func (*Machine) Counts(uint16) (model.Drops, error) { return model.Drops{}, unsupported() }

// Missed fails.
func (*Machine) Missed() (uint64, error) { return 0, unsupported() }

// Close does nothing.
func (*Machine) Close() error { return nil }

// Mode is off.
func (*Track) Mode() model.DropMode { return model.DropsOff }

// Why says why the mode is not the asked one.
func (*Track) Why() string { return unsupported().why }

// Close does nothing.
func (*Track) Close() error { return nil }

// Read fails.
func (*Live) Read() (LiveAccount, error) { return LiveAccount{}, unsupported() }

// Why says what the watch can't tell.
func (*Live) Why() string { return unsupported().why }

// Close does nothing.
func (*Live) Close() error { return nil }
