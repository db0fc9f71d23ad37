package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/report/internal/sample"
	"pelt/report/rows"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ path, want, err string }{
		{"a.png", "png", ""}, {"dir.x/a.JPEG", "jpeg", ""}, {"a.jpg", "jpeg", ""}, {"a.svg", "svg", ""},
		{"a.gif", "", ".png, .jpeg or .svg"}, {"a", "", ".png, .jpeg or .svg"}, {"", "", ".png, .jpeg or .svg"}, {"-", "", ".png, .jpeg or .svg"},
	} {
		got, err := Format(c.path)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("Format(%q) = %q, %v; want %q, error with %q", c.path, got, err, c.want, c.err)
		}
	}
}

func TestWriteUnknownFormat(t *testing.T) {
	if err := Write(io.Discard, sample.Router(), "gif"); err == nil || !strings.Contains(err.Error(), "png, jpeg or svg") {
		t.Errorf("Write(gif) = %v; want an error that names the formats", err)
	}
}

func TestPictures(t *testing.T) {
	for _, d := range sample.All() {
		for _, format := range []string{"png", "jpeg"} {
			t.Run(d.Name+"/"+format, func(t *testing.T) {
				var b bytes.Buffer
				err := Write(&b, d.Doc, format)
				if !hasFlows(d.Doc) {
					if !errors.Is(err, ErrNothing) || b.Len() > 0 {
						t.Fatalf("Write = %v and %d bytes; want ErrNothing and none", err, b.Len())
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				img, kind, err := image.Decode(&b)
				if err != nil || kind != format {
					t.Fatalf("decoded as %q, %v; want %s", kind, err, format)
				}
				if s := img.Bounds().Size(); s.X != 1600 || s.Y != 1080 {
					t.Errorf("size %v; want 1600x1080", s)
				}
				if n := coloured(img); n < 200 {
					t.Errorf("%d coloured pixels: no curve was drawn", n)
				}
			})
		}
	}
}

func hasFlows(d model.Document) bool {
	for _, r := range d.Results {
		if len(r.Flows) > 0 {
			return true
		}
	}
	return false
}

// coloured counts pixels that are neither grey nor near it: only curves are.
func coloured(img image.Image) int {
	n := 0
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y += 2 {
		for x := b.Min.X; x < b.Max.X; x += 2 {
			r, g, bl, _ := img.At(x, y).RGBA()
			if max(r, g, bl)-min(r, g, bl) > 0x5000 {
				n++
			}
		}
	}
	return n
}

func TestSVG(t *testing.T) {
	for _, d := range sample.All() {
		for _, kind := range []string{Size, Time, Heat, Load, Control, Auto} {
			t.Run(d.Name+"/"+kind, func(t *testing.T) {
				var b bytes.Buffer
				err := WriteKind(&b, d.Doc, "svg", kind)
				if errors.Is(err, ErrNothing) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				words := svgText(t, &b)
				for _, want := range []string{"UTC", "each"} {
					if !strings.Contains(words, want) {
						t.Errorf("text %q lacks %q", words, want)
					}
				}
			})
		}
	}
}

// svgText reads every element: SVG that is not XML or holds a script fails.
func svgText(t *testing.T, r io.Reader) string {
	t.Helper()
	var words strings.Builder
	d := xml.NewDecoder(r)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return words.String()
		}
		if err != nil {
			t.Fatalf("the SVG is not XML: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			if n := x.Name.Local; n == "script" || n == "image" || n == "a" || n == "foreignObject" {
				t.Fatalf("the SVG holds <%s>", n)
			}
		case xml.CharData:
			words.Write(x)
			words.WriteByte('\n')
		}
	}
}

func TestCaption(t *testing.T) {
	for _, c := range []struct {
		name string
		doc  model.Document
		kind string
		want []string
	}{
		{"host and port", sample.Router(), Size, []string{"host 192.168.2.5 · port 7358", "16 to 6400 B (8 sizes)", "3 s each", "range of 3 trials", "2026-11-14", "pelt 0.1.0"}},
		{"over time", sample.Single(), Time, []string{"host 192.168.2.5 ·", "payload 64 B", "2 min each", "After 80 s", "seconds", "received 262 → 100 kpps", "upright line: a change was found"}},
		{"soak", sample.Soak(), Auto, []string{"lost per second", "lost: queue on the way at router full (QDISC_DROP)", "lost: unattributed", "router=limit=150mbit", "received 40.0 → 33.0 kpps", "burst of loss", "seconds",
			"upright line: a change was found", "dashed: changed as planned", "grey: an end was not heard (2 times)"}},
		{"long soak", sample.LongSoak(), Time, []string{"minutes", "lost per second", "30 kpps"}},
		{"cut soak", sample.CutSoak(), Time, []string{"grey: an end was not heard (once)", "received", "sent"}},
		{"lab", sample.Both(), Size, []string{"path lab:router"}},
		{"ipv6", sample.IPv6(), Size, []string{"host 2001:db8::5 · port 7358"}},
		{"invalid", sample.Invalid(), Size, []string{"hollow: not a valid trial"}},
		{"tcp", sample.TCP(), Size, []string{"segments received", "writes"}},
		{"two directions", sample.Both(), Size, []string{"up", "down", "received", "sent"}},
		{"rates", sample.Rates(), Auto, []string{"offered rate", "400 kpps"}},
		{"sweep", sample.SmallSweep(), Auto, []string{"payload (B)", "1472", "interval (ms)", "receive speed (Mbit/s)", "receive buffer 212992 B", "receive buffer 212992 B, 3.87 Mbit/s", "thin frame", "crossed: not a valid trial", "1 000 packets each", "thick frame", "1 more not drawn", "3.87 Mbit/s"}},
		{"bench", sample.Bench(), Auto, []string{"LAN→WAN 1518 B", "both TCP", "log", "955 Mbit/s", "148 kpps", "34 % busy", "router's CPU, all cores", "busiest core", "Xiaomi Mi Router 3G", "means of 1 to 2 trials"}},
		{"bench in a lab", sample.BenchLab(), Auto, []string{"this machine's CPU, all cores", "path lab:nat"}},
		{"controls", sample.Controls(), Auto, []string{"completion time", "1 % loss", "17.3 s", "2.41×", "> 60.0 s", "goodput against delay", "path MTU 1500 B", "rate=100mbit", "10 valid trials of each setting, 80 MB each", "triangles: cut before the end"}},
		{"controls without delay", noDelay(), Control, []string{"10 % loss · transfers that had ended", "time (log scale)"}},
		{"mix", sample.ControlMix(), Auto, []string{"cubic+bbr", "92.3 Mbit/s", "goodput"}},
		{"one row", sample.Rates(), Heat, []string{"offered rate", "400 kpps", "receive speed (Mbit/s)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := WriteKind(&b, c.doc, "svg", c.kind); err != nil {
				t.Fatal(err)
			}
			words := strings.ReplaceAll(svgText(t, &b), "\n", " ")
			for _, want := range c.want {
				if !strings.Contains(words, want) {
					t.Errorf("picture says %q; want %q in it", words, want)
				}
			}
		})
	}
}

// noDelay is a comparison beside which no thin flow ran.
func noDelay() model.Document {
	d := sample.Controls()
	for i := range d.Control.Cells {
		d.Control.Cells[i].RTT95 = nil
	}
	return d
}

func TestAutoChoosesByCells(t *testing.T) {
	for _, c := range []struct {
		name   string
		doc    model.Document
		panels int
	}{{"several sizes", sample.Router(), 2}, {"one cell", sample.Single(), 1}} {
		f, err := compose(c.doc, Auto)
		if err != nil || len(f.panels) != c.panels {
			t.Errorf("%s: %d panels, %v; want %d", c.name, len(f.panels), err, c.panels)
		}
	}
	one := sample.Single()
	one.Results[0].Series = nil
	if f, err := compose(one, Auto); err != nil || len(f.panels) != 2 {
		t.Errorf("one cell without series: %d panels, %v; want the size picture", len(f.panels), err)
	}
}

// Labels of an axis must not run into each other, whatever sizes were measured.
func TestAcrossLabelsKeepApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(1, 65507).Draw(t, "size")) }), 1, 60).Draw(t, "sizes")
		a := across(rows.PayloadKey, values)
		const panel, character = 560.0, 5.6
		last, any := math.Inf(-1), false
		for _, tick := range a.ticks {
			if tick.Label == "" {
				continue
			}
			at := math.Log(tick.Value/a.min) / math.Log(a.max/a.min) * panel
			half := float64(len(tick.Label)) * character / 2
			if at-half < last {
				t.Fatalf("label %q starts at %.1f pt, the one before it ends at %.1f pt", tick.Label, at-half, last)
			}
			last, any = at+half, true
		}
		if !any {
			t.Fatal("no label at all")
		}
	})
}

func TestUpwardStartsAtZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := rapid.OneOf(rapid.Float64Range(1e-3, 1e14), rapid.Just(5e-324)).Draw(t, "highest")
		a := upward("", top, bitNames())
		if a.min != 0 || a.max < top || len(a.ticks) < 3 || len(a.ticks) > 8 {
			t.Fatalf("highest %g: axis %g..%g with %d ticks; want from 0, beyond the highest, 3 to 8 ticks", top, a.min, a.max, len(a.ticks))
		}
	})
}

// Whatever document can be read, it is drawn or refused, and an SVG is XML.
func FuzzDraw(f *testing.F) {
	for _, d := range sample.All() {
		d.Doc.Results = d.Doc.Results[:min(2, len(d.Doc.Results))]
		b, err := model.EncodeDocument(d.Doc)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := model.DecodeDocument(b, "fuzz")
		if err != nil {
			return
		}
		for _, kind := range []string{Size, Time, Heat} {
			var out bytes.Buffer
			if err := WriteKind(&out, doc, "svg", kind); err == nil {
				svgText(t, &out)
			}
		}
	})
}

// No figure, however odd, may stop or stall a picture.
func TestOddFiguresAreDrawn(t *testing.T) {
	odd := rapid.SampledFrom([]float64{0, -1, 1, 1e-300, 1e300, math.MaxFloat64, -math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 12345.678})
	sizes := rapid.SampledFrom([]int{0, -1, 16, 64, math.MaxInt32, math.MinInt32})
	rapid.Check(t, func(t *rapid.T) {
		d := sample.Streams()
		d.Results = d.Results[:rapid.IntRange(1, 6).Draw(t, "results")]
		d.Plan.Timing.MeasureSeconds = odd.Draw(t, "measure")
		for i := range d.Results {
			r := &d.Results[i]
			r.Cell["streams"] = model.Number(odd.Draw(t, "streams"))
			f := &r.Flows[0]
			f.PayloadBytes = sizes.Draw(t, "payload")
			f.SendPPS, f.ReceivePPS, f.GoodputBPS = odd.Draw(t, "sent"), odd.Draw(t, "received"), odd.Draw(t, "goodput")
			s := &r.Series[1]
			s.StartSeconds, s.StepSeconds, s.Values[0] = odd.Draw(t, "start"), odd.Draw(t, "step"), odd.Draw(t, "value")
		}
		for _, kind := range []string{Size, Time, Heat, Load, Control, Auto} {
			if err := WriteKind(io.Discard, d, "svg", kind); err != nil && !errors.Is(err, ErrNothing) {
				t.Fatal(err)
			}
		}
	})
}

// A verdict of normal length is never cut.
func TestTitleIsWhole(t *testing.T) {
	d := sample.Both()
	const long = "Up: at least roughly 212 kpps and 972 Mbit/s; down: at least roughly 215 kpps and 680 Mbit/s; both at once: at least roughly 165 kpps and 639 Mbit/s up, roughly 171 kpps and 603 Mbit/s down."
	for _, title := range []string{"Short.", long, long + " " + long} {
		d.Findings[0].Text = title
		var b bytes.Buffer
		if err := Write(&b, d, "svg"); err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(svgText(t, &b)), " ")
		if !strings.Contains(words, title) {
			t.Errorf("picture says %q; want %q in it", words, title)
		}
	}
}
