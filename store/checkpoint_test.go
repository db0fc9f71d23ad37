package store

import (
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
)

// What was known of a trial is told until its result takes its place.
func TestCheckpoints(t *testing.T) {
	s := open(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	told := func(try int, n uint64) model.Checkpoint {
		return model.Checkpoint{Cell: model.Cell{"payload_bytes": model.Number(64)},
			Started: at.Add(time.Duration(try) * time.Minute), ElapsedS: float64(n),
			Flows:  []model.FlowSoFar{{Name: "up", Protocol: model.UDP, Attempted: n, Received: n}},
			Series: []model.Series{{Metric: "send_pps", Flow: "up", StepSeconds: 1, Values: []float64{1}}}}
	}
	run, err := s.Create(document())
	testenv.Must(t, err)
	check := func(what string, states ...model.State) []model.Result {
		t.Helper()
		d, err := s.Load(run.ID())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if len(d.Results) != len(states) {
			t.Fatalf("%s: %d results, want %v", what, len(d.Results), states)
		}
		for i, r := range d.Results {
			if r.State != states[i] {
				t.Errorf("%s: result %d is %s, want %s", what, i, r.State, states[i])
			}
		}
		return d.Results
	}
	put := func(c model.Checkpoint) {
		t.Helper()
		testenv.Must(t, run.Checkpoint(c))
	}
	put(told(0, 10))
	put(told(0, 20))
	if r := check("while it runs", model.Aborted); r[0].Flows[0].Attempted != 20 || len(r[0].Series[0].Values) != 2 {
		t.Errorf("%+v", r[0])
	}
	if list, err := s.List(); err != nil || len(list) != 1 || list[0].State != Running || list[0].Trials != nil {
		t.Errorf("%+v, %v", list, err)
	}
	put(told(1, 5)) // it was killed, and resumed
	check("its second try", model.Aborted, model.Aborted)
	c := told(1, 5)
	testenv.Must(t, run.Append(model.Result{Cell: c.Cell, Started: c.Started, State: model.Valid}))
	check("it is done", model.Aborted, model.Valid)
	testenv.Must(t, run.Close())
}

// What is written can be read again, and checkpoints leave room for the result.
func TestReadable(t *testing.T) {
	for _, c := range []struct {
		length int64
		line   int
		most   int64
		want   bool
	}{
		{0, 100, maxFile, true}, {0, maxLine, maxFile, true}, {0, maxLine + 1, maxFile, false},
		{maxFile / 2, 100, maxFile / 2, false}, {maxFile / 2, maxLine, maxFile, true}, {maxFile - 10, 11, maxFile,
			false},
	} {
		if err := readable(c.length, c.line, c.most); (err == nil) != c.want {
			t.Errorf("%d bytes behind %d of %d: %v", c.line, c.length, c.most, err)
		}
	}
}
