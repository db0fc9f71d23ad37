package fleet

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"pelt/engine"
	"pelt/model"
)

// coresFor is the load of a host: each core is less busy than the one before.
func coresFor(seconds, cores int) []model.Series {
	add := func(metric string, core *int, value float64) model.Series {
		s := model.Series{Metric: metric, Core: core, StepSeconds: 1}
		for range seconds {
			s.Values = append(s.Values, value)
		}
		return s
	}
	list := []model.Series{add("cpu_busy_ratio", nil, 0.5)}
	for core := range cores {
		list = append(list, add("cpu_softirq_ratio", &core, 0.01), add("cpu_idle_ratio", &core, float64(core+1)/100))
	}
	return list
}

// A soak of days on a host of many cores has a report all the same.
func TestReportOfManyCores(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	for name, c := range map[string]struct {
		report sessionReport
		cores  int
		kept   int // series
		said   func(sessionReport) int
	}{
		"too many": {sessionReport{}, 32, 1, func(r sessionReport) int { return len(r.Ends[1].Warnings) }},
		"few":      {sessionReport{}, 3, 7, func(r sessionReport) int { return len(r.Ends[1].Warnings) }},
		"a router": {sessionReport{Observed: &model.Observation{Router: &model.RouterWatch{},
			Series: coresFor(10_000, 32)}}, 32, 1, func(r sessionReport) int { return len(r.Observed.Router.Gaps) }},
	} {
		load := coresFor(10_000, c.cores)
		c.report.Load = &engine.Load{Series: load}
		c.report.Ends = map[int]engine.Report{1: {Receive: &engine.ReceiveReport{}}}
		c.report.shrink(limit)
		data, err := json.Marshal(c.report)
		if err != nil || len(data) > limit {
			t.Fatalf("%s: %d bytes, %v", name, len(data), err)
		}
		told, err := decode[sessionReport](data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := len(told.Load.Series); n != c.kept || told.Load.Series[0].Core != nil {
			t.Errorf("%s: %d series, want %d", name, n, c.kept)
		}
		if n := c.said(told); (n == 1) != (c.kept == 1) {
			t.Errorf("%s: it says so %d times", name, n)
		}
		if len(load) != 1+2*c.cores {
			t.Errorf("%s: the session's own account was changed", name)
		}
	}
}

// All reports of a trial share the room for them.
func TestReportsShareTheirRoom(t *testing.T) {
	w := newWire()
	c := quick(t, agentOn(w, "near"), agentOn(w, "far"))
	for room, want := range map[int64]int{4: 2, 3: 1, 1: 0} { // each is {}
		err := c.run(t.Context(), upTrial("near", "far", time.Second), func(run context.Context, tr *trial) error {
			if err := tr.prepare(run); err != nil {
				return err
			}
			tr.room = room
			got, err := tr.reports(run, tr.parties)
			if len(got) != want || (err == nil) != (want == 2) {
				t.Errorf("room for %d B: %d reports came, want %d; %v", room, len(got), want, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLongLists(t *testing.T) {
	t.Parallel()
	const listBytes = reportBytes / 2
	marks := func(bytes int, packets uint64) model.Marks {
		return model.Marks{Data: make([]byte, bytes), Packets: packets, Unlisted: 1}
	}
	r := sessionReport{
		Ends: map[int]engine.Report{1: {Receive: &engine.ReceiveReport{Missing: []model.Marks{marks(listBytes,
			100), marks(10, 5)}}}},
		Observed: &model.Observation{Drops: &model.Drops{Flows: []model.FlowDrops{{Streams: []model.Marks{marks(listBytes/2, 7)}}}}},
	}
	r.shrink(reportBytes)
	missing := r.Ends[1].Receive.Missing
	if missing[0].Packets != 0 || missing[0].Unlisted != 101 || len(missing[0].Data) != 0 {
		t.Errorf("the longest list stayed: %d B, %d packets, %d unlisted", len(missing[0].Data), missing[0].Packets,
			missing[0].Unlisted)
	}
	if missing[1].Packets != 5 || r.Observed.Drops.Flows[0].Streams[0].Packets != 7 {
		t.Error("a list that fits is gone")
	}
	if data, err := json.Marshal(r); err != nil || len(data) > reportBytes {
		t.Errorf("%d B, %v", len(data), err)
	}
}
