package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
	"pelt/unit"
)

// fakeRecording makes blocks of 8 B that count up, some with each answer, and more
// once it is finished.
type fakeRecording struct {
	mu       sync.Mutex
	made     uint64 // blocks
	most     uint64
	finished bool
	closed   bool
	silent   bool // never done
}

func (f *fakeRecording) Tap(_ engine.Order, m engine.Meter) engine.Meter { return m }

func (f *fakeRecording) Finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = true
}

func (f *fakeRecording) Blocks(_ context.Context, from uint64, most int) (data []byte, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made < 100 || f.finished {
		f.made = min(f.made+70, f.most)
	}
	for k := from / 8; k < f.made && len(data)+8 <= most; k++ {
		data = binary.BigEndian.AppendUint64(data, k)
	}
	return data, f.finished && from/8+uint64(len(data))/8 == f.most && !f.silent
}

func (f *fakeRecording) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

func recordTrial() Trial {
	trial := upTrial("near", "far", 200*time.Millisecond)
	trial.Flows[0].Record = &model.RecordID{Trial: 5, Flow: 0}
	return trial
}

// endlessRecording always has more.
type endlessRecording struct{ fakeRecording }

func (*endlessRecording) Blocks(context.Context, uint64, int) ([]byte, bool) {
	return make([]byte, 64<<10), false
}

// A host sends no more of a record than its packets can fill, be the trial over or not.
func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate unit.Rate
		most int
		why  string
	}{
		{unit.PacketRate(100_000), 1 << 20, "it is longer than 0.1 MB, which the packets of the trial cannot fill"},
		{unit.Rate{}, 1 << 20, "it reached the limit of 0.9 MB for a flow without a rate; a flow with --rate has more"},
	} {
		w := newWire()
		a, b := agentOn(w, "near"), agentOn(w, "far")
		b.Recording = func() engine.Recording { return &endlessRecording{} }
		trial, came := recordTrial(), 0
		trial.Flows[0].Flow.Rate, trial.Timing.MeasureSeconds = c.rate, 0.01
		trial.Record = func(_ string, blocks []byte) error {
			came += len(blocks)
			return nil
		}
		out := measured(t, quick(t, a, b), trial, nil)
		if out.Flows[0].Receive == nil {
			t.Errorf("%v: %+v", c.rate, out.Flows)
		}
		if want := "the record of far is not whole: " + c.why; len(out.Warnings) != 1 ||
			finding.Clause(out.Warnings[0]) != want || came > c.most {
			t.Errorf("%v: %d B came, warnings %v; want %v", c.rate, came, out.Warnings, want)
		}
	}
}

// Flows without a rate share what one host may send of a record.
func TestRecordsOfManyFlowsShareTheLimit(t *testing.T) {
	p := &party{}
	flood := func(rate unit.Rate) trialEnd {
		return trialEnd{party: p, endOrder: endOrder{Order: engine.Order{Record: &model.RecordID{},
			Flow: model.Flow{Rate: rate, Streams: 1}, Timing: model.Timing{MeasureSeconds: 3600}}}}
	}
	one, _ := (&trial{ends: []trialEnd{flood(unit.Rate{})}}).recordBytes(p)
	two, paced := (&trial{ends: []trialEnd{flood(unit.Rate{}), flood(unit.Rate{})}}).recordBytes(p)
	if one < recordFlood || two-one > recordBlock*(2+4*3600) || paced {
		t.Errorf("one flow may fill %d B, two %d B; paced: %v", one, two, paced)
	}
	ten, paced := (&trial{ends: []trialEnd{flood(unit.PacketRate(10))}}).recordBytes(p)
	if want := uint64(recordSlack + recordBlock*(2+4*3600) + recordPacket*10*3600); ten != want || !paced {
		t.Errorf("10 packets a second may fill %d B, want %d B; paced: %v", ten, want, paced)
	}
}

func TestRefusedBlocksEndTheRecordOnly(t *testing.T) {
	t.Parallel()
	w := newWire()
	a, b := agentOn(w, "near"), agentOn(w, "far")
	b.Recording = func() engine.Recording { return &fakeRecording{most: 1000, silent: true} }
	c := quick(t, a, b)
	trial := recordTrial()
	trial.Record = func(string, []byte) error { return errors.New("a block is damaged") }
	out := measured(t, c, trial, nil)
	if out.Flows[0].Receive == nil {
		t.Errorf("%+v", out.Flows)
	}
	if len(out.Warnings) != 1 || out.Warnings[0].Code != model.RecordCut ||
		!strings.Contains(finding.Clause(out.Warnings[0]), "a block is damaged") {
		t.Errorf("warnings %v", out.Warnings)
	}
}
