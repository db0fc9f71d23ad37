package routerlog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink/nl"
)

func TestLine(t *testing.T) {
	at := time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)
	four := "4500002e12344000 3f110000 c6120001 c6130002 1388 0035 001a 0000"
	for _, c := range []struct {
		name, hex, want string
		kind            uint16
	}{
		{"UDP, IPv4", four, "IN=a OUT=b SRC=198.18.0.1 DST=198.19.0.2 LEN=46 TOS=0 TTL=63 ID=4660 DF PROTO=UDP SPT=5000 DPT=53", kindIPv4},
		{"a later fragment", "4500002e12342001 3f110000 c6120001 c6130002 1388 0035", "IN=a OUT=b SRC=198.18.0.1 DST=198.19.0.2 LEN=46 TOS=0 TTL=63 ID=4660 PROTO=UDP", kindIPv4},
		{"TCP, IPv6", "60000000 0020 06 40 20010002000000000000000000000001 20010002000000010000000000000002 1388 01bb",
			"IN=a OUT=b SRC=2001:2::1 DST=2001:2:0:1::2 LEN=32 HOPLIMIT=64 PROTO=TCP SPT=5000 DPT=443", kindIPv6},
		{"ICMPv6", "60000000 0020 3a 40 20010002000000000000000000000001 20010002000000010000000000000002 1388 01bb",
			"IN=a OUT=b SRC=2001:2::1 DST=2001:2:0:1::2 LEN=32 HOPLIMIT=64 PROTO=58", kindIPv6},
		{"cut short", four[:16], "IN=a OUT=b MACPROTO=800", kindIPv4},
		{"an IPv4 header longer than what is there", "4f00002e12344000 3f110000 c6120001 c6130002 1388", "IN=a OUT=b SRC=198.18.0.1 DST=198.19.0.2 LEN=46 TOS=0 TTL=63 ID=4660 DF PROTO=UDP", kindIPv4},
		{"ARP", "0001", "IN=a OUT=b MACPROTO=806", 0x806},
	} {
		t.Run(c.name, func(t *testing.T) {
			payload, err := hex.DecodeString(strings.ReplaceAll(c.hex, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			got := string(appendLine(nil, at, logged{in: "a", out: "b", kind: c.kind, payload: payload}))
			if want := "Nov  2 03:04:05 router kernel: " + c.want + "\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// message is what the kernel sends of one packet.
func message(attributes ...*nl.RtAttr) []byte { return messageOf(messagePacket, attributes...) }

func messageOf(kind int, attributes ...*nl.RtAttr) []byte {
	m := nl.NewNetlinkRequest(kind, 0)
	m.AddData(&nl.Nfgenmsg{})
	for _, a := range attributes {
		m.AddData(a)
	}
	return m.Serialize()
}

func TestMessages(t *testing.T) {
	word := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	first := message(nl.NewRtAttr(attrHeader, []byte{8, 0, 1, 0}), nl.NewRtAttr(attrIn, word(1)), nl.NewRtAttr(attrOut, word(2)), nl.NewRtAttr(attrNumber, word(9)), nl.NewRtAttr(attrPayload, []byte("abcde")))
	port := message(nl.NewRtAttr(attrPortIn, word(1)), nl.NewRtAttr(attrIn, word(3)), nl.NewRtAttr(attrPortOut, word(2)), nl.NewRtAttr(attrOut, word(3)))
	names := map[uint32]string{1: "one", 2: "two", 3: "bridge"}
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"two", append(append([]byte{}, first...), port...), "[one two 800 abcde 9][one two 0  0]"},
		{"one and a half", append(append([]byte{}, first...), port[:20]...), "[one two 800 abcde 9]"},
		{"another kind", messageOf(messageConfig), ""},
		{"an attribute that is cut", message(nl.NewRtAttr(attrIn, []byte{1})), "[  0  0]"},
		{"nothing", nil, ""},
	} {
		got := ""
		eachPacket(c.b, names, func(p logged) {
			got += fmt.Sprintf("[%s %s %x %s %d]", p.in, p.out, p.kind, p.payload, p.number)
		})
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(message(nl.NewRtAttr(attrHeader, []byte{8, 0, 1, 0}), nl.NewRtAttr(attrPayload, make([]byte, 40))))
	f.Add(message(nl.NewRtAttr(attrHeader, []byte{0x86, 0xdd, 1, 0}), nl.NewRtAttr(attrPayload, make([]byte, 60))))
	f.Fuzz(func(t *testing.T, b []byte) {
		packets := 0
		eachPacket(b, nil, func(p logged) {
			packets++
			if line := appendLine(nil, time.Time{}, p); line[len(line)-1] != '\n' || len(line) > 256 {
				t.Errorf("%q", line)
			}
		})
		if packets*headerBytes > len(b) {
			t.Errorf("%d packets in %d B", packets, len(b))
		}
	})
}
