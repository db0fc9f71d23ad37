package tcp

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine/enginetest"
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

// A connection that is refused is told in one line, with the port to open.
func TestRefused(t *testing.T) {
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, flow(1, 64, false), timing(0, time.Minute, 0))
	port := p.sender.Order.Ports[0]
	p.receiver.Close() // with the port
	err := p.sender.Connect(t.Context())
	want := fmt.Sprintf("%v, TCP port %d: refused, though pelt listens there: a firewall there or on the way does that; "+
		"let TCP port %[2]d in", netip.MustParseAddr("127.0.0.1"), port)
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
