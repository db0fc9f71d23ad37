//go:build !linux

package privilege

// Drop does nothing here.
func Drop() error { return nil }
