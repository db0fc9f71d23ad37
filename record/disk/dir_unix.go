//go:build unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

// syncDir puts a new file's name on the disk.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return nil // a directory that may not be read keeps its files all the same
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
