package run

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pelt/engine"
	"pelt/fleet"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/record"
	"pelt/record/tap"
)

// The record of a trial whose far host died does not call lost what nobody was left to tell of.
func TestRecordWithoutTheReceiversReport(t *testing.T) {
	flow := model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 512,
		Streams: 1}
	r, err := newRecording(filepath.Join(t.TempDir(), "out.rec"), model.Plan{Flows: []model.Flow{flow}})
	testenv.Must(t, err)
	testenv.Must(t, r.open(model.Document{ID: "20261123-0000-abc", Started: time.Unix(1, 0)}))
	p := twoEnds()
	placed := fleet.Trial{Flows: []fleet.PlacedFlow{{Flow: flow}}}
	trial, err := r.begin(model.Trial{Flows: []model.Flow{flow}}, p, &placed, time.Unix(2, 0))
	testenv.Must(t, err)
	const recorded, told, sent = 90, 100, 160
	list := make([]record.Packet, recorded)
	for i := range list {
		list[i] = record.Packet{Sequence: uint64(i), SendNanos: uint64(i), ReceiveNanos: int64(i)}
	}
	block, err := record.Append(nil, &record.Packets{Trial: trial, List: list})
	testenv.Must(t, err)
	r.append(tap.Piece{Trial: trial, Packets: recorded, Block: block})
	result := model.Result{State: model.Aborted,
		Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP, Attempted: told, Received: told}}}
	out := fleet.Outcome{Flows: []fleet.FlowOutcome{{Send: &engine.Report{Send: &engine.SendReport{Attempted: sent,
		Streams: []uint64{sent}}}}}}
	r.finish(trial, placed, out, &result)
	f := result.Flows[0]
	if f.Record == nil || f.Record.Packets != recorded || f.Record.Dropped != told-recorded {
		t.Errorf("record %+v; want %d packets, %d left out", f.Record, recorded, told-recorded)
	}
	if slices.ContainsFunc(f.Ledger.Checks, func(c model.Check) bool { return c.Name == "recorded" }) {
		t.Errorf("checks %+v, though no account of the whole trial is there", f.Ledger.Checks)
	}
	testenv.Must(t, r.close(true))
	file, err := os.Open(r.path)
	testenv.Must(t, err)
	defer file.Close()
	blocks, err := record.NewReader(file)
	testenv.Must(t, err)
	for {
		b, err := blocks.Next()
		if err != nil {
			t.Fatalf("no closing block: %v", err)
		}
		if c, ok := b.(*record.Closed); ok {
			if len(c.Flows) != 1 || len(c.Flows[0].Attempted) != 0 {
				t.Errorf("closed with %+v; want no sequences beyond what came", c.Flows)
			}
			return
		}
	}
}
