package model

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
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

// TestPathMTULevel: the word is possible wherever a payload is, and its number stands there once, in its place.
func TestPathMTULevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mtu, number := Word(PathMTULevel), Number(1372)
		levels := rapid.SliceOfNDistinct(rapid.SampledFrom([]Value{mtu, number, Number(64), Number(512), Number(1472)}),
			1, 5, rapid.ID).Draw(t, "levels")
		streams := Factor{Knob: "streams", Levels: []Value{Number(1), Number(2)}}
		p := samplePlan(func(p *Plan) { p.Factors = []Factor{{payloadKnob, slices.Clone(levels)}, streams} })
		asks := slices.Contains(levels, mtu)
		got, twice := p.WithPayload(1372)
		var want []Value
		for _, v := range levels {
			if v == mtu {
				v = number
			}
			if !slices.Contains(want, v) {
				want = append(want, v)
			}
		}
		if err := cmp.Or(p.Check(), got.Check()); err != nil || p.AsksPathMTU() != asks || got.AsksPathMTU() {
			t.Fatalf("%v: asks %v, %v", levels, p.AsksPathMTU(), err)
		}
		if !slices.Equal(got.Factors[0].Levels, want) || twice != (asks && slices.Contains(levels, number)) ||
			!reflect.DeepEqual(got.Factors[1], streams) || !slices.Equal(p.Factors[0].Levels, levels) {
			t.Fatalf("%v became %v, twice %v; want %v", levels, got.Factors, twice, want)
		}
	})
}
