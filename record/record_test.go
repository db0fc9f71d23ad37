package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"pelt/internal/testenv"
	"pelt/model"
)

// drawPackets makes packets of any kind: steady, in batches, with losses, wild.
func drawPackets(t *rapid.T) Packets {
	p := Packets{
		Trial: rapid.Uint32().Draw(t, "trial"), Flow: rapid.Uint16().Draw(t, "flow"), Stream: rapid.Uint16().Draw(t,
			"stream"),
		Dropped: rapid.Uint64Max(1<<40).Draw(t, "dropped"),
	}
	n := rapid.IntRange(1, 300).Draw(t, "n")
	wild := rapid.IntRange(0, 3).Draw(t, "wild") == 0
	x := Packet{rapid.Uint64Max(mask48).Draw(t, "sequence"), rapid.Uint64Max(mask48).Draw(t, "send"),
		rapid.Int64().Draw(t, "receive")}
	gap := rapid.Uint64Max(1<<rapid.UintRange(0, 44).Draw(t, "size")).Draw(t, "gap")
	for range n {
		p.List = append(p.List, x)
		if wild {
			x = Packet{rapid.Uint64Max(mask48).Draw(t, "sequence"), rapid.Uint64Max(mask48).Draw(t, "send"),
				rapid.Int64().Draw(t, "receive")}
			continue
		}
		step := rapid.SampledFrom([]uint64{1, 1, 1, 1, 2, 0, 7, mask48}).Draw(t, "step")
		x.Sequence = (x.Sequence + step) & mask48
		x.SendNanos = (x.SendNanos + rapid.SampledFrom([]uint64{0, gap, gap + 3}).Draw(t, "wait")) & mask48
		x.ReceiveNanos += rapid.Int64Range(-50, 5000).Draw(t, "came")
	}
	return p
}

func TestPacketsComeBack(t *testing.T) {
	var e Encoder // one for all: it must not keep anything of the block before
	var d Decoder
	rapid.Check(t, func(t *rapid.T) {
		want := drawPackets(t)
		block := e.Append(nil, want)
		b, whole, rest, err := d.Split(block)
		if err != nil || len(rest) > 0 || len(whole) != len(block) {
			t.Fatalf("%+v: read back: %v, %d B behind it", want, err, len(rest))
		}
		if got := *b.(*Packets); !reflect.DeepEqual(got, want) {
			t.Fatalf("wrote %+v, read %+v", want, got)
		}
	})
}

// steady is a flow at one rate with the noise of a host's clock and scheduler.
func steady(n int, gap int64, noise func() int64) []Packet {
	list := make([]Packet, n)
	for i := range list {
		send := 123456789 + int64(i)*gap + noise()
		list[i] = Packet{uint64(i), uint64(send), send + 9000 + noise()}
	}
	return list
}

func TestSteadyFlowIsSmall(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name  string
		list  []Packet
		bytes float64 // a packet, at most
	}{
		{"no noise", steady(2048, 25000, func() int64 { return 0 }), 0.1},
		{"clock's noise", steady(2048, 25000, func() int64 { return int64(r.ExpFloat64() * 60) }), 2.6},
		{"scheduler's noise", steady(2048, 25000, func() int64 { return int64(r.ExpFloat64() * 400) }), 3.5},
	} {
		var e Encoder
		got := float64(len(e.Append(nil, Packets{List: c.list}))) / float64(len(c.list))
		if got > c.bytes {
			t.Errorf("%s: %.2f B a packet, want at most %.2f", c.name, got, c.bytes)
		}
	}
}

// sample is a small file with a block of every kind.
func sample(t testing.TB) (file []byte, blocks []Block) {
	blocks = []Block{
		&Header{Format: Format, Run: "r", Started: time.Unix(1700000000, 0).UTC(), Target: "lab:direct",
			ResolutionNS: 1},
		&Trial{Trial: 1, Cell: model.Cell{"payload_bytes": model.Number(64)},
			Flows: []Flow{{Name: "up", From: "sender", To: "receiver", Streams: 1, PayloadBytes: 64, OneClock: true}}},
		&Packets{Trial: 1, List: []Packet{{0, 10, 20}, {1, 20, 31}, {5, 60, 72}}},
		&Packets{Trial: 1, Dropped: 3, List: []Packet{{4, 50, 73}, {5, 60, 74}}},
		&Stream{Trial: 1, Packets: 5, Dropped: 3},
		&Closed{Trial: 1, State: model.Valid,
			Flows: []ClosedFlow{{Attempted: []uint64{9}, Received: 4, Duplicates: 1}}},
		&Void{Trial: 1},
		&End{Packets: 5, Dropped: 3, Complete: true},
	}
	for _, b := range blocks {
		var err error
		if file, err = Append(file, b); err != nil {
			t.Fatal(err)
		}
	}
	return file, blocks
}

// readAll reads a file, with its header as the first block.
func readAll(file []byte) (blocks []Block, err error) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	h := r.Header()
	blocks = []Block{&h}
	for {
		b, err := r.Next()
		if err != nil {
			return blocks, err
		}
		if p, ok := b.(*Packets); ok {
			c := *p
			c.List = slices.Clone(p.List)
			b = &c
		}
		blocks = append(blocks, b)
	}
}

func TestCutAtEveryByte(t *testing.T) {
	file, want := sample(t)
	ends := []int{len(magic)} // of blocks
	for _, b := range want {
		one, err := Append(nil, b)
		testenv.Must(t, err)
		if _, is := b.(*Header); is {
			one = one[len(magic):]
		}
		ends = append(ends, ends[len(ends)-1]+len(one))
	}
	for n := range len(file) + 1 {
		got, err := readAll(file[:n])
		whole := 0
		for whole < len(want) && ends[whole+1] <= n {
			whole++
		}
		var cut *CutError
		switch {
		case n == len(file):
			if !errors.Is(err, io.EOF) {
				t.Errorf("the whole file ends with %v", err)
			}
		case n == 0:
			if !errors.Is(err, ErrNone) {
				t.Errorf("an empty file: %v, want %v", err, ErrNone)
			}
		case !errors.As(err, &cut):
			t.Errorf("cut at %d: error %v, want that it is cut", n, err)
		case whole > 0 && cut.At != int64(ends[whole]):
			t.Errorf("cut at %d: it says byte %d, want %d", n, cut.At, ends[whole])
		}
		if len(got) != whole || !same(got, want[:whole]) {
			t.Errorf("cut at %d: read %d blocks, want the first %d", n, len(got), whole)
		}
	}
}

func same(got, want []Block) bool {
	return slices.EqualFunc(got, want, func(a, b Block) bool { return reflect.DeepEqual(a, b) })
}

func TestDamageIsFound(t *testing.T) {
	file, want := sample(t)
	for at := range file {
		bad := slices.Clone(file)
		bad[at] ^= 0x10
		got, err := readAll(bad)
		if err == nil || errors.Is(err, io.EOF) {
			t.Errorf("byte %d changed: read as whole", at)
		}
		if len(got) > len(want) || !same(got, want[:len(got)]) {
			t.Errorf("byte %d changed: read what was not written", at)
		}
	}
}

// On 32 bits such a length is no positive int.
func TestLengthBeyondAnyBlock(t *testing.T) {
	file, _ := sample(t)
	for _, length := range []uint32{maxBody + 1, 1 << 31, 1<<32 - 9, 1<<32 - 1} {
		block := append(binary.LittleEndian.AppendUint32([]byte{byte(kindPackets)}, length), make([]byte, 40)...)
		var cut *CutError
		if _, err := readAll(append(slices.Clone(file[:len(magic)]), block...)); !errors.As(err, &cut) {
			t.Errorf("%d B: %v, want that it is cut", length, err)
		}
		if _, _, _, err := new(Decoder).Split(block); err == nil {
			t.Errorf("%d B: a block was split off", length)
		}
	}
}

// A disk that cannot be read says nothing of what is on it.
func TestUnreadable(t *testing.T) {
	broken := errors.New("broken disk")
	if _, err := NewReader(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// What is wrong is told in a line that a terminal shows, however long it is in the file.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, body := range []string{`{"format":"pelt/record/` + long + `"}`, `{"started":"` + long + `"}`,
		`{"format":"` + long + `"}`} {
		_, err := NewReader(bytes.NewReader(appendBlock([]byte(magic), kindHeader, []byte(body))))
		if err == nil || len(err.Error()) > 400 || strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("%.40s: %.1000v", body, err)
		}
	}
}

func TestUnknownBlocksArePassedOver(t *testing.T) {
	file, _ := sample(t)
	head, err := Append(nil, &Header{Format: Format})
	testenv.Must(t, err)
	end, err := Append(nil, &End{})
	testenv.Must(t, err)
	if got, err := readAll(append(appendBlock(head, '?', []byte("of later")), end...)); !errors.Is(err, io.EOF) ||
		len(got) != 2 {
		t.Errorf("read %d blocks, %v; want header and end", len(got), err)
	}
	if _, err := readAll(append(slices.Clone(file), end...)); errors.Is(err, io.EOF) {
		t.Error("a file with more behind its end was read as whole")
	}
	later, err := Append(nil, &Header{Format: "pelt/record/3"})
	testenv.Must(t, err)
	var version *VersionError
	if _, err := readAll(later); !errors.As(err, &version) {
		t.Errorf("a later format: %v", err)
	}
}

func TestTooManyFlows(t *testing.T) {
	for name, streams := range map[string][]int{
		"flows":   slices.Repeat([]int{1}, maxOpen+1),
		"streams": slices.Repeat([]int{model.MaxStreams}, maxStreams/model.MaxStreams+1),
	} {
		file, err := Append(nil, &Header{Format: Format})
		for i, n := range streams {
			if err == nil {
				file, err = Append(file, &Trial{Trial: uint32(i), Flows: []Flow{{Name: "up", Streams: n}}})
			}
		}
		testenv.Must(t, err)
		if _, err := readAll(file); !errors.Is(err, ErrTooMany) {
			t.Errorf("%s: error %v, want %v", name, err, ErrTooMany)
		}
	}
}

// A trial that is open cannot be named again with fewer flows: whoever adds it up holds those of the first block.
func TestFlowsOfAnOpenTrialCount(t *testing.T) {
	many := make([]Flow, maxOpen)
	for i := range many {
		many[i] = Flow{Flow: uint16(i), Streams: 1}
	}
	file, err := Append(nil, &Header{Format: Format})
	for _, one := range []Trial{{Trial: 1, Flows: many}, {Trial: 1}, {Trial: 2}} {
		if err == nil {
			file, err = Append(file, &one)
		}
	}
	testenv.Must(t, err)
	if _, err := readAll(file); !errors.Is(err, ErrTooMany) {
		t.Errorf("error %v, want %v", err, ErrTooMany)
	}
}

func FuzzReader(f *testing.F) {
	file, _ := sample(f)
	f.Add(file)
	var e Encoder
	head, _ := Append(nil, &Header{Format: Format})
	r := rand.New(rand.NewPCG(3, 4))
	f.Add(e.Append(head, Packets{List: steady(40, 1000, func() int64 { return r.Int64N(90) })}))
	f.Fuzz(func(t *testing.T, file []byte) {
		blocks, err := readAll(file)
		if err == nil {
			t.Fatal("neither an end nor an error")
		}
		for _, b := range blocks {
			if p, ok := b.(*Packets); ok && (len(p.List) == 0 || len(p.List) > MaxPackets) {
				t.Fatalf("a block of %d packets", len(p.List))
			}
		}
	})
}

// FuzzPackets looks at bodies themselves, which a check sum otherwise keeps from it.
func FuzzPackets(f *testing.F) {
	var e Encoder
	for _, p := range []Packets{
		{List: []Packet{{0, 10, 20}, {1, 20, 31}, {5, 60, 72}}},
		{List: []Packet{{9, 10, 20}, {1, 10, 31}, {5, 10, 72}, {2, 11, 80}}},
	} {
		f.Add(e.Append(nil, p)[headBytes:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := new(Decoder).packets(body)
		if err != nil {
			return
		}
		again, _, _, err := new(Decoder).Split(e.Append(nil, p))
		if err != nil || !reflect.DeepEqual(*again.(*Packets), p) {
			t.Fatalf("% x was read as %+v, and again as %+v, %v", body, p, again, err)
		}
	})
}
