package xdp

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pelt/engine"
	"pelt/internal/checksum"
	"pelt/measure"
)

// Whatever the program adds, the checksums that it makes are right.
func TestChecksums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shape{payloadBytes: rapid.IntRange(16, 1472).Draw(t, "payload"),
			dscp: rapid.IntRange(0, 63).Draw(t, "dscp"), dontFragment: rapid.Bool().Draw(t, "df")}
		size := 4
		if rapid.Bool().Draw(t, "six") {
			size = 16
		}
		address := func(name string) netip.Addr {
			a, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, name))
			return a
		}
		s.from = netip.AddrPortFrom(address("from"), rapid.Uint16().Draw(t, "from port"))
		s.to = netip.AddrPortFrom(address("to"), rapid.Uint16().Draw(t, "to port"))
		h := engine.Header{Trial: rapid.Uint16().Draw(t, "trial"),
			Sequence: rapid.Uint64Max(1<<48-1).Draw(t, "sequence"), SendNanos: rapid.Uint64Max(1<<48-1).Draw(t, "time")}

		b := s.layOut()
		sum := s.udpSum(b)
		udp := b[s.headerBytes()-udpBytes : s.headerBytes()+s.payloadBytes]
		engine.PutHeader(udp[udpBytes:], h)
		for _, w := range []uint64{uint64(h.Trial), h.Sequence, h.Sequence >> 16, h.Sequence >> 32, h.SendNanos,
			h.SendNanos >> 16, h.SendNanos >> 32} {
			sum += uint32(w & 0xffff)
		}
		binary.BigEndian.PutUint16(udp[6:], ^checksum.Fold(sum))
		pseudo := slices.Concat(s.from.Addr().AsSlice(), s.to.Addr().AsSlice(),
			[]byte{0, protocolUDP, byte(len(udp) >> 8), byte(len(udp))})
		if got := checksum.Fold(checksum.Words(pseudo) + checksum.Words(udp)); got != 0xffff {
			t.Fatalf("the datagram sums up to %#x with its checksum", got)
		}
		if !s.six() {
			if got := checksum.Fold(checksum.Words(b[ethernetBytes:][:ip4Bytes])); got != 0xffff {
				t.Fatalf("the IPv4 header sums up to %#x", got)
			}
		}
		if len(b) < 60 || len(b) != max(60, s.headerBytes()+s.payloadBytes) {
			t.Fatalf("a frame of %d B for a payload of %d B", len(b), s.payloadBytes)
		}
	})
}

func TestDurations(t *testing.T) {
	d := durations{out: 2, least: 1000, most: 5001, bin: make([]uint64, 2048)}
	d.bin[bins.Of(1000)], d.bin[bins.Of(5000)] = 3, 1
	got := map[int64]int64{}
	d.record(func(nanos, n int64) { got[nanos] += n })
	var n int64
	for v, k := range got {
		n += k
		if v >= 0 && (v < 1000 || v > 5000) {
			t.Errorf("%d was none of the durations", v)
		}
	}
	if n != 6 || got[-1] != 2 || got[1000] < 1 || got[5000] != 1 {
		t.Errorf("got %v", got)
	}
}

// A flow that loses at random, wraps the window many times and leaps: what came
// and what did not is known at the end.
func TestWindowGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &window{words: make([]uint64, 1<<rapid.IntRange(1, 7).Draw(t, "words"))}
		var came, expected, lowest, floor uint64
		strangers := 0
		top := w.top()
		missing := map[uint64]bool{}
		next := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "rounds") {
			for range rapid.IntRange(0, 40).Draw(t, "packets") {
				at := next
				next++
				if rapid.IntRange(0, 9).Draw(t, "loses") == 0 || at < floor {
					missing[at] = true
					continue
				}
				// As the program does.
				if at < top {
					w.words[at>>6&uint64(len(w.words)-1)] |= 1 << (at & 63)
					came++
				} else {
					missing[at] = true
				}
				if at < expected+measure.MostStep {
					expected = max(expected, at+1)
					continue
				}
				if strangers == 0 || at < lowest {
					lowest = at
				}
				if strangers++; strangers == measure.Agreeing {
					expected, strangers = max(expected, lowest+1), 0
				}
			}
			if rapid.IntRange(0, 15).Draw(t, "leap") == 0 {
				for n := rapid.Uint64Max(3*w.span()).Draw(t, "length"); n > 0; n-- {
					missing[next] = true
					next++
				}
			}
			floor, top = w.round(expected)
		}
		if got := w.finish(next); got != came {
			t.Fatalf("%d came, the window says %d", came, got)
		}
		listed := uint64(0)
		for s, err := range w.gone.Marks().Stretches() {
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.Count {
				if !missing[s.From+i] {
					t.Fatalf("%d came, the window lists it as missing", s.From+i)
				}
			}
			listed += s.Count
		}
		if listed != uint64(len(missing)) {
			t.Fatalf("%d are missing, the window lists %d", len(missing), listed)
		}
	})
}
