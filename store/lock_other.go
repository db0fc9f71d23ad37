//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package store

import "os"

// openLocked opens a file; this system has no lock that dies with the process.
func openLocked(path string, flag int) (*os.File, error) { return os.OpenFile(path, flag, 0o600) }

func busy(string) bool { return false }

func closeLocked(f *os.File) error { return f.Close() }
