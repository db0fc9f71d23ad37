package run

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"pelt/engine"
	"pelt/fleet"
	"pelt/internal/testenv"
	"pelt/measure"
	"pelt/model"
	"pelt/record"
)

// fetched reads what a controller would have been given.
func fetched(t *testing.T, blocks []byte) (packets, ended, dropped uint64) {
	t.Helper()
	var decoder record.Decoder
	for len(blocks) > 0 {
		b, _, rest, err := decoder.Split(blocks)
		testenv.Must(t, err)
		switch b := b.(type) {
		case *record.Packets:
			packets += uint64(len(b.List))
		case *record.Stream:
			ended, dropped = ended+b.Packets, dropped+b.Dropped
		}
		blocks = rest
	}
	return packets, ended, dropped
}

func feed(m engine.Meter, from, n int) {
	batch := make([]model.Arrival, n)
	for i := range batch {
		k := uint64(from + i)
		noise := k * 0x9e3779b97f4a7c15 // random enough for large blocks
		noise = (noise ^ noise>>29) * 0xbf58476d1ce4e5b9 >> 40
		batch[i] = model.Arrival{Sequence: k, SendNanos: k*1000 + noise,
			ReceiveNanos: int64(k*1000 + noise*7%0xffffff), Bytes: 64}
	}
	m.Observe(0, batch)
}

func TestFarRecord(t *testing.T) {
	order := engine.Order{Flow: model.Flow{Streams: 1, PayloadBytes: 64}, Record: &model.RecordID{Trial: 3, Flow: 1}}
	fetch := func(r engine.Recording, from uint64) ([]byte, bool) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return r.Blocks(ctx, from, 512<<10)
	}

	t.Run("blocks that arrived are let go", func(t *testing.T) {
		r := farRecordingOf(8, 200<<10)
		defer r.Close()
		r.over = true
		r.blocks, r.bytes = [][]byte{make([]byte, 100), make([]byte, 100)}, 200
		before := r.blocks
		if fetch(r, 100); before[0] != nil || before[1] == nil {
			t.Errorf("blocks of %d and %d B are kept, want only the second", len(before[0]), len(before[1]))
		}
	})

	t.Run("an answer that was lost comes again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := farRecordingOf(8, 200<<10)
			m := r.Tap(order, measure.New(1, 64, 1e9, true, model.MaxMarksBytes))
			if got, done := fetch(r, 0); len(got) > 0 || done {
				t.Errorf("%d B, done %v before anything came", len(got), done)
			}
			feed(m, 0, 5000)
			r.Finish()
			synctest.Wait()
			lost, _ := fetch(r, 0)
			first, done := fetch(r, 0)
			if !bytes.Equal(lost, first) || len(first) == 0 {
				t.Errorf("%d B came, and %d B when asked for again", len(lost), len(first))
			}
			for !done {
				var more []byte
				more, done = fetch(r, uint64(len(first)))
				first = append(first, more...)
			}
			if p, ended, dropped := fetched(t, first); p != 5000 || ended != 5000 || dropped != 0 {
				t.Errorf("%d packets, %d + %d at the end; want 5000", p, ended, dropped)
			}
			r.Close()
		})
	})

	t.Run("what nobody fetches is left out and counted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := farRecordingOf(8, 200<<10)
			m := r.Tap(order, measure.New(1, 64, 1e9, true, model.MaxMarksBytes))
			const packets, batch = 200_000, 5000
			for at := 0; at < packets; at += batch {
				feed(m, at, batch)
				synctest.Wait() // what can be taken down is
			}
			r.Finish()
			var all []byte
			for done := false; !done; {
				var more []byte
				more, done = fetch(r, uint64(len(all)))
				all = append(all, more...)
			}
			p, ended, dropped := fetched(t, all)
			if p != ended || ended+dropped != packets || dropped == 0 {
				t.Errorf("%d packets, %d recorded + %d left out; want %d in all, and some left out", p, ended,
					dropped, packets)
			}
			if n, _ := m.Received(); n != packets {
				t.Errorf("the measurement has %d packets of %d", n, packets)
			}
			r.Close()
		})
	})

	t.Run("closed early it holds up nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := farRecordingOf(8, 200<<10)
			m := r.Tap(order, measure.New(1, 64, 1e9, true, model.MaxMarksBytes))
			for at := 0; at < 200_000; at += 5000 {
				feed(m, at, 5000)
			}
			r.Close()
			if _, done := fetch(r, 0); !done {
				t.Error("there is more to come of one that is closed")
			}
		})
	})
}

// What a host took down and did not hand over is not in the file, and counted.
func TestRecordThatIsNotFetched(t *testing.T) {
	p := model.Plan{Flows: []model.Flow{{Name: "up", Protocol: model.UDP, Streams: 2}}}
	r, err := newRecording(filepath.Join(t.TempDir(), "far.rec"), p)
	testenv.Must(t, err)
	testenv.Must(t, r.open(model.Document{Plan: p}))
	var blocks []byte
	for _, b := range []record.Block{
		&record.Packets{Trial: 1, List: []record.Packet{{Sequence: 0}, {Sequence: 1}}},
		&record.Stream{Trial: 1, Packets: 2}, // of the other one nothing came
	} {
		if blocks, err = record.Append(blocks, b); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Must(t, r.take(1, []uint16{0}, blocks))
	placed := fleet.Trial{Flows: []fleet.PlacedFlow{{Flow: p.Flows[0], Record: &model.RecordID{Trial: 1}}}}
	out := fleet.Outcome{Flows: []fleet.FlowOutcome{{
		// which no block of the file would hold
		Send:    &engine.Report{Send: &engine.SendReport{Streams: make([]uint64, 1<<20)}},
		Receive: &engine.Report{Receive: &engine.ReceiveReport{Tally: model.Tally{Received: 5, Duplicates: 1}}},
	}}}
	result := model.Result{Flows: []model.FlowResult{{Name: "up", Received: 5, Duplicates: 1}}}
	r.finish(1, placed, out, &result)
	f := result.Flows[0]
	if f.Record.Packets != 2 || f.Record.Dropped != 4 || !f.Ledger.Checks[0].Held || len(result.Warnings) != 1 {
		t.Errorf("record %+v, check %+v, warnings %v; want 4 of 6 packets left out", *f.Record, f.Ledger.Checks[0],
			result.Warnings)
	}
	testenv.Must(t, r.close(true))
}
