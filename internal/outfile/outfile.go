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
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"pelt/words"
)

// Check reports why path could not be written, without leaving anything behind.
func Check(path string) error {
	if standard(path) != nil {
		return nil
	}
	if info, err := written(path); err == nil {
		if info.IsDir() {
			return words.Errorf("%s is a directory; want a file name", path)
		}
		if info.Mode()&fs.ModeNamedPipe != 0 {
			return nil // its reader would take the closing for the end
		}
		f, err := openInPlace(path, os.O_WRONLY)
		if err != nil {
			return words.Errorf("cannot write %s: %w", path, Cause(err))
		}
		if info.Mode().IsRegular() && !opened(path) {
			return errors.Join(f.Close(), checkDir(path))
		}
		return f.Close() // a device is written in place
	}
	return checkDir(path)
}

func checkDir(path string) error {
	t, err := openTemp(filepath.Dir(path))
	if err != nil {
		return words.Errorf("cannot write %s: %w", path, Cause(err))
	}
	return t.discard()
}

// Write makes path hold what write writes; on any error path is as it was. Where Linux lets
// a file not be replaced, only its content, that is overwritten; should this fail the error
// names the file that holds the whole. A file of this user's keeps its mode; a link is
// replaced, not followed.
func Write(path string, write func(io.Writer) error) error {
	if f := standard(path); f != nil {
		return write(f)
	}
	old, err := written(path)
	if err == nil && (!old.Mode().IsRegular() || opened(path)) {
		return writeInPlace(path, old, write)
	}
	sweep(filepath.Dir(path))
	t, err := openTemp(filepath.Dir(path))
	if err != nil {
		return words.Errorf("writing %s: %w", path, Cause(err))
	}
	if err := write(t.f); err != nil {
		return errors.Join(words.Errorf("writing %s: %w", path, Cause(err)), t.discard())
	}
	if own, err := os.Lstat(path); err == nil && own.Mode().IsRegular() && ours(own) {
		_ = t.f.Chmod(own.Mode().Perm()) // a file system that refuses this has no modes
	}
	if err := t.publish(path); err != nil {
		return words.Errorf("writing %s: %w", path, Cause(err))
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

// opened tells a link that the system keeps to what a process has open, which must stay.
func opened(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	dir := filepath.Dir(full)
	return dir == "/dev" || dir == "/dev/fd" || strings.HasPrefix(dir, "/proc/") && filepath.Base(dir) == "fd"
}

// written tells of what writing to a path would reach. A link is none, as it is replaced, but for those that the system
// keeps: who writes as root must not be led to a device.
func written(path string) (fs.FileInfo, error) {
	if opened(path) {
		return os.Stat(path)
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, fs.ErrNotExist
	}
	return info, err
}

func openInPlace(path string, how int) (*os.File, error) {
	if !opened(path) {
		how |= noFollow
	}
	return os.OpenFile(path, how, 0o644)
}

func writeInPlace(path string, old fs.FileInfo, write func(io.Writer) error) error {
	how := os.O_WRONLY
	if old.Mode().IsRegular() {
		how |= os.O_APPEND // whoever opened it may have written there
	}
	f, err := openInPlace(path, how)
	if err != nil {
		return words.Errorf("writing %s: %w", path, Cause(err))
	}
	return errors.Join(write(f), f.Close())
}

// SyncDir puts on the disk which files a directory has, where the system can do that.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // a directory that may not be read keeps its files all the same
	}
	err = d.Sync()
	// Windows
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Cause drops the path that an os error shows: the caller names the file.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Create opens a file to be written from its start on. It follows no link but the system's own to what a process has
// open: who writes as root must not be led to another file.
func Create(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 && !opened(path) {
		return nil, words.Errorf("is a symbolic link; want a file")
	}
	return openInPlace(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
}

// hidden is a name for a file that is not whole yet.
func hidden() string { return fmt.Sprintf(".pelt-%d-%x", os.Getpid(), rand.Uint64()) }

var hiddenName = regexp.MustCompile(`^\.pelt-([0-9]+)-[0-9a-f]+$`)

// sweep removes hidden files of a directory whose process was killed: its number is nobody's now, and no process
// of another container holds the file. What cannot be removed stays.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		m := hiddenName.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(m[1])
		left := err == nil && gone(pid) && hold(f)
		_ = f.Close()
		if left {
			_ = os.Remove(path)
		}
	}
}

// createHidden makes a file that others may read as they may any that the user makes;
// os.CreateTemp's are the user's alone.
func createHidden(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, hidden()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		_ = hold(f) // against the sweep of another container
	}
	return f, err
}
