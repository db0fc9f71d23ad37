package run

import (
	"context"
	"strings"
	"testing"
	"time"

	"pelt/plan"
)

// What cannot be measured is a line that says why, beside what can.
func TestSpeeds(t *testing.T) {
	plans, err := plan.Speed("lab:"+Loopback, 1, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plans {
		plans[i].Factors[0].Levels = plans[i].Factors[0].Levels[:1]
	}
	list, err := Speeds(context.Background(), plans, Options{})
	if err != nil || len(list) != 2 {
		t.Fatalf("got %+v, %v; want a line for each engine", list, err)
	}
	if u := list[0]; u.Engine != "udp" || u.FrameBytes != 64 || u.ReceivePPS <= 0 {
		t.Errorf("sockets: %+v", u)
	}
	if x := list[1]; x.Engine != "xdp:xdp" || x.ReceivePPS != 0 || !strings.Contains(x.Why, "xdp: ") {
		t.Errorf("frames on loopback: %+v", x)
	}
}
