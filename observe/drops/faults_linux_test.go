//go:build amd64 || arm64

package drops

import (
	"fmt"
	"net/netip"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// slowReader keeps a tenth of what is sent in its socket.
var slowReader = []netbed.Option{netbed.With(unix.SOL_SOCKET, unix.SO_RCVBUF, 20_000)}

// wide is a socket that any test's packets have room in.
var wide = netbed.With(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)

// named wants a verdict on each of the lost packets, but for those that this machine may hide.
func named(t *testing.T, lost, unseen uint64) {
	t.Helper()
	if unseen > 0 {
		t.Logf("%d of %d lost packets without a verdict", unseen, lost)
	}
	if most := min(hidden, lost/3); unseen > most {
		t.Errorf("%d of %d lost packets have no verdict; want at most %d", unseen, lost, most)
	}
}

func matches(pattern, s string) bool { return regexp.MustCompile("^(" + pattern + ")$").MatchString(s) }

// A packet is known inside of that of a tunnel, also where another machine made that. Neither end of these is here.
func TestPacketsInTunnels(t *testing.T) {
	const n = 1000
	const from = 20000
	in := map[string]func(inner []byte) []byte{
		"NO_SOCKET": func(inner []byte) []byte { // VXLAN
			return netbed.Datagram(from, 4789, 0, append(make([]byte, 8+14), inner...))
		},
		"IP_NOPROTO": func(inner []byte) []byte { // IP in IP
			outer := netbed.Datagram(0, 0, 0, nil)[:20]
			outer[9] = unix.IPPROTO_IPIP
			return append(outer, inner...)
		},
	}
	for reason, tunnel := range in {
		t.Run(reason, func(t *testing.T) {
			b := netbed.New(t, 1, false)
			track(t, machine(t), testTrial, "up", TrackOptions{}, model.Tuple{From: from, To: testPort})
			for q := range uint64(n) {
				payload := make([]byte, 64)
				header(payload, testTrial, q)
				b.Sender.SendRaw(tunnel(netbed.Datagram(from, testPort, 0, payload)))
			}
			said := verdicts(t, collect(t, machine(t), testTrial), "up", 0)
			sameAs(t, said, map[uint64]int{}, n, reason)
			for _, s := range said {
				if s.Namespace != b.Receiver.ID() || s.Interface != "vb" {
					t.Fatalf("%+v", s)
				}
			}
		})
	}
}

// What a socket holds when it is closed was lost in no namespace.
func TestCloseUnread(t *testing.T) {
	b := netbed.New(t, 1, false)
	at := netip.AddrPortFrom(netbed.Address(false, 2), testPort)
	unread := b.Receiver.Open(false, wide, netbed.Bound(at))
	from := b.Sender.Open(false, netbed.Connected(at))
	track(t, machine(t), testTrial, "up", TrackOptions{}, model.Tuple{From: from.Port, To: testPort})
	send(t, from, testTrial, 0, 1000, 64)
	last, same := -1, 0
	// their memory is that of 1000 equal buffers, and stays so
	testenv.Await(t, "1000 packets in the queue", func() bool {
		now := held(t, unread)
		if now != last {
			last, same = now, 0
		}
		same++
		return now%1000 == 0 && now/1000 > 256 && same > 10
	})
	// It closes, and its number stays taken: it is closed once more at the end, when it could be another file's.
	b.Receiver.Must(func() error { return unix.Dup3(from.FD, unread.FD, unix.O_CLOEXEC) })
	awaitVerdicts(t, 1000)
	said := verdicts(t, collect(t, machine(t), testTrial), "up", 0)
	sameAs(t, said, map[uint64]int{}, 1000, "NOT_SPECIFIED|SOCKET_CLOSE")
	for _, s := range said {
		if s.Namespace != 0 || s.Interface != "" || !s.Received ||
			!matches(".*udp.*destruct.*|inet_sock_destruct", s.Function) {
			t.Fatalf("%+v", s)
		}
	}
}

// awaitVerdicts waits until the kernel has told of so many packets.
func awaitVerdicts(t testing.TB, n uint64) {
	t.Helper()
	testenv.Await(t, fmt.Sprintf("%d verdicts", n), func() bool {
		d, err := machine(t).Collect(testTrial, true)
		testenv.Must(t, err)
		var sum uint64
		for _, c := range d.Flows[0].Counts {
			sum += c.Packets
		}
		return sum >= n
	})
}
