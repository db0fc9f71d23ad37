//go:build !linux

package observe

// TCPSettings is for Linux: nil.
func TCPSettings() map[string]string { return nil }
