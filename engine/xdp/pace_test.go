package xdp

import (
	"math"
	"math/bits"
	"testing"

	"pelt/engine"
	"pelt/model"
	"pelt/unit"
)

func TestInterval(t *testing.T) {
	for _, text := range []string{"1pps", "3pps", "333333pps", "14880952pps", "1mpps", "every 7us", "95mbit"} {
		c, _ := mustRate(t, text).Schedule(100)
		for _, n := range []uint64{1, 2, 7, 64} {
			whole, rest, parts := interval(c, n)
			got := (float64(whole) + float64(rest)/float64(parts)) / float64(n)
			want := 1e9 / c.PPS()
			if math.Abs(got-want) > want*1e-9 || rest >= parts || bits.Len64(parts) > 32 {
				t.Errorf("%s by %d: %d + %d/%d is %v ns a packet, want %v", text, n, whole, rest, parts, got, want)
			}
		}
	}
}

func mustRate(t interface {
	Helper()
	Fatal(...any)
}, text string) unit.Rate {
	t.Helper()
	r, err := unit.ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A profile is for sockets; the frames of one can be received.
func TestProfilesWantSockets(t *testing.T) {
	f := model.Flow{PayloadBytes: 64, Rate: unit.PacketRate(1000), Streams: 1,
		Profile: &model.Profile{Kind: model.Poisson, Seed: 1}}
	if why := Unfit(engine.Send, f); why.Code == "" {
		t.Error("a sender of frames takes a profile")
	}
	if why := Unfit(engine.Receive, f); why.Code != "" {
		t.Errorf("a receiver does not take a profile: %s", why)
	}
}
