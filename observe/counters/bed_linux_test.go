package counters

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
)

const (
	some     = 200 // packets
	testPort = 9077
)

// wire is a bed whose ends are read. What each fault moves, package drops holds beside its verdicts.
type wire struct {
	*netbed.Bed
	sender, receiver *Reader
}

func newWire(t testing.TB, queues int) *wire {
	t.Helper()
	w := &wire{Bed: netbed.New(t, queues, false)}
	for n, r := range map[*netbed.Node]**Reader{w.Sender: &w.sender, w.Receiver: &w.receiver} {
		var err error
		if *r, err = Open(n.Do); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// settle reads both ends once nothing moves.
func (w *wire) settle(t testing.TB) (sender, receiver Snapshot) {
	t.Helper()
	for r, s := range map[*Reader]*Snapshot{w.sender: &sender, w.receiver: &receiver} {
		if !Settle(context.Background(), 10*time.Millisecond, false,
			func() (Snapshot, bool) { *s = r.Read(); return *s, true }) {
			t.Fatal("the namespace never stood still")
		}
		if len(s.Unread) > 0 {
			t.Errorf("could not read: %v", s.Unread)
		}
	}
	return sender, receiver
}

// moved runs f and tells by how much counters moved at both ends, by name.
func (w *wire) moved(t testing.TB, f func()) (sender, receiver map[string]uint64) {
	t.Helper()
	s1, r1 := w.settle(t)
	f()
	s2, r2 := w.settle(t)
	by := func(from, to Snapshot) map[string]uint64 {
		moved := map[string]uint64{}
		for _, c := range Diff(Snapshot{}, from, Snapshot{}, to, 0) {
			if moved[c.Name] = c.Whole; c.Reset {
				t.Errorf("went back: %+v", c)
			}
		}
		return moved
	}
	return by(s1, s2), by(r1, r2)
}

// send sends small datagrams, to the receiver's port or elsewhere, and returns how many were refused with which error.
func (w *wire) send(t testing.TB, to netip.AddrPort, options ...netbed.Option) (refused map[error]uint64) {
	t.Helper()
	s := w.Sender.Open(false, options...)
	refused = map[error]uint64{}
	for range some {
		if err := unix.Sendto(s.FD, make([]byte, 64), 0, netbed.Sockaddr(to)); err != nil {
			refused[err]++
		}
	}
	return refused
}

var receiverPort = netip.AddrPortFrom(netbed.Address(false, 2), testPort)

// drain reads a socket empty.
func drain(t testing.TB, s netbed.Socket) (n uint64) {
	t.Helper()
	for b := make([]byte, 2000); ; n++ {
		if _, _, err := unix.Recvfrom(s.FD, b, unix.MSG_DONTWAIT); errors.Is(err, unix.EAGAIN) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// sum is the value of all readings with a name.
func sum(s Snapshot, name string) (n uint64, there bool) {
	for _, r := range s.readings {
		if r.name == name {
			n, there = n+r.value, true
		}
	}
	return n, there
}

// The packets of an AF_INET6 socket that takes IPv4 count in Udp.
func TestReceiveBufferOfASocketForBoth(t *testing.T) {
	w := newWire(t, 1)
	in := w.Receiver.Open(true, netbed.With(unix.SOL_SOCKET, unix.SO_RCVBUF, 4096),
		netbed.Bound(netip.AddrPortFrom(netip.IPv6Unspecified(), testPort)))
	received := uint64(0)
	_, b := w.moved(t, func() {
		w.send(t, receiverPort)
		w.settle(t)
		received = drain(t, in)
	})
	lost := some - received
	if received == 0 || lost == 0 || b["Udp.InDatagrams"] != received || b["Udp.RcvbufErrors"] != lost {
		t.Errorf("%d of %d received: %v", received, some, b)
	}
}

// mq has the sum of its children; theirs are not counted again.
func TestQueueUnderMQ(t *testing.T) {
	w := newWire(t, 2)
	w.Sender.Link("va", func(l netlink.Link) error {
		return netlink.QdiscAdd(&netlink.GenericQdisc{QdiscType: "mq", QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT,
		}})
	})
	for queue := range uint16(2) {
		w.Sender.TBF("va", netlink.MakeHandle(1, queue+1), 100_000, 3000)
	}
	w.Receiver.Open(false, netbed.Bound(receiverPort)) // else it answers
	refused := uint64(0)
	a, _ := w.moved(t, func() {
		refused = w.send(t, receiverPort,
			netbed.With(unix.SOL_IP, unix.IP_RECVERR, 1))[unix.ENOBUFS]
	})
	if refused == 0 || a["qdisc.va.mq.1:.drops"] != refused || a["Ip.OutDiscards"] != refused ||
		a["Udp.OutDatagrams"] != some-refused {
		t.Errorf("%d refused: %v", refused, a)
	}
	for name, n := range a {
		if strings.Contains(name, "tbf") && n > 0 {
			t.Errorf("%s moved by %d", name, n)
		}
	}
}
