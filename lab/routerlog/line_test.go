package routerlog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"
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
func message(attributes ...attribute) []byte {
	b := request(7, attributes...)
	binary.NativeEndian.PutUint16(b[4:], messagePacket)
	return b
}

func TestMessages(t *testing.T) {
	word := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	first := message(attribute{attrHeader, []byte{8, 0, 1, 0}}, attribute{attrIn, word(1)}, attribute{attrOut, word(2)}, attribute{attrNumber, word(9)}, attribute{attrPayload, []byte("abcde")})
	port := message(attribute{attrPortIn, word(1)}, attribute{attrIn, word(3)}, attribute{attrPortOut, word(2)}, attribute{attrOut, word(3)})
	names := map[uint32]string{1: "one", 2: "two", 3: "bridge"}
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"two", append(append([]byte{}, first...), port...), "[one two 800 abcde 9][one two 0  0]"},
		{"one and a half", append(append([]byte{}, first...), port[:20]...), "[one two 800 abcde 9]"},
		{"another kind", request(7), ""},
		{"an attribute that is cut", message(attribute{attrIn, []byte{1}}), "[  0  0]"},
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
	f.Add(message(attribute{attrHeader, []byte{8, 0, 1, 0}}, attribute{attrPayload, make([]byte, 40)}))
	f.Add(message(attribute{attrHeader, []byte{0x86, 0xdd, 1, 0}}, attribute{attrPayload, make([]byte, 60)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		packets := 0
		eachPacket(b, nil, func(p logged) {
			packets++
			if line := appendLine(nil, time.Time{}, p); line[len(line)-1] != '\n' || len(line) > 256 {
				t.Errorf("%q", line)
			}
		})
		if packets*netlinkHeader > len(b) {
			t.Errorf("%d packets in %d B", packets, len(b))
		}
	})
}

func TestTail(t *testing.T) {
	var kept tail
	if got := kept.text(); len(got) != 0 {
		t.Errorf("%q at first", got)
	}
	wrote := ""
	for i := range 10_000 {
		line := fmt.Sprintf("line %d\n", i)
		kept.add([]byte(line))
		wrote += line
		if got := string(kept.text()); i%997 == 0 && (!strings.HasSuffix(wrote, got) || len(got) < min(len(wrote), tailBytes-len(line)) || !strings.HasPrefix(got, "line ")) {
			t.Fatalf("after %d lines %d B are kept: %.40q...", i+1, len(got), got)
		}
	}
}
