// Package netns makes and enters unnamed Linux network namespaces.
//
// Functions come in and run on a thread that is inside a namespace; their
// errors go out. A namespace lives as long as something holds it: a Handle, a
// socket or a process in it. The package never gives a namespace a name in the
// file system and never lets a thread of the wrong namespace return to the Go
// scheduler. On systems other than Linux everything fails with
// errors.ErrUnsupported.
package netns

import (
	"fmt"
	"os"
	"runtime"
)

// Handle holds one network namespace by a file descriptor that is closed on
// exec. Its methods may be called concurrently.
type Handle struct {
	file *os.File
}

// Do runs f on a thread of its own inside the namespace and returns f's error.
// Sockets that f opens stay in the namespace wherever they are used later.
// Goroutines that f starts run anywhere, usually outside of it. If f calls
// runtime.Goexit, so does Do. f must not unlock its thread.
func (h *Handle) Do(f func() error) error {
	return onThread(func() error {
		return within(h, f)
	})
}

// File returns the held file for passing to a child process or another process.
// It belongs to the handle: do not close it.
func (h *Handle) File() *os.File { return h.file }

// Close lets go of the namespace. A function still running inside is not disturbed.
func (h *Handle) Close() error { return h.file.Close() }

// onThread runs f on a fresh goroutine locked to its thread. f unlocks the
// thread if it left it as it was; a thread that stays locked ends with the
// goroutine.
func onThread(f func() error) (err error) {
	returned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		err = f()
		returned = true
	}()
	<-done
	if !returned {
		runtime.Goexit()
	}
	return err
}

func opError(doing string, err error) error { return fmt.Errorf("%s: %w", doing, err) }
