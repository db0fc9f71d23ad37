package export

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"pelt/model"
	"pelt/record"
	"pelt/test/golden"
)

// small is a record with both IP versions, one clock and two, and a broken name.
func small(t *testing.T) []byte {
	t.Helper()
	var file []byte
	for _, b := range []record.Block{
		&record.Header{Format: record.Format, Run: "r1", Started: time.Unix(1700000000, 0),
			Tool: model.Tool{Version: "test"}, Target: "lab:direct", ResolutionNS: 1},
		&record.Trial{Trial: 1, Wire: 77, Started: time.Unix(1700000001, 0), Flows: []record.Flow{
			{Flow: 0, Name: "up", From: "sender", To: "receiver", PayloadBytes: 64, Streams: 2, OneClock: true,
				Family: 4},
			{Flow: 1, Name: `=down, "back"`, From: "receiver", To: "sender", PayloadBytes: 1200, Streams: 1, Family: 6},
		}},
		&record.Packets{Trial: 1, List: []record.Packet{{Sequence: 0, SendNanos: 1000, ReceiveNanos: 5000},
			{Sequence: 1, SendNanos: 2000, ReceiveNanos: 6100}, {Sequence: 9, SendNanos: 9000, ReceiveNanos: 13_000}}},
		&record.Packets{Trial: 1, Stream: 1, List: []record.Packet{{Sequence: 4, SendNanos: 1<<48 - 1,
			ReceiveNanos: 1<<48 + 7000}}},
		&record.Packets{Trial: 1, Flow: 1, List: []record.Packet{{Sequence: 1<<48 - 1, SendNanos: 5,
			ReceiveNanos: -3}, {Sequence: 0, SendNanos: 6, ReceiveNanos: 2}}},
		&record.Packets{Trial: 1, Flow: 5, List: []record.Packet{{}}}, // of no flow
		&record.Closed{Trial: 1},
		&record.End{},
	} {
		var err error
		if file, err = record.Append(file, b); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func header(b []byte, trial uint16, sequence, send uint64) {
	binary.BigEndian.PutUint64(b, 0x9e17<<48|uint64(trial)<<32|sequence>>16)
	binary.BigEndian.PutUint64(b[8:], sequence<<48|send)
}

func TestFiles(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *record.Reader) error{
		"small.csv":  CSV,
		"small.pcap": func(w io.Writer, r *record.Reader) error { return Pcap(w, r, header) },
	} {
		var got bytes.Buffer
		if err := write(&got, source(t, small(t))); err != nil {
			t.Fatal(err)
		}
		// written anew, read them with the programs they are for
		golden.File(t, filepath.Join("testdata", name), got.String())
		broken(t, name, write)
	}
	if got := delay(&record.Packet{SendNanos: 1<<48 - 1, ReceiveNanos: 2<<48 + 6}); got != 7 {
		t.Errorf("a delay over the wrap of 7 ns is %d", got)
	}
}

// broken writes what cannot be written whole.
func broken(t *testing.T, name string, write func(io.Writer, *record.Reader) error) {
	t.Helper()
	cut := small(t)
	r := source(t, cut[:len(cut)-1])
	if err := write(io.Discard, r); err != nil || r.Cut() == nil {
		t.Errorf("%s of a cut record: %v, %v", name, err, r.Cut())
	}
	if err := write(full{}, source(t, small(t))); !errors.Is(err, errFull) {
		t.Errorf("%s to a full disk: %v", name, err)
	}
}

func source(t *testing.T, file []byte) *record.Reader {
	t.Helper()
	r, err := record.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// A star has many flows in one trial: each has addresses of its own.
func TestAddressesTellFlows(t *testing.T) {
	const most = 300 // of one host in a session
	for _, family := range []int{4, 6} {
		seen := map[string]uint16{}
		for number := range uint16(most) {
			var b [14 + 40 + 8 + 16]byte
			frame(b[:], &record.Flow{Flow: number, Family: family, PayloadBytes: 64}, &record.Packets{Flow: number})
			addresses := string(b[26:34])
			if family == 6 {
				addresses = string(b[22:54])
			}
			if other, known := seen[addresses]; known {
				t.Fatalf("IPv%d: flows %d and %d both have the addresses % x", family, other, number, addresses)
			}
			seen[addresses] = number
		}
	}
}
