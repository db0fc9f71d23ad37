package chart

import (
	"bytes"
	"image"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/report/internal/heat"
	"pelt/report/internal/sample"
)

// The picture of a whole sweep has the colours of both ends of its scale.
func TestHeatMapOfASweep(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, sample.Sweep(), "png"); err != nil {
		t.Fatal(err)
	}
	img, _, err := image.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	near := func(place float64) int {
		want, n := heat.Colour(place), 0
		for y := 0; y < img.Bounds().Dy(); y += 3 {
			for x := 0; x < 1330; x += 3 { // left of the colour bar
				r, g, bl, _ := img.At(x, y).RGBA()
				d := func(a uint32, b uint8) int { return max(int(a>>8)-int(b), int(b)-int(a>>8)) }
				if d(r, want.R)+d(g, want.G)+d(bl, want.B) < 24 {
					n++
				}
			}
		}
		return n
	}
	for _, c := range []struct{ share, least float64 }{{0.224, 100}, {0.75, 5000}, {1, 2000}} {
		if n := near(c.share); float64(n) < c.least {
			t.Errorf("%d pixels of the colour at %v of the best; want %v or more", n, c.share, c.least)
		}
	}
	var svg bytes.Buffer
	if err := Write(&svg, sample.Sweep(), "svg"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1472", "10240", "interval (ms)", "payload (B)", "not separable from it", "96.6 Mbit/s"} {
		if words := svgText(t, bytes.NewReader(svg.Bytes())); !strings.Contains(words, want) {
			t.Errorf("picture says %q; want %q in it", words, want)
		}
	}
}

// A run of which nothing can be drawn over two knobs is drawn otherwise.
func TestSweepWithoutNumbers(t *testing.T) {
	d := sample.Router()
	d.Plan.Command, d.Plan.Factors = "sweep", nil
	f, err := compose(d, Auto)
	if err != nil || f.heat != nil || len(f.panels) != 2 {
		t.Errorf("%d panels, %v; want the picture of sizes", len(f.panels), err)
	}
}

// No figure or level, however odd, may stop a heat map.
func TestOddSweepsAreDrawn(t *testing.T) {
	odd := rapid.SampledFrom([]float64{0, -1, 1, 1e-300, 1e300, math.MaxFloat64, -math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 12345.678})
	rapid.Check(t, func(t *rapid.T) {
		d := sample.SmallSweep()
		d.Results = d.Results[:rapid.IntRange(1, 12).Draw(t, "results")]
		for i := range d.Plan.Factors {
			f := &d.Plan.Factors[i]
			f.Levels = []model.Value{model.Number(odd.Draw(t, "level")), model.Word("max")}[:rapid.IntRange(0, 2).Draw(t, "levels")]
		}
		for i := range d.Results {
			for _, k := range []string{"payload_bytes", "interval_ns"} {
				d.Results[i].Cell[k] = model.Number(odd.Draw(t, k))
			}
			if len(d.Results[i].Flows) > 0 {
				d.Results[i].Flows[0].GoodputBPS = odd.Draw(t, "goodput")
			}
		}
		if err := WriteKind(io.Discard, d, "svg", Auto); err != nil {
			t.Fatal(err)
		}
	})
}
