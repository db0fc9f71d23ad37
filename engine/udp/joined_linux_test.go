package udp

import (
	"slices"
	"testing"
)

// A buffer that came as one message is taken apart into datagrams of a segment, the last one shorter.
func FuzzAppendParts(f *testing.F) {
	f.Add(250, 100, 65536)
	f.Add(0, 0, 64)
	f.Add(9000, 1, 64)
	f.Add(1, -5, 0)
	f.Fuzz(func(t *testing.T, bytes, segment, room int) {
		bytes, room = min(max(bytes, 0), 1<<17), min(max(room, 0), 1<<16)
		if segment > 0 && bytes/segment > 1<<12 {
			return
		}
		whole := make([]byte, room)
		for i := range whole {
			whole[i] = byte(i * 7 / 3)
		}
		sum := 0
		for _, d := range appendParts(nil, datagram{bytes: bytes}, whole, segment) {
			if from := min(sum, room); !slices.Equal(d.head, whole[from:min(from+min(headBytes, d.bytes), room)]) {
				t.Errorf("the datagram from byte %d on begins with % x", sum, d.head)
			}
			if segment > 0 && d.bytes != min(segment, bytes-sum) {
				t.Errorf("a datagram of %d B at byte %d of %d", d.bytes, sum, bytes)
			}
			sum += d.bytes
		}
		if sum != bytes {
			t.Errorf("%d B were taken apart into %d", bytes, sum)
		}
	})
}
