package routerlog

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What the kernel could not send is known from the numbers of what it could.
func TestCountsMissed(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	l := begin(os.NewFile(uintptr(pair[0]), "log"), map[uint32]string{7: "lan"})
	for _, number := range []uint32{2, 3, 4, 10} {
		b := message(nl.NewRtAttr(attrIn, binary.BigEndian.AppendUint32(nil, 7)), nl.NewRtAttr(attrNumber, binary.BigEndian.AppendUint32(nil, number)))
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
	if err := l.Close(); err != nil || strings.Count(string(l.kept), "IN=lan OUT=") != 4 {
		t.Errorf("%q, %v", l.kept, err)
	}
}
