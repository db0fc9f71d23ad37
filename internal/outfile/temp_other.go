//go:build !linux

package outfile

import (
	"errors"
	"os"
)

type temp struct{ f *os.File }

func openTemp(dir string) (*temp, error) {
	f, err := createHidden(dir)
	if err != nil {
		return nil, err
	}
	return &temp{f}, nil
}

func (t *temp) discard() error { return errors.Join(t.f.Close(), os.Remove(t.f.Name())) }

func (t *temp) publish(path string) error {
	if err := errors.Join(t.f.Sync(), t.f.Close()); err != nil {
		return errors.Join(err, os.Remove(t.f.Name()))
	}
	why := os.Rename(t.f.Name(), path)
	if why == nil {
		return nil
	}
	from, err := os.Open(t.f.Name())
	if err != nil {
		return errors.Join(why, err, os.Remove(t.f.Name()))
	}
	touched, err := overwrite(path, from, t.f.Name(), why)
	if touched && err != nil {
		return errors.Join(err, from.Close())
	}
	return errors.Join(err, from.Close(), os.Remove(t.f.Name()))
}
