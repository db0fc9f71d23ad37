package netbed

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// Marks looks at IPv4 packets of a protocol that come to the calling thread's namespace. What it returns counts those
// from or to a port, by their TOS byte.
func Marks(t testing.TB, protocol int) func(port uint16) map[byte]int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func(port uint16) map[byte]int {
		counts, b := map[byte]int{}, make([]byte, 1<<16)
		for {
			n, _, err := unix.Recvfrom(fd, b, 0)
			if err != nil {
				return counts
			}
			if head := int(b[0]&15) * 4; n >= head+4 &&
				(binary.BigEndian.Uint16(b[head:]) == port || binary.BigEndian.Uint16(b[head+2:]) == port) {
				counts[b[1]]++
			}
		}
	}
}
