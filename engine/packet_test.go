package engine

import (
	"testing"

	"pgregory.net/rapid"
)

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Header{
			Trial:     rapid.Uint16().Draw(t, "trial"),
			Sequence:  rapid.Uint64Max(mask48).Draw(t, "sequence"),
			SendNanos: rapid.Uint64Max(mask48).Draw(t, "send"),
		}
		b := make([]byte, HeaderBytes)
		PutHeader(b, want)
		got, ok := ParseHeader(b)
		if !ok || got != want {
			t.Fatalf("put %+v, parsed %+v %v from % x", want, got, ok, b)
		}
	})
}

func TestHeaderLayout(t *testing.T) {
	b := make([]byte, HeaderBytes)
	PutHeader(b, Header{Trial: 0x0102, Sequence: 0x030405060708, SendNanos: 0x090a0b0c0d0e})
	want := [HeaderBytes]byte{0x9e, 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	if [HeaderBytes]byte(b) != want {
		t.Errorf("got % x, want % x", b, want)
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
