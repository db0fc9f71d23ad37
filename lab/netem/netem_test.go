package netem

import (
	"encoding/hex"
	"testing"
	"time"

	"pelt/lab/impair"
)

// little writes what Append made as a little-endian machine's would be, so that
// one golden serves all: it is compared there only.
func little(t *testing.T, b []byte) string {
	t.Helper()
	if u32(nil, 1)[0] != 1 {
		t.Skip("the bytes are a little-endian machine's")
	}
	return hex.EncodeToString(b)
}

// base is a qopt of nothing but a limit of 1000, with the two times that are always there.
const (
	base  = "00000000" + "e8030000" + "00000000" + "00000000" + "00000000" + "00000000"
	times = "0c000a00" + "0000000000000000" + "0c000b00" + "0000000000000000"
)

// What tc of iproute2 6.1 writes for the same words, but for the order of
// attributes and the two 64-bit times, which it leaves out where they are 0.
func TestBytes(t *testing.T) {
	for name, c := range map[string]struct {
		set  impair.Settings
		want string
	}{
		"nothing": {impair.Settings{QueuePackets: 1000}, base + times},
		"delay 20ms 5ms": {impair.Settings{QueuePackets: 1000, Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond},
			"b4c40400" + "e8030000" + "00000000" + "00000000" + "00000000" + "2d310100" +
				"0c000a00" + "002d310100000000" + "0c000b00" + "404b4c0000000000"},
		"delay of 5 min, beyond the old field": {impair.Settings{QueuePackets: 1000, Delay: 5 * time.Minute},
			"ffffffff" + "e8030000" + "00000000" + "00000000" + "00000000" + "00000000" +
				"0c000a00" + "00b864d945000000" + "0c000b00" + "0000000000000000"},
		"loss 10% 25%": {impair.Settings{QueuePackets: 1000, Loss: impair.Loss{Chance: impair.Chance{Ratio: 0.1, Correlation: 0.25}}},
			"00000000" + "e8030000" + "9a999919" + "00000000" + "00000000" + "00000000" + times +
				"10000100" + "00000000" + "00000040" + "00000000"},
		"loss gemodel 1% 10% 70% 0.1%": {impair.Settings{QueuePackets: 1000, Loss: impair.Loss{Model: impair.GilbertElliott, P: 0.01, R: 0.1, Bad: 0.7, Good: 0.001}},
			base + times + "18000580" + "14000200" + "295c8f02" + "9a999919" + "cdcccc4c" + "37894100"},
		"loss state 1% 10% 5% 20% 0.5%": {impair.Settings{QueuePackets: 1000, Loss: impair.Loss{Model: impair.FourState, P13: 0.01, P31: 0.1, P32: 0.05, P23: 0.2, P14: 0.005}},
			base + times + "1c000580" + "18000100" + "295c8f02" + "9a999919" + "cdcccc0c" + "14ae4701" + "33333333"},
		"reorder 25% 50% gap 5": {impair.Settings{QueuePackets: 1000, Delay: time.Millisecond, Reorder: impair.Chance{Ratio: 0.25, Correlation: 0.5}, Gap: 5},
			"093d0000" + "e8030000" + "00000000" + "05000000" + "00000000" + "00000000" + "0c000a00" + "40420f0000000000" + "0c000b00" + "0000000000000000" +
				"0c000300" + "00000040" + "00000080"},
		"reorder without a gap": {impair.Settings{QueuePackets: 1000, Reorder: impair.Chance{Ratio: 1}},
			"00000000" + "e8030000" + "00000000" + "01000000" + "00000000" + "00000000" + times + "0c000300" + "ffffffff" + "00000000"},
		"duplicate and corrupt 1%": {impair.Settings{QueuePackets: 1000, Duplicate: impair.Chance{Ratio: 0.01}, Corrupt: impair.Chance{Ratio: 0.01}},
			"00000000" + "e8030000" + "00000000" + "00000000" + "295c8f02" + "00000000" + times + "0c000400" + "295c8f02" + "00000000"},
		"rate 1mbit": {impair.Settings{QueuePackets: 1000, Rate: 1e6, Overhead: 24},
			base + times + "14000600" + "48e80100" + "18000000" + "00000000" + "00000000"},
		"rate 100gbit": {impair.Settings{QueuePackets: 1000, Rate: 100e9},
			base + times + "14000600" + "ffffffff" + "00000000" + "00000000" + "00000000" + "0c000800" + "00dd0ee902000000"},
		"a table of three": {impair.Settings{QueuePackets: 1000, Shape: &impair.Table{Values: []int16{-8192, 0, 8192}}},
			base + times + "0a000200" + "00e0" + "0000" + "0020" + "0000"},
	} {
		if got := little(t, From(c.set).Append(nil)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestSeed(t *testing.T) {
	o := From(impair.Settings{QueuePackets: 1000, Delay: time.Millisecond, Loss: impair.Loss{Model: impair.GilbertElliott, P: 0.1, R: 0.1, Bad: 1}})
	if seed, ok := Seed(o.Append(nil)); ok {
		t.Errorf("without a seed: %d", seed)
	}
	o.Seed, o.Seeded = 1<<63|7, true
	b := o.Append([]byte("before"))[len("before"):]
	if seed, ok := Seed(b); !ok || seed != 1<<63|7 {
		t.Errorf("seed %d, %v; want %d", seed, ok, uint64(1<<63|7))
	}
	for n := range len(b) { // what a kernel never sends
		if seed, ok := Seed(b[:n]); ok {
			t.Errorf("%d of %d bytes: seed %d", n, len(b), seed)
		}
	}
	b[24] = 0
	if _, ok := Seed(b); ok {
		t.Error("an attribute of no length was read on")
	}
}

// A limit of 0 would let no packet in; impair's 0 is any number.
func TestNoLimit(t *testing.T) {
	if n := From(impair.Settings{}).LimitPackets; n != 1<<31-1 {
		t.Errorf("limit %d", n)
	}
}
