package tcp

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/unit"
)

func TestHelloRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := hello{trial: rapid.Uint16().Draw(t, "trial"), tag: rapid.Uint16().Draw(t, "tag"), stream: rapid.Uint16().Draw(t, "stream")}
		copy(want.nonce[:], rapid.SliceOfN(rapid.Byte(), nonceBytes, nonceBytes).Draw(t, "nonce"))
		key := rapid.SliceOfN(rapid.Byte(), keyBytes, keyBytes).Draw(t, "key")
		b := want.marshal(key)
		got, ok := parseHello(b)
		if !ok || got != want || !helloSigned(b, key) {
			t.Fatalf("%+v came back as %+v %v", want, got, ok)
		}
		b[rapid.IntRange(0, helloBytes-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if helloSigned(b, key) {
			t.Fatalf("a changed bit went unseen: % x", b)
		}
	})
}

// No message of the opening passes as another.
func TestMessagesAreDistinct(t *testing.T) {
	key := bytes.Repeat([]byte{7}, keyBytes)
	h := hello{trial: 1}.marshal(key)
	w := makeWelcome(h, [nonceBytes]byte{}, key)
	c := makeConfirm(h, w, key)
	if !welcomeSigned(h, w, key) || !confirmSigned(h, w, c, key) {
		t.Fatal("a good opening is refused")
	}
	other := hello{trial: 2}.marshal(key)
	for name, taken := range map[string]bool{
		"welcome to another hello":    welcomeSigned(other, w, key),
		"confirm of another hello":    confirmSigned(other, w, c, key),
		"hello's MAC as confirm":      confirmSigned(h, w, h[helloBytes-macBytes:], key),
		"welcome's MAC as confirm":    confirmSigned(h, w, w[nonceBytes:], key),
		"empty confirm":               confirmSigned(h, w, nil, key),
		"short welcome":               welcomeSigned(h, w[:10], key),
		"hello's own MAC as welcome":  welcomeSigned(h, h[helloBytes-welcomeBytes:], key),
		"hello cut short":             helloSigned(h[:helloBytes-1], key),
		"confirm under another key":   confirmSigned(h, w, c, make([]byte, keyBytes)),
		"welcome under another key":   welcomeSigned(h, w, make([]byte, keyBytes)),
		"hello under an all-zero key": helloSigned(h, make([]byte, keyBytes)),
	} {
		if taken {
			t.Errorf("%s is taken", name)
		}
	}
}

func FuzzParseHello(f *testing.F) {
	key := make([]byte, keyBytes)
	f.Add(hello{trial: 1, tag: 2, stream: 3}.marshal(key))
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, helloBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := parseHello(b)
		signed := helloSigned(b, key)
		if !ok {
			return
		}
		back := h.marshal(key)
		if signed != bytes.Equal(back, b) || !bytes.Equal(back[:helloBytes-macBytes], b[:helloBytes-macBytes]) {
			t.Errorf("% x parsed as %+v, signed %v, written as % x", b, h, signed, back)
		}
	})
}

func TestParseInfo(t *testing.T) {
	b := make([]byte, 256)
	for at, v := range map[int]uint32{offSndMSS: 1448, offRTT: 250, offTotalRetrans: 3, offSegmentsIn: 5, offSegmentsOut: 7} {
		binary.NativeEndian.PutUint32(b[at:], v)
	}
	binary.NativeEndian.PutUint64(b[offBytesSent:], 1<<40)
	binary.NativeEndian.PutUint64(b[offBytesResent:], 99)
	full := info{mss: 1448, rttMicros: 250, retransmits: 3, segmentsIn: 5, segmentsOut: 7, bytesSent: 1 << 40, bytesResent: 99, segmentsKnown: true, bytesKnown: true}
	old := info{mss: 1448, rttMicros: 250, retransmits: 3}
	middle := info{mss: 1448, rttMicros: 250, retransmits: 3, segmentsIn: 5, segmentsOut: 7, segmentsKnown: true}
	for _, c := range []struct {
		name   string
		length int
		want   info
		ok     bool
	}{
		{"nothing", 0, info{}, false},
		{"cut in the first fields", 103, info{}, false},
		{"Linux 3.10", 104, old, true},
		{"cut before segments out", 156, old, true},
		{"Linux 4.9", 168, middle, true},
		{"Linux 4.19", 216, full, true},
		{"a release to come", 256, full, true},
	} {
		got, ok := parseInfo(b[:c.length])
		if got != c.want || ok != c.ok {
			t.Errorf("%s (%d B): got %+v %v, want %+v %v", c.name, c.length, got, ok, c.want, c.ok)
		}
	}
}

func TestParseInfoOfControl(t *testing.T) {
	b := make([]byte, 256)
	b[offFlags] = 0x81 // the first bit of either byte order
	for at, v := range map[int]uint32{offUnacked: 10, offSacked: 3, offLost: 2, offRetrans: 1, offCwnd: 42, offMinRTT: 40000} {
		binary.NativeEndian.PutUint32(b[at:], v)
	}
	for at, v := range map[int]uint64{offPacing: 1e6, offDelivery: 2e6, offAcked: 1 << 33, offBusy: 5, offRwnd: 6, offSndbuf: 7} {
		binary.NativeEndian.PutUint64(b[at:], v)
	}
	full := info{cwnd: 42, inflight: 6, lost: 2, minRTTMicros: 40000, pacing: 1e6, delivery: 2e6, appLimited: true, acked: 1 << 33, busy: 5, rwndLimited: 6, sndbufLimited: 7}
	var got info
	got.control(b)
	if got != full {
		t.Errorf("got %+v, want %+v", got, full)
	}
	for length := range len(b) { // of whatever release
		var cut info
		cut.control(b[:length])
		if cut.cwnd > full.cwnd || cut.delivery > full.delivery {
			t.Errorf("%d B: %+v", length, cut)
		}
	}
	if i, ok := parseBBR(append(binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, 7), 1), 0, 0, 0, 0, 0, 1, 0, 0, 0x40, 2, 0, 0)); !ok || i.bandwidth != 1<<32+7 || binary.NativeEndian.Uint16([]byte{1, 0}) == 1 && (i.pacingGain != 1 || i.windowGain != 2.25) {
		t.Errorf("BBR: %+v %v", i, ok)
	}
	if _, ok := parseBBR(make([]byte, 16)); ok {
		t.Error("what Vegas tells is taken for BBR's")
	}
}

func TestFirstBit(t *testing.T) {
	if little, big := firstBit(binary.LittleEndian.Uint16([]byte{0, 1})), firstBit(binary.BigEndian.Uint16([]byte{0, 1})); little != 1 || big != 0x80 {
		t.Errorf("%#x and %#x", little, big)
	}
}

func TestTallyOverTheWrap(t *testing.T) {
	from := info{segmentsOut: 1<<32 - 10, segmentsIn: 1<<32 - 1, retransmits: 1<<32 - 1, bytesSent: 100, bytesResent: 10}
	to := info{segmentsOut: 5, segmentsIn: 1, retransmits: 0, bytesSent: 500, bytesResent: 60}
	got := tally{segmentsOut: 100}.plus(from, to)
	want := tally{segmentsOut: 115, segmentsIn: 2, retransmits: 1, bytesLeft: 350}
	if got != want {
		t.Errorf("from %+v to %+v: got %+v, want %+v", from, to, got, want)
	}
}

func TestPlannedSegments(t *testing.T) {
	for _, c := range []struct {
		name                 string
		attempted, due, made uint64
		want                 uint64
	}{
		{"all made", 1000, 1000, 1000, 1000},
		{"a tenth not made", 900, 1000, 900, 1000},
		{"writes joined, all made", 500, 1000, 1000, 500},
		{"writes split, half made", 4500, 200, 100, 9000},
		{"none made", 0, 1000, 0, 1000},
	} {
		if got := plannedSegments(c.attempted, c.due, c.made); got != c.want {
			t.Errorf("%s: planned(%d, %d, %d) = %d, want %d", c.name, c.attempted, c.due, c.made, got, c.want)
		}
	}
}

func TestWritesDue(t *testing.T) {
	schedule, _ := unit.PacketRate(1000).Schedule(64)
	p := pace{schedule: schedule, first: 1000, last: 11_000, streams: 1}
	for _, c := range []struct {
		name string
		span span
		want uint64
	}{
		{"to the end", span{ended: 11 * time.Second, complete: true}, 10_000},
		{"read late", span{ended: 12 * time.Second, complete: true}, 10_000},
		{"stopped", span{ended: 3 * time.Second}, 2000},
		{"stopped in the warm-up", span{}, 0},
	} {
		if got := p.due(c.span); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// Skipping leaves exactly a burst of overdue writes, whatever the schedule.
func TestOverdueLeavesOneBurst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schedule, _ := unit.PacketRate(rapid.Uint64Range(1, 1_000_000).Draw(t, "pps")).Schedule(64)
		p := pace{schedule: schedule, streams: rapid.Uint64Range(1, 16).Draw(t, "streams"), burst: rapid.Uint64Range(1, 100).Draw(t, "burst")}
		n := rapid.Uint64Range(0, 1_000_000).Draw(t, "n")
		elapsed := time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "elapsed"))
		beyond := p.overdue(n, elapsed)
		n += beyond * p.streams
		var left uint64
		for m := n; schedule.Due(m) < int64(elapsed) && left <= p.burst; m += p.streams {
			left++
		}
		if left > p.burst || beyond > 0 && left != p.burst {
			t.Fatalf("%d skipped leaves %d overdue, burst %d", beyond, left, p.burst)
		}
	})
}

func TestCountedWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint64Range(0, 50).Draw(t, "first")
		p := pace{first: first, last: first + rapid.Uint64Range(0, 100).Draw(t, "length"), streams: rapid.Uint64Range(1, 9).Draw(t, "streams")}
		n, end := rapid.Uint64Range(0, 200).Draw(t, "n"), rapid.Uint64Range(0, 200).Draw(t, "end")
		var want uint64
		for m := n; m < end; m += p.streams {
			if m >= p.first && m < p.last {
				want++
			}
		}
		if got := p.counted(n, end); got != want {
			t.Fatalf("%+v counted(%d, %d) = %d, want %d", p, n, end, got, want)
		}
	})
}
