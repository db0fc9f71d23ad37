//go:build unix

package outfile

import (
	"io/fs"
	"os"
	"syscall"
)

// ours tells whether a file is this user's.
func ours(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
