package xdp

import (
	"context"
	"errors"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

var errNotReady = errors.New("not ready")

// slowEnd does in ready what a test asks.
type slowEnd struct{ while func() }

func (e slowEnd) ready() (r model.Reason, _ error)  { e.while(); return r, errNotReady }
func (slowEnd) silence(int)                         {}
func (slowEnd) run(context.Context) error           { return nil }
func (slowEnd) count() engine.Snapshot              { return engine.Snapshot{Packets: 3} }
func (slowEnd) account(*engine.Report, engine.Sent) {}
func (slowEnd) mode() (r model.Reason)              { return r }
func (slowEnd) close() error                        { return nil }

// Counting does not wait for the kernel: End.Stop would wait with it.
func TestCountWhileRunPrepares(t *testing.T) {
	tr := &transport{}
	tr.frames = slowEnd{func() {
		counted := make(chan engine.Snapshot, 1)
		go func() { counted <- tr.Count() }()
		select {
		case n := <-counted:
			if n.Packets != 3 {
				t.Errorf("counted %+v", n)
			}
		case <-time.After(testenv.Patience):
			t.Error("Count waits for Run")
		}
	}}
	if err := tr.Run(func() {}); !errors.Is(err, errNotReady) {
		t.Error(err)
	}
}
