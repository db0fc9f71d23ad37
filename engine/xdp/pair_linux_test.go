//go:build amd64 || arm64

package xdp

import (
	"testing"
	"time"
)

func TestPair(t *testing.T) {
	b := newBed(t)
	out, err := b.run(trial{measure: time.Second, warmup: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s, r := out.send, out.receive
	t.Logf("send %+v %+v", s, s.Send)
	t.Logf("gap %+v", s.Send.Gap)
	t.Logf("receive %+v %+v", r, r.Receive)
	t.Logf("delay %+v gap %+v", r.Receive.Tally.Delay, r.Receive.Gap)
}
