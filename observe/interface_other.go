//go:build !linux

package observe

func driver(string) (driver string, speedBits uint64) { return "", 0 }
