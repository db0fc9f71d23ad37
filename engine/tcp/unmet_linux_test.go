package tcp

import (
	"context"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine/enginetest"
	"pelt/model"
)

// A port that answers no SYN: both ends say on which streams they have not met, and the dialing one how many SYNs left.
func TestNoAnswer(t *testing.T) {
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, flow(2, 64, false), timing(0, time.Minute, 0))
	o := p.sender.Order
	o.Ports = []uint16{mute(t), mute(t)}
	caller, err := prepare(t, New(Config{}), enginetest.Here{}, o)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		end  testEnd
		sent []uint64
	}{"caller": {caller, []uint64{1, 0}}, "listener": {p.receiver, []uint64{0, 0}}} { // the second stream waits for the first
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		met, err := c.end.End.End.Connect(ctx)
		if err != nil || len(met.Streams) != 2 {
			t.Fatalf("%s: %+v, %v", name, met, err)
		}
		for i, s := range met.Streams {
			if s.Met || s.Sent != c.sent[i] || name == "caller" && s.Remote.Port() != o.Ports[i] {
				t.Errorf("%s: stream %d: %+v, want %d sent", name, i, s, c.sent[i])
			}
		}
	}
}

// mute is a port whose host lets SYNs lie, because nobody takes the connections that are there.
func mute(t *testing.T) uint16 {
	at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	open := func() int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	l := open()
	if err := unix.Bind(l, at); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(l, 0); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(l)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // one more than it keeps
		if err := unix.Connect(open(), bound); err != nil && err != unix.EINPROGRESS {
			t.Fatal(err)
		}
	}
	return uint16(bound.(*unix.SockaddrInet4).Port)
}

// Of a connection that is refused the meeting says so, once.
func TestRefused(t *testing.T) {
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, flow(2, 64, false), timing(0, time.Minute, 0))
	p.receiver.Close() // with the port
	met, err := p.sender.End.End.Connect(t.Context())
	want := []model.ICMPErrors{{From: "127.0.0.1", What: "connection refused", Packets: 1}}
	if err != nil || !slices.Equal(met.ICMP, want) || met.Streams[0].Met || met.Streams[0].Sent != 1 || met.Streams[1].Sent != 0 {
		t.Errorf("%+v, %v; want %+v", met, err, want)
	}
}
