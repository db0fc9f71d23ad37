package model

import (
	"slices"
	"testing"
)

func TestFlowsOfTransfers(t *testing.T) {
	good := Flow{Name: "up", Protocol: TCP, From: Sender, To: Receiver, PayloadBytes: 1000, Streams: 3, Bulk: true,
		Bytes: 8, Control: "cubic+bbr", StaggerSeconds: 2}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	var parts []uint64
	var controls []string
	for i := range good.Streams {
		parts, controls = append(parts, good.StreamBytes(i)), append(controls, good.StreamControl(i))
	}
	if !slices.Equal(parts, []uint64{3, 3, 2}) || !slices.Equal(controls, []string{"cubic", "bbr", "cubic"}) {
		t.Errorf("streams carry %v with %v", parts, controls)
	}
}

func TestTrialsThatFailed(t *testing.T) {
	at := func(control string, repeat int, state State) Result {
		return Result{Cell: Cell{"control": Word(control)}, Repeat: repeat, State: state}
	}
	d := Document{Results: []Result{
		at("bbr", 0, Invalid), at("bbr", 0, Valid), at("bbr", 1, Invalid), at("bbr", 1, Invalid), at("bbr", 1, Invalid),
		at("cubic", 0, Valid), at("cubic", 0, Invalid), at("cubic", 1, Aborted),
	}}
	if failed, trials := d.Failed(); failed != 1 || trials != 3 {
		t.Errorf("%d of %d failed, want 1 of 3", failed, trials)
	}
	for _, c := range []struct {
		share  float64
		why    string
		failed int
	}{{1, SenderCoreFull, 2}, {1.5, SenderCoreFull, 1}, {1.5, HostSlept, 2}} { // a sender need not keep more than the path carries
		load := d
		load.Results = append(slices.Clone(d.Results),
			Result{Cell: Cell{"load_ratio": Number(c.share)}, State: Invalid, Why: Reasons{{Code: c.why}}})
		if failed, _ := load.Failed(); failed != c.failed {
			t.Errorf("a load of %v, %s: %d failed, want %d", c.share, c.why, failed, c.failed)
		}
	}
}
