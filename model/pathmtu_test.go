package model

import (
	"slices"
	"testing"
)

func TestWholePayload(t *testing.T) {
	for _, c := range [][3]int{{4, 1500, 1472}, {6, 1500, 1452}, {0, 1400, 1372}, {4, 68, 40}, {4, 28, 0}, {4, 0, 0},
		{6, 47, 0}, {4, -1, 0}, {4, 65535, 65507}, {6, 65535, 65487}, {6, 1 << 20, MaxUDPPayload}} {
		if got := WholePayload(c[0], c[1]); got != c[2] {
			t.Errorf("IPv%d over %d B: %d B, want %d", c[0], c[1], got, c[2])
		} else if got > 0 && c[1] < 65536 && (Fragments(c[0], got, c[1]) != 1 || got < MaxUDPPayload &&
			Fragments(c[0], got+1, c[1]) == 1 && c[1] > 80) {
			t.Errorf("IPv%d over %d B: %d B is not the largest whole payload", c[0], c[1], got)
		}
	}
}

// TestPathMTULevel: the word is possible wherever a payload is, and its number stands there once.
func TestPathMTULevel(t *testing.T) {
	p := samplePlan(func(*Plan) {})
	word := func(levels ...Value) Plan {
		q := p
		q.Factors = []Factor{{Knob: "payload_bytes", Levels: levels},
			{Knob: "streams", Levels: []Value{Number(1), Number(2)}}}
		return q
	}
	mtu := Word(PathMTULevel)
	for _, c := range []struct {
		name   string
		levels []Value
		want   []Value
		twice  bool
	}{
		{"alone", []Value{mtu}, []Value{Number(1372)}, false},
		{"among others", []Value{Number(64), mtu, Number(512)}, []Value{Number(64), Number(1372), Number(512)}, false},
		{"named before", []Value{Number(1372), mtu}, []Value{Number(1372)}, true},
		{"named after", []Value{mtu, Number(64), Number(1372)}, []Value{Number(1372), Number(64)}, true},
		{"not asked", []Value{Number(64)}, []Value{Number(64)}, false},
	} {
		q := word(c.levels...)
		if err := q.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if q.AsksPathMTU() != slices.Contains(c.levels, mtu) {
			t.Errorf("%s: asks %v", c.name, q.AsksPathMTU())
		}
		got, twice := q.WithPayload(1372)
		if !slices.Equal(got.Factors[0].Levels, c.want) || twice != c.twice || len(got.Factors[1].Levels) != 2 {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got.Factors, twice, c.want, c.twice)
		}
		if !slices.Equal(q.Factors[0].Levels, c.levels) {
			t.Errorf("%s: the plan before was changed", c.name)
		}
		if err := got.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
