package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pelt/model"
	"pelt/record"
)

// TestRecordShowNamesItsFlag: a table that is cut names an output that the command has.
func TestRecordShowNamesItsFlag(t *testing.T) {
	t.Setenv("PELT_LANG", "en")
	blocks := []record.Block{&record.Header{Format: record.Format, Run: "r1", Started: time.Unix(1700000000, 0),
		Target: "lab:direct", ResolutionNS: 1}}
	for n := uint32(1); n <= 3; n++ {
		packets := &record.Packets{Trial: n}
		for i := range uint64(50) { // each second one is lost
			packets.List = append(packets.List, record.Packet{Sequence: 2 * i, SendNanos: i, ReceiveNanos: int64(i)})
		}
		blocks = append(blocks, &record.Trial{Trial: n, Cell: model.Cell{"payload_bytes": model.Number(64)},
			Flows: []record.Flow{{Name: "up", From: "sender", To: "receiver", PayloadBytes: 64, Streams: 1,
				Family: 4}}}, packets)
	}
	var file []byte
	for _, b := range blocks {
		var err error
		if file, err = record.Append(file, b); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "packets.rec")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, said strings.Builder
	if code := execute([]string{"record", "show", path}, &out, &said); code != exitOK ||
		!strings.Contains(out.String(), "more: --json has all") {
		t.Errorf("exit code %d: %s%s", code, out.String(), said.String())
	}
}
