//go:build !linux

package gauge

import (
	"context"
	"errors"

	"pelt/model"
)

// Measure fails: labs need Linux.
func Measure(context.Context, []Way) ([]model.LinkCalibration, error) {
	return nil, errors.ErrUnsupported
}
