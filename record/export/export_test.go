package export

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"pelt/model"
	"pelt/record"
)

var update = flag.Bool("update", false, "write the files anew; then read them with the programs they are for")

// small is a record with both IP versions, one clock and two, and a broken name.
func small(t *testing.T) []byte {
	t.Helper()
	var file []byte
	for _, b := range []record.Block{
		&record.Header{Format: record.Format, Run: "r1", Started: time.Unix(1700000000, 0), Tool: model.Tool{Version: "test"}, Target: "lab:direct", ResolutionNS: 1},
		&record.Trial{Trial: 1, Wire: 77, Started: time.Unix(1700000001, 0), Flows: []record.Flow{
			{Flow: 0, Name: "up", From: "sender", To: "receiver", PayloadBytes: 64, Streams: 2, OneClock: true, Family: 4},
			{Flow: 1, Name: `down, "back"`, From: "receiver", To: "sender", PayloadBytes: 1200, Streams: 1, Family: 6},
		}},
		&record.Packets{Trial: 1, List: []record.Packet{{Sequence: 0, SendNanos: 1000, ReceiveNanos: 5000}, {Sequence: 1, SendNanos: 2000, ReceiveNanos: 6100}, {Sequence: 9, SendNanos: 9000, ReceiveNanos: 13_000}}},
		&record.Packets{Trial: 1, Stream: 1, List: []record.Packet{{Sequence: 4, SendNanos: 1<<48 - 1, ReceiveNanos: 1<<48 + 7000}}},
		&record.Packets{Trial: 1, Flow: 1, List: []record.Packet{{Sequence: 1<<48 - 1, SendNanos: 5, ReceiveNanos: -3}, {Sequence: 0, SendNanos: 6, ReceiveNanos: 2}}},
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
	for name, write := range map[string]func(io.Writer, Source) error{
		"small.csv":  CSV,
		"small.pcap": func(w io.Writer, s Source) error { return Pcap(w, s, header) },
	} {
		var got bytes.Buffer
		if err := write(&got, source(t, small(t))); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s: %d B, want %d B, %v:\n%q\n%q", name, got.Len(), len(want), err, got.Bytes(), want)
		}
		broken(t, name, write)
	}
	broken(t, "parquet", Parquet)
}

// broken writes what cannot be written whole.
func broken(t *testing.T, name string, write func(io.Writer, Source) error) {
	t.Helper()
	cut := small(t)
	var whole Cut
	if err := write(io.Discard, source(t, cut[:len(cut)-1])); !errors.As(err, &whole) {
		t.Errorf("%s of a cut record: %v", name, err)
	}
	if err := write(full{}, source(t, small(t))); !errors.Is(err, errFull) {
		t.Errorf("%s to a full disk: %v", name, err)
	}
}

func source(t *testing.T, file []byte) Source {
	t.Helper()
	r, err := record.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return Source{Reader: r}
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
			frame(b[:], &flow{Flow: record.Flow{Flow: number, Family: family, PayloadBytes: 64}}, &record.Packets{Flow: number})
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

// What Parquet holds is what CSV does, group after group.
func TestParquet(t *testing.T) {
	file := small(t)
	many := &record.Packets{Trial: 1}
	for i := range uint64(5000) {
		many.List = append(many.List, record.Packet{Sequence: 100 + 3*i, SendNanos: 10_000 + 25_000*i, ReceiveNanos: int64(13_000 + 25_010*i)})
	}
	head, tail := file[:0:0], []record.Block{many, &record.Closed{Trial: 1}, &record.End{}}
	r, err := record.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	if head, err = record.Append(head, &h); err != nil {
		t.Fatal(err)
	}
	for {
		b, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if _, over := b.(*record.Closed); over {
			break
		}
		if head, err = record.Append(head, b); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range tail {
		if head, err = record.Append(head, b); err != nil {
			t.Fatal(err)
		}
	}
	var rows, table bytes.Buffer
	if err := errors.Join(CSV(&rows, source(t, head)), Parquet(&table, source(t, head))); err != nil {
		t.Fatal(err)
	}
	read, err := parquet.Read[parquetRow](bytes.NewReader(table.Bytes()), int64(table.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	text.WriteString("trial,flow,stream,sequence,send_ns,receive_ns,delay_ns\n")
	for _, x := range read {
		fmt.Fprintf(&text, "%d,%s,%d,%d,%d,%d,", x.Trial, field(x.Flow), x.Stream, x.Sequence, x.Send, x.Receive)
		if x.Delay != nil {
			fmt.Fprint(&text, *x.Delay)
		}
		text.WriteByte('\n')
	}
	if text.String() != rows.String() || len(read) < 5000 {
		t.Errorf("%d rows of Parquet are not those of CSV", len(read))
	}
}
