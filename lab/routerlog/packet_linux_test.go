package routerlog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"

	"pelt/internal/testenv"
	"pelt/test/golden"
)

// TestLine: each line of the file is the Ethernet type of a packet and its bytes. Below stands the line of the log.
func TestLine(t *testing.T) {
	at := time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)
	golden.Table(t, "testdata/lines.txt", func(question string) string {
		word, digits, _ := strings.Cut(question, " ")
		kind, err := strconv.ParseUint(word, 16, 16)
		testenv.Must(t, err)
		payload, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		testenv.Must(t, err)
		return string(logged{in: "a", out: "b", kind: uint16(kind), payload: payload}.appendLine(nil, at))
	})
}

// attributes are those of a packet, as the kernel sends them.
func attributes(t testing.TB, add func(*netlink.AttributeEncoder)) []byte {
	t.Helper()
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = binary.BigEndian
	add(e)
	b, err := e.Encode()
	testenv.Must(t, err)
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
