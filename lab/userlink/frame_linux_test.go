package userlink

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"pelt/internal/checksum"
)

// buffer makes a buffer of segments as a kernel hands it to a TAP.
func buffer(t *rapid.T) (buf []byte, six, tcp bool, payload []byte) {
	six, tcp = rapid.Bool().Draw(t, "IPv6"), rapid.Bool().Draw(t, "TCP")
	gso := rapid.IntRange(1, 200).Draw(t, "segment")
	payload = rapid.SliceOfN(rapid.Byte(), gso+1, 2000).Draw(t, "payload")
	var head []byte
	if rapid.Bool().Draw(t, "VLAN") {
		head = append(make([]byte, 12), 0x81, 0, 0, 7)
	} else {
		head = make([]byte, 12)
	}
	transport := make([]byte, udpBytes)
	kind, offset := byte(gsoUDP), 6
	protocol := byte(protocolUDP)
	if tcp {
		transport = make([]byte, tcpLeastBytes+4*rapid.IntRange(0, 10).Draw(t, "options"))
		transport[12] = byte(len(transport) / 4 << 4)
		transport[13] = rapid.Byte().Draw(t, "flags")
		binary.BigEndian.PutUint32(transport[4:], rapid.Uint32().Draw(t, "sequence"))
		kind, offset, protocol = gsoTCP4, 16, protocolTCP
	}
	binary.BigEndian.PutUint16(transport, 1234)
	var ip []byte
	if six {
		ip = make([]byte, ip6Bytes)
		ip[0], ip[6], ip[7] = 0x60, protocol, 64
		copy(ip[8:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "addresses"))
		head = append(head, 0x86, 0xdd)
		if tcp {
			kind = gsoTCP6
		}
	} else {
		ip = make([]byte, ip4Bytes+4*rapid.IntRange(0, 3).Draw(t, "IP options"))
		ip[0], ip[8], ip[9] = 0x40|byte(len(ip)/4), 64, protocol
		binary.BigEndian.PutUint16(ip[4:], rapid.Uint16().Draw(t, "id"))
		copy(ip[12:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "addresses"))
		head = append(head, 0x08, 0x00)
	}
	start := len(head) + len(ip)
	vnet := make([]byte, vnetBytes)
	vnet[0], vnet[1] = needsChecksum, kind
	if tcp && rapid.Bool().Draw(t, "ECN") {
		vnet[1] |= gsoECN
	}
	binary.NativeEndian.PutUint16(vnet[4:], uint16(gso))
	binary.NativeEndian.PutUint16(vnet[6:], uint16(start))
	binary.NativeEndian.PutUint16(vnet[8:], uint16(offset))
	return bytes.Join([][]byte{vnet, head, ip, transport, payload}, nil), six, tcp, payload
}

// check wants a frame that a receiver takes, and returns its payload.
func check(t *rapid.T, out []byte, six, tcp bool) []byte {
	flip(out, 8*len(out)) // completes the checksum, and turns nothing
	f := out[vnetBytes:]
	start := int(binary.NativeEndian.Uint16(out[6:]))
	at := 14
	if f[12] == 0x81 {
		at = 18
	}
	var pseudo uint32
	if six {
		if got := int(binary.BigEndian.Uint16(f[at+4:])); got != len(f)-at-ip6Bytes {
			t.Fatalf("the IPv6 header says %d B of %d", got, len(f)-at-ip6Bytes)
		}
		pseudo = checksum.Words(f[at+8 : at+40])
	} else {
		if got := int(binary.BigEndian.Uint16(f[at+2:])); got != len(f)-at {
			t.Fatalf("the IPv4 header says %d B of %d", got, len(f)-at)
		}
		if checksum.Fold(checksum.Words(f[at:start])) != 0xffff {
			t.Fatal("a wrong IPv4 checksum")
		}
		pseudo = checksum.Words(f[at+12 : at+20])
	}
	protocol := uint32(protocolUDP)
	headers := start + udpBytes
	if tcp {
		protocol, headers = protocolTCP, start+int(f[start+12]>>4)*4
	} else if got := int(binary.BigEndian.Uint16(f[start+4:])); got != len(f)-start {
		t.Fatalf("the UDP header says %d B of %d", got, len(f)-start)
	}
	if checksum.Fold(pseudo+protocol+uint32(len(f)-start)+checksum.Words(f[start:])) != 0xffff {
		t.Fatal("a wrong transport checksum")
	}
	return f[headers:]
}

// However a buffer of segments is parted, its parts are frames of their own and
// hold its payload.
func TestPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buf, six, tcp, payload := buffer(t)
		k := parse(bytes.Clone(buf))
		n := k.segments()
		gso := int(binary.NativeEndian.Uint16(buf[4:]))
		if want := (len(payload) + gso - 1) / gso; n != want {
			t.Fatalf("%d segments, want %d", n, want)
		}
		sequence := func(f []byte) uint32 { return binary.BigEndian.Uint32(f[vnetBytes+k.checkAt+4:]) }
		var got []byte
		wire := 0
		for from := 0; from < n; {
			to := rapid.IntRange(from+1, n).Draw(t, "to")
			out := make([]byte, k.partBytes(from, to))
			k.part(out, from, to)
			if to-from == 1 != (out[1] == gsoNone) {
				t.Fatalf("segments %d to %d are of kind %d", from, to, out[1])
			}
			if tcp && sequence(out) != sequence(buf)+uint32(len(got)) {
				t.Fatalf("segment %d has sequence %d, the first %d", from, sequence(out), sequence(buf))
			}
			if tcp {
				if flags := out[vnetBytes+k.checkAt+13]; to < n && flags&0x09 != 0 || from > 0 && flags&0x80 != 0 {
					t.Fatalf("segments %d to %d of %d have the flags %#x", from, to, n, flags)
				}
			}
			if out[1] == gsoNone && len(out)-vnetBytes != k.segmentBytes(from) {
				t.Fatalf("segment %d has %d B, %d were said", from, len(out)-vnetBytes, k.segmentBytes(from))
			}
			got = append(got, check(t, out, six, tcp)...)
			from = to
		}
		for i := range n {
			wire += k.segmentBytes(i)
		}
		if !bytes.Equal(got, payload) || wire != n*k.headers+len(payload) {
			t.Fatalf("%d B of payload became %d, in %d B on the wire", len(payload), len(got), wire)
		}
	})
}

func TestFlip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buf, six, tcp, _ := buffer(t)
		k := parse(buf)
		out := make([]byte, k.partBytes(0, 1))
		k.part(out, 0, 1)
		whole := bytes.Clone(out)
		check(t, whole, six, tcp)
		bit := rapid.IntRange(0, 8*(len(out)-vnetBytes)-1).Draw(t, "bit")
		flip(out, bit)
		whole[vnetBytes+bit/8] ^= 1 << (bit % 8)
		if !bytes.Equal(out, whole) {
			t.Fatalf("bit %d: %x, want %x", bit, out, whole)
		}
	})
}

// Whatever a kernel hands over, nothing falls out of it.
func FuzzParse(f *testing.F) {
	f.Add(bytes.Repeat([]byte{1}, 100))
	f.Add(append([]byte{1, 1, 54, 0, 100, 0, 34, 0, 16, 0}, bytes.Repeat([]byte{8, 0, 0x45}, 60)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < vnetBytes+etherBytes || len(b) > longest {
			return
		}
		k := parse(b)
		n := k.segments()
		if n < 1 || n > 65536 {
			t.Fatalf("%d segments", n)
		}
		for i := range min(n, 100) {
			if s := k.segmentBytes(i); s < 1 {
				t.Fatalf("segment %d of %d has %d B", i, n, s)
			}
			if n > 1 {
				out := make([]byte, k.partBytes(i, i+1))
				k.part(out, i, i+1)
				flip(out, i)
			}
		}
		_, _ = dissect(k.frame())
	})
}

func TestDissect(t *testing.T) {
	udp4 := append([]byte{12: 8, 13: 0}, append([]byte{0x45, 0, 0, 40, 0x12, 0x34, 0x20, 0, 64, 17, 0, 0, 10, 0, 0, 1,
		10, 0, 0, 2}, 0x04, 0xd2, 0x16, 0x2e, 0, 20, 0, 0, 'p', 'e')...)
	later4 := bytes.Clone(udp4)
	later4[20], later4[21] = 0, 0xb9
	tcp4 := append([]byte{12: 8, 13: 0}, append([]byte{0x45, 0, 0, 46, 0x12, 0x34, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2},
		0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 1, 0, 0, 0, 2, 0x60, 0x18, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 'p', 'e', 0, 0)...) // 2 B of padding
	acknowledged := bytes.Clone(tcp4)
	acknowledged[17] = 44
	tcp6 := append([]byte{12: 0x86, 13: 0xdd}, append(make([]byte, ip6Bytes), tcp4[34:]...)...)
	tcp6[14+5], tcp6[14+6] = 26, protocolTCP
	for name, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"TCP with data":    {tcp4, "true offset 0 more false ports 04d2162e payload 7065 id 1234"},
		"TCP without data": {acknowledged, "true offset 0 more false ports 04d2162e payload  id 1234"},
		"TCP over IPv6":    {tcp6, "true offset 0 more false ports 04d2162e payload 7065 id 0"},
		"first fragment":   {udp4, "true offset 0 more true ports 04d2162e payload 7065 id 1234"},
		"later fragment":   {later4, "true offset 1480 more false ports  payload  id 1234"},
		"ARP":              {[]byte{12: 8, 13: 6, 40: 0}, "false"},
		"cut short":        {udp4[:30], "false"},
		"TCP":              {append(bytes.Clone(udp4[:23]), append([]byte{6}, udp4[24:]...)...), "false"},
		"empty":            {nil, "false"},
	} {
		d, ok := dissect(c.frame)
		got := fmt.Sprint(ok)
		if ok {
			got += fmt.Sprintf(" offset %d more %v ports %x payload %s id %x", d.offset, d.more, d.ports,
				hexOf(d.payload), d.key.id)
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func hexOf(b []byte) string { return fmt.Sprintf("%x", b) }
