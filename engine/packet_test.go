package engine

import "testing"

func TestHeaderLayout(t *testing.T) {
	h := Header{Trial: 0x8102, Sequence: 0xf30405060708, SendNanos: 0xf90a0b0c0d0e}
	b := make([]byte, HeaderBytes)
	PutHeader(b, h)
	want := [HeaderBytes]byte{0x9e, 0x17, 0x81, 2, 0xf3, 4, 5, 6, 7, 8, 0xf9, 10, 11, 12, 13, 14}
	if [HeaderBytes]byte(b) != want {
		t.Errorf("got % x, want % x", b, want)
	}
	if back, ok := ParseHeader(b); !ok || back != h {
		t.Errorf("put %+v, parsed %+v %v from % x", h, back, ok, b)
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add([]byte{0x9e, 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := ParseHeader(b)
		if !ok {
			return
		}
		back := make([]byte, HeaderBytes)
		PutHeader(back, h)
		if string(back) != string(b[:HeaderBytes]) {
			t.Errorf("% x parsed as %+v and written as % x", b, h, back)
		}
	})
}
