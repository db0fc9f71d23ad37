package routerlog

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the kernel could not send is known from the numbers of what it could.
func TestCountsMissed(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	l := &Log{socket: pair[0], names: map[uint32]string{7: "lan"}, done: make(chan struct{})}
	if l.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	l.begin()
	for _, number := range []uint32{2, 3, 4, 10} {
		b := message(attribute{attrIn, binary.BigEndian.AppendUint32(nil, 7)}, attribute{attrNumber, binary.BigEndian.AppendUint32(nil, number)})
		if _, err := unix.Write(pair[1], b); err != nil {
			t.Fatal(err)
		}
	}
	for began := time.Now(); l.Counts().Lines < 4 && time.Since(began) < 5*time.Second; {
		_, _ = unix.Poll(nil, 1)
	}
	if got, want := l.Counts(), (Counts{Lines: 4, Missed: 7}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil || strings.Count(text.String(), "IN=lan OUT=") != 4 {
		t.Errorf("%q, %v", text.String(), err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
