//go:build !linux

package testenv

func root() bool { return false }
