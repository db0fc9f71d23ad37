package record

import (
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pelt/model"
)

var update = flag.Bool("update", false, "write the file of version 2 if there is none")

// versionTwo has a block of every kind, and packets of steady, reordered, batched and wild flows.
func versionTwo() []Block {
	word := uint64(1)
	noise := func(below uint64) uint64 {
		word = word*6364136223846793005 + 1442695040888963407
		return word >> 33 % below
	}
	packets := func(stream uint16, first Packet, n int, step func(i int, x *Packet)) *Packets {
		p := &Packets{Trial: 1, Stream: stream, List: []Packet{first}}
		for i := 1; i < n; i++ {
			step(i, &first)
			first.Sequence, first.SendNanos = first.Sequence&mask48, first.SendNanos&mask48
			p.List = append(p.List, first)
		}
		return p
	}
	idle := packets(0, Packet{0, mask48 - 500_000, 7_000_000}, 60, func(i int, x *Packet) {
		x.Sequence++
		if i%17 == 0 {
			x.Sequence += 2 // lost
		}
		x.SendNanos = mask48 - 500_000 + x.Sequence*25_000 + noise(300)
		x.ReceiveNanos = 7_000_000 + int64(x.Sequence)*25_000 + int64(noise(400))
	})
	queued := packets(1, Packet{9, 1000, 50}, 60, func(i int, x *Packet) {
		x.Sequence = uint64(9 + i ^ 1) // each pair in the wrong order
		x.SendNanos += 1_000_000 + noise(100_000)
		x.ReceiveNanos = int64(x.SendNanos) - 950 + int64(i)*40_000 + int64(noise(50))
	})
	full := packets(0, Packet{100, 5_000_000, 9_000_000}, 60, func(i int, x *Packet) {
		x.Sequence++
		if i%8 == 0 {
			x.SendNanos += 64_000 + noise(9000)
		}
		x.ReceiveNanos += 8_000 + int64(noise(16))
	})
	full.Dropped = 70_000
	wild := packets(1, Packet{mask48, 3, -1 << 62}, 30, func(i int, x *Packet) {
		x.Sequence += noise(1<<31) << 20
		x.SendNanos += noise(1<<31) << 20
		if x.ReceiveNanos += int64(noise(1<<31)) << 20; i == 20 {
			x.ReceiveNanos = 1<<63 - 1
		}
	})
	wild.Flow = 1
	return []Block{
		&Header{Format: Format, Run: "20231114-2213-abc", Started: time.Unix(1700000000, 0).UTC(), Tool: model.Tool{Version: "1"}, Target: "lab:direct", ResolutionNS: 1},
		&Trial{Trial: 1, Cell: model.Cell{"payload_bytes": model.Number(64), "control": model.Word("x")}, Repeat: 2, Started: time.Unix(1700000001, 5e8).UTC(), Wire: 77, WarmupS: 0.5, MeasureS: 3, Flows: []Flow{
			{Name: "up", From: "sender", To: "receiver", FromHost: "a", ToHost: "b", Family: 4, PayloadBytes: 64, RatePPS: 40_000, Streams: 2, OneClock: true},
			{Flow: 1, Name: "down", From: "receiver", To: "sender", Family: 6, PayloadBytes: 1200, Streams: 2},
		}},
		idle, queued, full, wild,
		&Packets{Trial: 1, Flow: 1, List: []Packet{{1, 2, 3}}},
		&Stream{Trial: 1, Packets: 120, Dropped: 70_000},
		&Closed{Trial: 1, State: model.Valid, Why: model.Reasons{{Code: "text", Text: "so"}}, Flows: []ClosedFlow{{Attempted: []uint64{200, 70_100}, Received: 119, Duplicates: 1, Reordered: 30, Late: 2, JitterNS: 12.5, Delay: &model.Percentiles{Count: 9, Min: 1, P50: 2, Max: 3}, Recorded: 180, Dropped: 70_000}}},
		&Void{Trial: 1, Why: "tried again"},
		&End{Packets: 211, Dropped: 70_000, Complete: true},
	}
}

// A file that was once written stays readable: this one is never written anew.
func TestVersion2(t *testing.T) {
	want := versionTwo()
	path := filepath.Join("testdata", "version2.rec")
	file, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && *update {
		for _, b := range want {
			if file, err = Append(file, b); err != nil {
				t.Fatal(err)
			}
		}
		err = os.WriteFile(path, file, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(file)
	if !errors.Is(err, io.EOF) || !same(got, want) {
		t.Errorf("read %d blocks of %d, %v; or other ones", len(got), len(want), err)
	}
}
