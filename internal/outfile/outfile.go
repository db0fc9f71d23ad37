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
	"strings"
	"syscall"
)

// Check reports why path could not be written, without leaving anything behind.
func Check(path string) error {
	if standard(path) != nil {
		return nil
	}
	at, keptLink := follow(path)
	if info, err := os.Stat(at); err == nil {
		if info.IsDir() {
			return fmt.Errorf("%s is a directory; want a file name", path)
		}
		if info.Mode()&fs.ModeNamedPipe != 0 {
			return nil // its reader would take the closing for the end
		}
		f, err := os.OpenFile(at, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", path, cause(err))
		}
		if info.Mode().IsRegular() && !keptLink {
			return errors.Join(f.Close(), checkDir(path, at))
		}
		return f.Close() // a device is written in place
	} else if keptLink {
		return fmt.Errorf("cannot write %s: %w", path, cause(err))
	}
	return checkDir(path, at)
}

func checkDir(path, at string) error {
	t, err := openTemp(filepath.Dir(at))
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, cause(err))
	}
	return t.discard()
}

// Write makes path hold what write writes; on any error path is as it was, unless only its
// content may be replaced, as of a file that is mounted by itself. A link leads to the file
// that is written, which keeps its mode.
func Write(path string, write func(io.Writer) error) error {
	if f := standard(path); f != nil {
		return write(f)
	}
	at, keptLink := follow(path)
	old, err := os.Stat(at)
	if keptLink || err == nil && !old.Mode().IsRegular() {
		return writeInPlace(path, at, write)
	}
	t, err := openTemp(filepath.Dir(at))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, cause(err))
	}
	if err := write(t.f); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, cause(err)), t.discard())
	}
	if old != nil {
		_ = keepOwner(t.f, old)          // only root may; else the file is of who writes it
		_ = t.f.Chmod(old.Mode().Perm()) // a file system that refuses this has no modes
	}
	if err := t.publish(at); err != nil {
		return fmt.Errorf("writing %s: %w", path, cause(err))
	}
	return nil
}

// standard is the open file that a path stands for: what is written to it goes on where
// this process is, and nil at any other.
func standard(path string) *os.File {
	switch filepath.Clean(path) {
	case "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return os.Stdout
	case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2":
		return os.Stderr
	}
	return nil
}

// follow finds the file that links lead to. One that the kernel or the system keeps is
// not followed, and never replaced.
func follow(path string) (at string, keptLink bool) {
	const mostLinks = 40 // as of the kernel
	at = path
	for range mostLinks {
		info, err := os.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return at, false
		}
		full, err := filepath.Abs(at)
		if err != nil || strings.HasPrefix(full, "/dev/") || strings.HasPrefix(full, "/proc/") {
			return path, true
		}
		to, err := os.Readlink(at)
		if err != nil {
			return path, true
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(at))
			if err != nil {
				return path, true
			}
			to = filepath.Join(dir, to)
		}
		at = to
	}
	return path, true // a ring of links, which no opening gets through
}

func writeInPlace(path, at string, write func(io.Writer) error) error {
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, cause(err))
	}
	return errors.Join(write(f), f.Close())
}

// overwrite replaces what path holds where the file itself cannot be replaced: it is
// mounted by itself, or another's in a directory like /tmp. why is what renaming said.
func overwrite(path string, from *os.File, why error) error {
	if !errors.Is(why, fs.ErrPermission) && !errors.Is(why, syscall.EBUSY) {
		return why
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return errors.Join(why, err)
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return errors.Join(why, err)
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Sync(), to.Close())
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
	return os.OpenFile(filepath.Join(dir, hidden()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
}
