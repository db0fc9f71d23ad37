package store

import (
	"errors"
	"os"
	"syscall"
)

// errSharing is ERROR_SHARING_VIOLATION of winerror.h.
const errSharing = syscall.Errno(32)

// shareDelete is FILE_SHARE_DELETE of winnt.h: who holds a file may delete it.
const shareDelete = 4

// openLocked opens a file for writing that others may only read: Windows then
// refuses a second writer until this one has closed it or died.
func openLocked(path string, flag int) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	how := uint32(syscall.OPEN_EXISTING)
	if flag&os.O_CREATE != 0 {
		how = syscall.CREATE_NEW
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE,
		syscall.FILE_SHARE_READ|shareDelete, nil, how, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharing) {
		return nil, ErrBusy
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// busy reports whether a process is writing the run in a file.
func busy(path string) bool {
	f, err := openLocked(path, os.O_RDWR)
	if err != nil {
		return errors.Is(err, ErrBusy)
	}
	_ = f.Close()
	return false
}

func closeLocked(f *os.File) error { return f.Close() }
