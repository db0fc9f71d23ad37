package userlink

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"pelt/internal/testenv"
	"pelt/lab/impair"
)

// What is due at once leaves before the next frame is read.
func TestDrainKeepsNothingDueInHand(t *testing.T) {
	var in, out [2]int
	for _, pair := range []*[2]int{&in, &out} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK, 0)
		testenv.Must(t, err)
		*pair = fds
		defer unix.Close(fds[0])
		defer unix.Close(fds[1])
	}
	p := &pump{born: time.Now().Add(-time.Second), scratch: make([]byte, longest), budget: newBudget(1 << 30)}
	w := &way{in: in[1], out: out[0], pump: p, link: impair.New(impair.Settings{})}
	const frames = glance - 1
	for i := range frames {
		frame := make([]byte, vnetBytes+60)
		frame[vnetBytes+59] = byte(i)
		if errno := write(in[0], frame); errno != 0 {
			t.Fatal(errno)
		}
	}
	p.drain(w)
	if n := p.leaving.len(); n != 0 {
		t.Errorf("%d of %d frames are in hand, want none", n, frames)
	}
	buf := make([]byte, longest)
	for i := range frames {
		n, errno := read(out[1], buf)
		if errno != 0 || n != vnetBytes+60 || buf[n-1] != byte(i) {
			t.Fatalf("frame %d: %d B, %v, of number %d", i, n, errno, buf[max(n-1, 0)])
		}
	}
}

// A descriptor that has come to its end is not looked at for ever.
func TestDrainForgetsWhatIsGone(t *testing.T) {
	var ends [2]int
	testenv.Must(t, unix.Pipe2(ends[:], unix.O_NONBLOCK))
	defer unix.Close(ends[1])
	_ = unix.Close(ends[0])
	waiter, err := newWaiter()
	testenv.Must(t, err)
	defer waiter.close()
	w := &way{in: ends[1]} // as of a TAP without its interface: ready, and read says no
	p := &pump{waiter: waiter, born: time.Now(), scratch: make([]byte, longest), budget: newBudget(1 << 30),
		ways: []*way{w}}
	if err := waiter.add(w.in, 0); err != nil || len(waiter.wait(0)) != 1 {
		t.Fatalf("it is not ready at first: %v", err)
	}
	p.drain(w)
	if n := len(waiter.wait(0)); n != 0 {
		t.Errorf("%d descriptors are ready still", n)
	}
}

// Each segment of a buffer is counted once: it passed, was lost, or found no room.
func TestEachSegmentIsCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pump{born: time.Now(), scratch: make([]byte, longest), budget: newBudget(1 << 30)}
		share := rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "loss")
		some := rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "others")
		settings := impair.Settings{Seed: 1, Loss: impair.Loss{Ratio: share}, Duplicate: some, Corrupt: some}
		if rapid.Bool().Draw(t, "rate") { // without one, segments leave together
			settings.Rate, settings.QueuePackets = 1e6, 20
		}
		w := &way{out: -1, pump: p, link: impair.New(settings)}
		segments := uint64(0)
		for range 5 {
			buf, _, _, _ := buffer(t)
			k := parse(buf)
			segments += uint64(k.segments())
			p.take(w, copy(p.scratch, buf), 0)
		}
		c := &w.counts
		if c.Frames != segments || c.Passed+c.Lost+c.QueueFull != segments {
			t.Errorf("%d segments: %d frames, %d passed, %d lost, %d without room", segments, c.Frames,
				c.Passed, c.Lost, c.QueueFull)
		}
	})
}

// All threads of a lab share one budget of memory. It is given back, and so is what buffers took that wait for reuse.
func TestMemoryIsBounded(t *testing.T) {
	const frames, size = 1000, 16384
	memory := newBudget(8 * grant)
	pumps := [2]*pump{{budget: memory}, {budget: memory}}
	w := &way{out: -1}
	for i := range 2 * frames {
		p := pumps[i%2]
		p.leave(w, p.room.get(size-1), 0, 0) // which takes a buffer of that size
	}
	held := pumps[0].held + pumps[1].held
	if held > 8*grant || held < 6*grant || w.counts.Refused != uint64(2*frames-held/size) {
		t.Errorf("%d B are held of a budget of %d, %d frames of %d were refused", held, 8*grant, w.counts.Refused,
			2*frames)
	}
	for _, p := range pumps {
		p.release(1)
		if p.held != 0 || p.granted > 2*grant || p.room.kept > keptBytes {
			t.Errorf("%d B are held, %d granted, %d kept", p.held, p.granted, p.room.kept)
		}
	}
	if left := int(memory.left.Load()) + pumps[0].granted + pumps[1].granted; left != 8*grant {
		t.Errorf("%d B are left or granted of a budget of %d", left, 8*grant)
	}
	all := store{}
	for range 2 * keptBytes / size {
		all.put(make([]byte, size))
	}
	if all.kept > keptBytes {
		t.Errorf("%d B are kept for reuse, want at most %d", all.kept, keptBytes)
	}
}

// A damaged datagram is listed, for its sequence tells whether it was lost. A damaged segment of TCP is not: the kernel
// that drops it counts it, and nothing tells that both are one. A lost part of a datagram is listed as one.
func TestDamagedSegmentsAreNotLost(t *testing.T) {
	frame := func(protocol, parts byte) packet {
		buf := make([]byte, vnetBytes+14+ip4Bytes+tcpLeastBytes+2) // two bytes of data
		f := buf[vnetBytes:]
		f[12], f[14], f[14+3], f[14+6], f[14+9], f[14+ip4Bytes+12] = 8, 0x45, byte(len(f)-14), parts, protocol, 5<<4
		return packet{buf: buf}
	}
	for _, c := range []struct {
		protocol, parts byte
		want            []Cause
	}{{protocolUDP, 0, []Cause{Lost, Damaged}}, {protocolUDP, 0x20, []Cause{Fragment, Damaged}},
		{protocolTCP, 0, []Cause{Lost}}} {
		// of the second flow, whose number comes after the highest
		one := &watch{trial: 1<<15 - 1, flows: 2,
			identify: func([]byte) (uint16, uint64, bool, bool) { return 1, 0, false, true }}
		w := &way{pump: &pump{budget: newBudget(1 << 20)}, watches: []*watch{one}}
		k := frame(c.protocol, c.parts)
		w.judge(&k, 0, Lost)
		w.judge(&k, 0, Damaged)
		var got []Cause
		for _, v := range one.verdicts {
			got = append(got, v.Cause)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("protocol %d, flags %#x: %v are listed, want %v", c.protocol, c.parts, got, c.want)
		}
	}
}

func TestVerdictsAreBounded(t *testing.T) {
	memory := newBudget(3000 * verdictBytes)
	two := [2]watch{}
	listed := 0
	for i := range 8000 {
		if one := &two[i%2]; one.room(memory) {
			one.verdicts = append(one.verdicts, Verdict{})
			listed++
		}
	}
	if listed < 2000 || listed > 3000 {
		t.Errorf("%d verdicts were listed with room for 3000", listed)
	}
	if size := int(unsafe.Sizeof(Verdict{})); size != verdictBytes {
		t.Errorf("a verdict takes %d B, not %d", size, verdictBytes)
	}
}
