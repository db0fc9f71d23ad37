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
	err := errors.Join(t.f.Sync(), t.f.Close())
	if err == nil {
		err = os.Rename(t.f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(t.f.Name()))
	}
	return err
}
