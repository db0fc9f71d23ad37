package outfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"pelt/words"
)

// temp is a file without a name where the file system can (O_TMPFILE), so that
// a killed process leaves nothing.
type temp struct {
	f    *os.File
	name string // "" while it has none
}

func openTemp(dir string) (*temp, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
	if err == nil {
		return &temp{f: os.NewFile(uintptr(fd), dir)}, nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) {
		return nil, err
	}
	f, err := createHidden(dir)
	if err != nil {
		return nil, err
	}
	return &temp{f: f, name: f.Name()}, nil
}

func (t *temp) discard() error {
	err := t.f.Close()
	if t.name != "" {
		err = errors.Join(err, os.Remove(t.name))
	}
	return err
}

func (t *temp) publish(path string) error {
	if err := t.f.Sync(); err != nil {
		return errors.Join(err, t.discard())
	}
	from := fmt.Sprintf("/proc/self/fd/%d", t.f.Fd())
	if t.name == "" {
		err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
		if err == nil {
			return t.f.Close()
		}
		// linkat does not replace: give it a name beside the old file, then rename over it.
		_ = hold(t.f) // against the sweep of another container
		t.name = filepath.Join(filepath.Dir(path), hidden())
		if err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, t.name, unix.AT_SYMLINK_FOLLOW); err != nil {
			t.name = ""
			return errors.Join(err, t.discard())
		}
	}
	if err := os.Rename(t.name, path); err != nil {
		touched, err := t.overwrite(path, err)
		if touched && err != nil {
			return errors.Join(words.Errorf("%w; all of it is in %s", err, t.name), t.f.Close())
		}
		return errors.Join(err, t.discard())
	}
	return t.f.Close()
}

// overwrite replaces what path holds where the file itself cannot be replaced: it is
// mounted by itself, or another's in a directory like /tmp. why is what renaming said.
// touched is false while path is as it was.
func (t *temp) overwrite(path string, why error) (touched bool, err error) {
	if !errors.Is(why, fs.ErrPermission) && !errors.Is(why, unix.EBUSY) {
		return false, why
	}
	// No link, and no pipe whose other end is to be waited for.
	to, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, errors.Join(why, err)
	}
	if info, err := to.Stat(); err != nil || !info.Mode().IsRegular() {
		return false, errors.Join(why, err, to.Close())
	}
	_, err = t.f.Seek(0, io.SeekStart)
	if err == nil {
		err = to.Truncate(0)
	}
	if err == nil {
		_, err = io.Copy(to, t.f)
	}
	return true, errors.Join(err, to.Sync(), to.Close())
}
