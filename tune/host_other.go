//go:build !linux

package tune

import "os"

func kernelFile(string) bool  { return false }
func noDevice(error) bool     { return false }
func noSetting(error) bool    { return false }
func lockFile(*os.File) error { return ErrLinux }
func rights() error           { return ErrLinux }
func namespace() uint64       { return 0 }
func boot() string            { return "" }
