// Package outfile writes the files a user asked for: it finds out beforehand
// whether that will be possible, and a file is whole or not there, even after
// kill -9.
package outfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Check reports why path could not be written, without leaving anything behind.
func Check(path string) error {
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return fmt.Errorf("%s is a directory; want a file name", path)
		}
		if info.Mode()&fs.ModeNamedPipe != 0 {
			return nil // its reader would take the closing for the end
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", path, cause(err))
		}
		if info.Mode().IsRegular() {
			return errors.Join(f.Close(), checkDir(path))
		}
		return f.Close() // a device is written in place
	}
	return checkDir(path)
}

func checkDir(path string) error {
	t, err := openTemp(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, cause(err))
	}
	return t.discard()
}

// Write makes path hold what write writes; on any error path is as it was.
func Write(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeInPlace(path, write)
	}
	t, err := openTemp(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, cause(err))
	}
	if err := write(t.f); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, cause(err)), t.discard())
	}
	if err := t.publish(path); err != nil {
		return fmt.Errorf("writing %s: %w", path, cause(err))
	}
	return nil
}

func writeInPlace(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, cause(err))
	}
	return errors.Join(write(f), f.Close())
}

// cause drops the temporary name that an os error would show.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// hidden is a name for a file that is not whole yet.
func hidden() string { return fmt.Sprintf(".pelt-%d-%x", os.Getpid(), rand.Uint64()) }

// createHidden makes a file that others may read as they may any that the user makes;
// os.CreateTemp's are the user's alone.
func createHidden(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, hidden()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}
