package udp

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
)

// A buffer that was sent as one comes as one message, and is several datagrams.
func TestJoinedInbox(t *testing.T) {
	open := func() (int, *unix.SockaddrInet4) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
		a, err := unix.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		return fd, a.(*unix.SockaddrInet4)
	}
	from, _ := open()
	to, at := open()
	if err := unix.SetsockoptInt(to, unix.SOL_UDP, unix.UDP_GRO, 1); err != nil {
		t.Fatal(err)
	}
	var sent []byte
	for i := range 250 {
		sent = append(sent, byte(i))
	}
	if _, err := unix.SendmsgN(from, sent, segmentControl(100), at, 0); err != nil {
		t.Fatal(err)
	}
	in := newBatchInbox(to, 1, true, nil, engine.NewClock())
	got, err := in.receive(time.Second)
	var lengths []int
	for i, d := range got {
		lengths = append(lengths, d.bytes)
		if part := sent[i*100:][:min(d.bytes, headBytes)]; !bytes.Equal(d.head, part) {
			t.Errorf("datagram %d begins with % x, want % x", i, d.head, part)
		}
	}
	if err != nil || !slices.Equal(lengths, []int{100, 100, 50}) {
		t.Errorf("lengths %v, %v", lengths, err)
	}
}

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
		sum := 0
		for _, d := range appendParts(nil, datagram{bytes: bytes}, make([]byte, room), segment) {
			if len(d.head) > headBytes || len(d.head) > max(d.bytes, 0) {
				t.Errorf("%d of %d B are its head", len(d.head), d.bytes)
			}
			sum += d.bytes
		}
		if sum != bytes {
			t.Errorf("%d B were taken apart into %d", bytes, sum)
		}
	})
}
