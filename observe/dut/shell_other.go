//go:build !linux

package dut

import (
	"os"
	"os/exec"
)

// diesWithThread does nothing here: the child ends when its input does.
func diesWithThread(*exec.Cmd) {}

// terminal reports whether a person is there. Only a file or a pipe is surely none.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
