package tune

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// beside is the name under which a file's new text is written before it takes its place.
// Readers of these directories pass over names that begin with a dot.
func beside(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".pelt-new")
}

// replaceFile makes a file whole or leaves it as it was, also when the process is killed:
// then a hidden file may stay beside it, which forget removes.
func replaceFile(path, text string, mode os.FileMode) (err error) {
	temp := beside(path)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return cause(err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(cause(err), forget(path))
	}
	return syncDir(filepath.Dir(path))
}

// forget removes what a process that was killed in replaceFile left.
func forget(path string) error {
	if err := os.Remove(beside(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cause(err)
	}
	return nil
}

// syncDir makes what was created or removed in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return cause(err)
	}
	return errors.Join(d.Sync(), d.Close())
}
