//go:build !linux

package observe

import "errors"

func readLoad() (load, error) { return load{}, errors.ErrUnsupported }
