package icmp

import (
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// control is the control message of an error with an address of so many bytes.
func control(level, kind int32, origin, icmpType, code byte, address int) []byte {
	b := make([]byte, unix.CmsgSpace(16+address))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(16 + address))
	data := b[unix.SizeofCmsghdr:]
	data[0], data[4], data[5], data[6] = byte(unix.ECONNREFUSED), origin, icmpType, code
	for i := range address {
		data[16+i] = byte(i)
	}
	return b
}

func four(origin, kind, code byte, address int) []byte {
	return control(unix.SOL_IP, unix.IP_RECVERR, origin, kind, code, address)
}

func six(kind, code byte, address int) []byte {
	return control(unix.SOL_IPV6, unix.IPV6_RECVERR, unix.SO_EE_ORIGIN_ICMP6, kind, code, address)
}

func TestRead(t *testing.T) {
	const refused = unix.ECONNREFUSED
	from, from6 := netip.MustParseAddr("4.5.6.7"), netip.MustParseAddr("809:a0b:c0d:e0f:1011:1213:1415:1617")
	for name, c := range map[string]struct {
		b    []byte
		want Error
	}{
		"port":         {four(unix.SO_EE_ORIGIN_ICMP, 3, 3, 8), Error{refused, "port unreachable", from}},
		"filter":       {four(unix.SO_EE_ORIGIN_ICMP, 3, 13, 8), Error{refused, "administratively prohibited", from}},
		"IPv6":         {six(1, 3, 28), Error{refused, "host unreachable", from6}},
		"filter, IPv6": {six(1, 1, 28), Error{refused, "administratively prohibited", from6}},
		"no name":      {four(unix.SO_EE_ORIGIN_ICMP, 77, 5, 8), Error{refused, "error of type 77 code 5", from}},
		"no address": {four(unix.SO_EE_ORIGIN_ICMP, 3, 1, 4),
			Error{Errno: unix.ECONNREFUSED, What: "host unreachable"}},
		"of this host": {four(unix.SO_EE_ORIGIN_LOCAL, 0, 0, 8), Error{}},
		"other, then ICMP": {append(control(unix.SOL_SOCKET, 1, 0, 0, 0, 0), six(3, 0, 28)...),
			Error{refused, TimeExceeded, from6}},
	} {
		if got, ok := Read(c.b); got != c.want || ok != (c.want.What != "") {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, ok, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 64))
	f.Add(four(unix.SO_EE_ORIGIN_ICMP, 3, 3, 8))
	f.Add(six(1, 4, 28))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, ok := Read(b); ok != (e.What != "") {
			t.Errorf("% x gave %+v, %v", b, e, ok)
		}
	})
}
