package netns

import (
	"os"
	"path/filepath"
	"syscall"
)

// maxProcesses bounds how many processes Find looks at.
const maxProcesses = 4096

// places are where namespaces are found: the calling thread's; those that ip netns and container runtimes mount on a
// file; what this process holds; and those of other processes.
var places = []string{"/proc/thread-self/ns/net", "/run/netns/*", "/run/docker/netns/*", "/proc/self/fd/*",
	"/proc/[0-9]*/ns/net"}

// Find holds those of the namespaces with these inodes that it comes across. Whoever calls it closes them.
func Find(inodes map[uint64]bool) map[uint64]*Handle {
	found := map[uint64]*Handle{}
	for _, pattern := range places {
		paths, _ := filepath.Glob(pattern) // the patterns are good
		for _, path := range paths[:min(len(paths), maxProcesses)] {
			if len(found) == len(inodes) {
				return found
			}
			info, err := os.Stat(path)
			if err != nil {
				continue // it is gone, or not for this process to see
			}
			s, ok := info.Sys().(*syscall.Stat_t)
			if !ok || !inodes[s.Ino] || found[s.Ino] != nil {
				continue
			}
			h, err := Open(path)
			if err != nil {
				continue // another kind of file with the same number
			}
			if inode, err := h.Inode(); err != nil || inode != s.Ino {
				_ = h.Close() // read only
				continue
			}
			found[s.Ino] = h
		}
	}
	return found
}
