package tcp

import (
	"slices"
	"testing"
	"time"

	"pelt/engine"
	"pelt/engine/tcpinfo"
	"pelt/model"
	"pelt/unit"
)

func TestPlannedSegments(t *testing.T) {
	for _, c := range []struct {
		name                 string
		attempted, due, made uint64
		want                 uint64
	}{
		{"all made", 1000, 1000, 1000, 1000},
		{"a tenth not made", 900, 1000, 900, 1000},
		{"writes joined, all made", 500, 1000, 1000, 500},
		{"writes split, half made", 4500, 200, 100, 9000},
		{"none made", 0, 1000, 0, 1000},
	} {
		if got := plannedSegments(c.attempted, c.due, c.made); got != c.want {
			t.Errorf("%s: planned(%d, %d, %d) = %d, want %d", c.name, c.attempted, c.due, c.made, got, c.want)
		}
	}
}

func TestWritesDue(t *testing.T) {
	f := flow(2, 64, false)
	f.Rate = unit.PacketRate(1000)
	e := &end{order: engine.Order{Flow: f, Timing: timing(time.Second, 10*time.Second, 0)}}
	for _, c := range []struct {
		name string
		span span
		want uint64
	}{
		{"to the end", span{ended: 11 * time.Second, complete: true}, 10_000},
		{"read late", span{ended: 12 * time.Second, complete: true}, 10_000},
		{"stopped", span{ended: 3 * time.Second}, 2000},
		{"stopped in the warm-up", span{}, 0},
	} {
		e.streams = nil
		for i := range 2 {
			e.streams = append(e.streams, &stream{phases: e.order.Phases(e.order.Schedules(), i, 1, nil)})
		}
		e.span = c.span
		for range 2 { // the doubts ask again
			if due := e.due(); due != c.want {
				t.Errorf("%s: %d, want %d", c.name, due, c.want)
			}
		}
	}
}

// A counter of 32 bits goes on in the series.
func TestRetransmitsOverTheWrap(t *testing.T) {
	row := make([]tcpinfo.Info, 4)
	for i, n := range []uint64{1 << 30, 2 << 30, 3 << 30, 5} {
		row[i].Figure[tcpinfo.Retransmits] = n
	}
	r := &readings{e: &end{streams: []*stream{{}}}, rows: [][]tcpinfo.Info{row}}
	for _, s := range r.series() {
		if s.Metric == model.SeriesRetransmits &&
			!slices.Equal(s.Values, []float64{1 << 30, 2 << 30, 3 << 30, 1<<32 + 5}) {
			t.Errorf("got %v", s.Values)
		}
	}
}
