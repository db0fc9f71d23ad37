package contents

import (
	"bytes"
	"runtime"
	"slices"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/record"
)

func file(t *testing.T, blocks ...record.Block) *record.Reader {
	t.Helper()
	head := &record.Header{Format: record.Format, Run: "r1", Started: time.Unix(1700000000, 0), Target: "lab:direct",
		ResolutionNS: 1}
	var b []byte
	for _, x := range append([]record.Block{head}, blocks...) {
		var err error
		if b, err = record.Append(b, x); err != nil {
			t.Fatal(err)
		}
	}
	r, err := record.NewReader(bytes.NewReader(b))
	testenv.Must(t, err)
	return r
}

func trial(streams int) *record.Trial {
	return &record.Trial{Trial: 1, Cell: model.Cell{"payload_bytes": model.Number(64)}, Flows: []record.Flow{{
		Name: "up", From: "sender", To: "receiver", PayloadBytes: 64, Streams: streams, OneClock: true, Family: 4}}}
}

// came makes packets that are 10 µs apart when sent, and when they come.
func came(sequences ...uint64) *record.Packets {
	p := &record.Packets{Trial: 1}
	for i, s := range sequences {
		p.List = append(p.List, record.Packet{Sequence: s, SendNanos: 1_000_000 + s*10_000,
			ReceiveNanos: 1_000_000 + int64(i+1)*10_000})
	}
	return p
}

func TestFigures(t *testing.T) {
	closed := &record.Closed{Trial: 1, State: model.Valid, Flows: []record.ClosedFlow{{Attempted: []uint64{12}}}}
	d, err := Read(file(t, trial(1), came(0, 1, 2, 5, 3, 4, 4, 9), &record.Stream{Trial: 1, Packets: 8}, closed,
		&record.End{Packets: 8}))
	if err != nil || !d.Whole || len(d.Trials) != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	g := d.Trials[0].Of[0]
	if !g.AttemptedKnown || g.Attempted != 12 || g.Received != 7 || g.Lost != 5 || g.Duplicates != 1 || g.Packets != 8 {
		t.Errorf("figures %+v", g)
	}
	if want := []model.Span{{From: 6, Count: 3}, {From: 10, Count: 2}}; !slices.Equal(g.Losses, want) || g.LossRuns != 2 {
		t.Errorf("lost %+v, want %+v", g.Losses, want)
	}
	if g.DurationS != 70e-6 {
		t.Errorf("%v s", g.DurationS)
	}
}

func TestWhatIsNotKnown(t *testing.T) {
	for _, c := range []struct {
		name   string
		blocks []record.Block
		check  func(*testing.T, Document)
	}{
		{"cut in a trial", []record.Block{trial(1), came(0, 1, 4)}, func(t *testing.T, d Document) {
			if g := d.Trials[0].Of[0]; d.Whole || d.Cut == "" || g.AttemptedKnown || g.Lost != 2 {
				t.Errorf("%+v", d)
			}
		}},
		{"left out of the record", []record.Block{trial(1), &record.Packets{Trial: 1, Dropped: 3, List: came(4).List},
			&record.Stream{Trial: 1, Packets: 1, Dropped: 5},
			&record.Closed{Trial: 1, Flows: []record.ClosedFlow{{Attempted: []uint64{6}, Received: 6, Recorded: 1,
				Dropped: 5}}}, &record.End{}}, func(t *testing.T, d Document) {
			if g := d.Trials[0].Of[0]; g.Dropped != 5 || g.Lost != 5 || g.Received != 1 {
				t.Errorf("%+v", g)
			}
		}},
		{"not kept", []record.Block{trial(1), came(0), &record.Void{Trial: 1}, &record.End{}},
			func(t *testing.T, d Document) {
				if !d.Trials[0].NotKept || len(d.Trials[0].Of) != 1 {
					t.Errorf("%+v", d.Trials[0])
				}
			}},
		{"of no trial, flow or stream", []record.Block{came(0), trial(1),
			&record.Packets{Trial: 1, Flow: 9, List: came(0).List},
			&record.Packets{Trial: 1, Stream: 7, List: came(0).List},
			&record.Void{Trial: 8}, &record.Closed{Trial: 8}, &record.End{}}, func(t *testing.T, d Document) {
			if g := d.Trials[0].Of[0]; g.Received != 0 || g.Packets != 1 || g.DurationS != 0 {
				t.Errorf("%+v", g)
			}
		}},
		{"nothing came", []record.Block{trial(128),
			&record.Closed{Trial: 1, Flows: []record.ClosedFlow{{Attempted: make([]uint64, 128)}}}, &record.End{}},
			func(t *testing.T, d Document) {
				if g := d.Trials[0].Of[0]; g.Lost != 0 || g.LossRuns != 0 || !g.AttemptedKnown {
					t.Errorf("%+v", g)
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Read(file(t, c.blocks...))
			testenv.Must(t, err)
			c.check(t, d)
		})
	}
}

// A flow of which nothing came takes next to nothing, however many there are.
func TestNothingTakesNoMemory(t *testing.T) {
	closed := &record.Closed{Trial: 1, Flows: []record.ClosedFlow{{Attempted: make([]uint64, model.MaxStreams)}}}
	closed.Flows[0].Attempted[7] = 5
	blocks := slices.Repeat([]record.Block{trial(model.MaxStreams), closed}, 20)
	r := file(t, blocks...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := Read(r)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err != nil || len(d.Trials) != 20 || used > 5<<20 {
		t.Errorf("%d trials without a packet took %d B to read, %v", len(d.Trials), used, err)
	}
	if g := d.Trials[19].Of[0]; g.Lost != 5 || !slices.Equal(g.Losses, []model.Span{{Stream: 7, Count: 5}}) {
		t.Errorf("figures %+v", g)
	}
}

// A packet that says to have come years later takes no memory for the seconds in between.
func TestALeapInTimeTakesNoMemory(t *testing.T) {
	late := came(0, 1)
	late.List[1].ReceiveNanos += 1 << 60
	r := file(t, trial(1), late)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := Read(r)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err != nil || d.Trials[0].Of[0].Received != 2 || used > 5<<20 {
		t.Errorf("two packets took %d B to read: %+v, %v", used, d, err)
	}
}

// However many trials a file opens, the lists of their losses take no more than one bound; losses beyond are counted.
func TestTrialsShareTheListsOfLosses(t *testing.T) {
	room := allLists
	for i := range 2048 {
		o := begin(&Document{}, trial(1), room)
		if room -= o.lists; i == 0 && o.flows[0].listBytes != model.MaxMarksBytes || room < 0 || o.lists < 0 {
			t.Fatalf("trial %d of one flow has %d B for its list, %d B are left", i, o.flows[0].listBytes, room)
		}
	}
	var blocks []record.Block
	for i := range uint32(60) { // each is cut, and takes half of what is left
		one, p := trial(1), came(1, 3)
		one.Trial, p.Trial = i, i
		blocks = append(blocks, one, p)
	}
	d, err := Read(file(t, blocks...))
	testenv.Must(t, err)
	first, last := d.Trials[0].Of[0], d.Trials[59].Of[0]
	if first.Lost != 2 || first.LossRuns != 2 || first.Unlisted != 0 || last.Lost != 2 ||
		last.LossRuns+last.Unlisted != 2 || last.Unlisted == 0 {
		t.Errorf("figures %+v and %+v", first, last)
	}
}
