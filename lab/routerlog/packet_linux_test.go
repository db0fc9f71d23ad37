package routerlog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
)

func TestLine(t *testing.T) {
	at := time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)
	four := "4500002e12344000 3f110000 c6120001 c6130002 1388 0035 001a 0000"
	for _, c := range []struct {
		name, hex, want string
		kind            uint16
	}{
		{"UDP, IPv4", four,
			"IN=a OUT=b SRC=198.18.0.1 DST=198.19.0.2 LEN=46 TOS=0 TTL=63 ID=4660 DF PROTO=UDP SPT=5000 DPT=53",
			kindIPv4},
		{"a later fragment", "4500002e12342001 3f110000 c6120001 c6130002 1388 0035",
			"IN=a OUT=b SRC=198.18.0.1 DST=198.19.0.2 LEN=46 TOS=0 TTL=63 ID=4660 PROTO=UDP", kindIPv4},
		{"TCP, IPv6", "60000000 0020 06 40 20010002000000000000000000000001 20010002000000010000000000000002 1388 01bb",
			"IN=a OUT=b SRC=2001:2::1 DST=2001:2:0:1::2 LEN=32 HOPLIMIT=64 PROTO=TCP SPT=5000 DPT=443", kindIPv6},
		{"ICMPv6", "60000000 0020 3a 40 20010002000000000000000000000001 20010002000000010000000000000002 1388 01bb",
			"IN=a OUT=b SRC=2001:2::1 DST=2001:2:0:1::2 LEN=32 HOPLIMIT=64 PROTO=58", kindIPv6},
		{"cut short", four[:16], "IN=a OUT=b MACPROTO=800", kindIPv4},
		{"an IPv4 header longer than what is there", "4f00002e12344000 3f110000 c6120001 c6130002 1388",
			"IN=a OUT=b SRC=198.18.0.1 DST=198.19.0.2 LEN=46 TOS=0 TTL=63 ID=4660 DF PROTO=UDP", kindIPv4},
		{"ARP", "0001", "IN=a OUT=b MACPROTO=806", 0x806},
	} {
		t.Run(c.name, func(t *testing.T) {
			payload, err := hex.DecodeString(strings.ReplaceAll(c.hex, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			got := string(logged{in: "a", out: "b", kind: c.kind, payload: payload}.appendLine(nil, at))
			if want := "Nov  2 03:04:05 router kernel: " + c.want + "\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// attributes are those of a packet, as the kernel sends them.
func attributes(t testing.TB, add func(*netlink.AttributeEncoder)) []byte {
	t.Helper()
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = binary.BigEndian
	add(e)
	b, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParsePacket(t *testing.T) {
	names := map[uint32]string{1: "one", 2: "two", 3: "bridge"}
	routed := attributes(t, func(e *netlink.AttributeEncoder) {
		e.Bytes(attrHeader, []byte{8, 0, 1, 0})
		e.Uint32(attrIn, 1)
		e.Uint32(attrOut, 2)
		e.Uint32(attrNumber, 9)
		e.Bytes(attrPayload, []byte("abcde"))
	})
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"routed", routed, "[one two 800 abcde 9]"},
		{"bridged", attributes(t, func(e *netlink.AttributeEncoder) {
			e.Uint32(attrPortIn, 1)
			e.Uint32(attrIn, 3)
			e.Uint32(attrPortOut, 2)
			e.Uint32(attrOut, 3)
		}), "[one two 0  0]"},
		{"an attribute that is cut", attributes(t, func(e *netlink.AttributeEncoder) { e.Uint8(attrIn, 1) }),
			"[  0  0]"},
		{"half", routed[:len(routed)-4], "[one two 800  9]"},
		{"nothing", nil, "[  0  0]"},
	} {
		p := parsePacket(c.b, names)
		if got := fmt.Sprintf("[%s %s %x %s %d]", p.in, p.out, p.kind, p.payload, p.number); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// What the kernel could not send is known from the numbers of what it could.
func TestCountsMissed(t *testing.T) {
	l := &Log{}
	for _, number := range []uint32{2, 3, 4, 10} {
		l.write(logged{in: "lan", number: number, numbered: true}, time.Time{})
	}
	if got, want := l.Counts(), (Counts{Lines: 4, Missed: 7}); got != want ||
		strings.Count(string(l.kept), "IN=lan OUT=") != 4 {
		t.Errorf("%+v, want %+v; %q", got, want, l.kept)
	}
}

func FuzzParsePacket(f *testing.F) {
	for _, kind := range [][]byte{{8, 0, 1, 0}, {0x86, 0xdd, 1, 0}} {
		f.Add(attributes(f, func(e *netlink.AttributeEncoder) {
			e.Bytes(attrHeader, kind)
			e.Bytes(attrPayload, make([]byte, 60))
		}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if line := parsePacket(b, nil).appendLine(nil, time.Time{}); line[len(line)-1] != '\n' || len(line) > 256 {
			t.Errorf("%q", line)
		}
	})
}
