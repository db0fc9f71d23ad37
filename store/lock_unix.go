//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package store

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// openLocked opens a file that no other process holds open this way. The lock
// dies with the process. On a file system without locks there is none.
func openLocked(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	for range lockTries {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return f, nil
		}
		time.Sleep(lockPause)
	}
	if flag&os.O_CREATE != 0 {
		err = os.Remove(path)
	} else {
		err = nil
	}
	return nil, errors.Join(ErrBusy, err, f.Close())
}

// closeLocked closes a file and ends its lock, which a process that was forked just now would keep until its exec.
func closeLocked(f *os.File) error {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	return f.Close()
}

// A busy check of another process holds the lock for an instant: that is no reason to refuse.
const (
	lockTries = 20
	lockPause = 5 * time.Millisecond
)

// busy reports whether a process is writing the run in a file.
func busy(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK)
}
