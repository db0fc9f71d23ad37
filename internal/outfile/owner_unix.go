//go:build unix

package outfile

import (
	"io/fs"
	"os"
	"syscall"
)

// onlyFiles keeps an opening from links, and from waiting for a pipe's other end.
const onlyFiles = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// ours tells whether a file is this user's.
func ours(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
