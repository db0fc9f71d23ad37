package outfile

import (
	"io/fs"
	"os"
)

// ours is false: the modes of files are of other systems.
func ours(fs.FileInfo) bool { return false }

const noFollow = 0

// gone tells whether there is no process of a number.
func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	if err == nil {
		_ = p.Release()
	}
	return err != nil
}

// hold is of other systems: here a file that is in use cannot be removed.
func hold(*os.File) bool { return true }
