package render

import (
	"image"
	"image/color"
	stddraw "image/draw"
	"image/png"
	"io"
	"math"
	"strconv"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"pelt/render/draw"
	"pelt/render/plain"
)

// canvas is pixels being painted, zoom of them for each pixel of a picture.
type canvas struct {
	*image.RGBA
	zoom  float64
	fonts [2]*opentype.Font // regular, bold
	faces map[facing]font.Face
}

type facing struct {
	size float64
	bold bool
}

// PNG writes a picture in its light colours, zoom times as many pixels wide as it is.
func PNG(w io.Writer, p draw.Picture, zoom float64) error {
	c := canvas{RGBA: image.NewRGBA(image.Rect(0, 0, int(math.Ceil(p.Width*zoom)), int(math.Ceil(p.Height*zoom)))),
		zoom: zoom, faces: map[facing]font.Face{}}
	for i, source := range [][]byte{goregular.TTF, gobold.TTF} {
		var err error
		if c.fonts[i], err = opentype.Parse(source); err != nil {
			return err
		}
	}
	stddraw.Draw(c, c.Bounds(), image.NewUniform(pixel(draw.Back, 1)), image.Point{}, stddraw.Src)
	for _, s := range p.Shapes {
		if s.Form == draw.Words {
			if err := c.words(s); err != nil {
				return err
			}
			continue
		}
		at := outline(s)
		if s.Fill != draw.None {
			opacity := s.Opacity
			if opacity == 0 {
				opacity = 1
			}
			c.fill(at, pixel(s.Fill, opacity))
		}
		if s.Stroke != draw.None {
			if s.Form != draw.Polyline {
				at = append(at, at[0], at[1])
			}
			for _, part := range stroke(at, s.Width, s.Dash.Lengths()) {
				c.fill(part, pixel(s.Stroke, 1))
			}
		}
	}
	return png.Encode(w, c)
}

// outline is a shape as the corners of a polygon, or of a line if that is what it is.
func outline(s draw.Shape) []float64 {
	switch s.Form {
	case draw.Box:
		x, y, w, h := s.At[0], s.At[1], s.At[2], s.At[3]
		r := min(s.Radius, w/2, h/2)
		var at []float64
		for i, corner := range [][2]float64{{x + w - r, y + h - r}, {x + r, y + h - r}, {x + r, y + r},
			{x + w - r, y + r}} {
			at = append(at, arc(corner[0], corner[1], r, float64(i)*math.Pi/2, math.Pi/2, 6)...)
		}
		return at
	case draw.Dot:
		return arc(s.At[0], s.At[1], s.Radius, 0, 2*math.Pi, 32)
	}
	return s.At
}

func arc(x, y, r, from, by float64, steps int) []float64 {
	var at []float64
	for i := range steps + 1 {
		a := from + by*float64(i)/float64(steps)
		at = append(at, x+r*math.Cos(a), y+r*math.Sin(a))
	}
	return at
}

// stroke makes a polygon of each stretch of a line, or of each dash, and of each joint of a whole line. dashes are the
// lengths of dashes and gaps in turn, which go on from stretch to stretch.
func stroke(at []float64, width float64, dashes []float64) [][]float64 {
	var out [][]float64
	next, left := 0, math.Inf(1) // left of a dash or a gap
	if len(dashes) > 0 {
		left = dashes[0]
	}
	for i := 2; i+1 < len(at); i += 2 {
		x0, y0, x1, y1 := at[i-2], at[i-1], at[i], at[i+1]
		length := math.Hypot(x1-x0, y1-y0)
		if length == 0 {
			continue
		}
		dx, dy := (x1-x0)/length, (y1-y0)/length
		if len(dashes) == 0 && i > 2 && width > 1 {
			out = append(out, arc(x0, y0, width/2, 0, 2*math.Pi, 10))
		}
		nx, ny := -dy*width/2, dx*width/2
		for a := 0.0; a < length; {
			b := min(a+left, length)
			if next%2 == 0 {
				out = append(out, []float64{x0 + dx*a + nx, y0 + dy*a + ny, x0 + dx*a - nx, y0 + dy*a - ny,
					x0 + dx*b - nx, y0 + dy*b - ny, x0 + dx*b + nx, y0 + dy*b + ny})
			}
			if left, a = left-(b-a), b; left < 1e-6 {
				next = (next + 1) % len(dashes)
				left = dashes[next]
			}
		}
	}
	return out
}

func (c canvas) fill(at []float64, ink color.Color) {
	left, top, right, bottom := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for i := 0; i+1 < len(at); i += 2 {
		left, right = min(left, at[i]*c.zoom), max(right, at[i]*c.zoom)
		top, bottom = min(top, at[i+1]*c.zoom), max(bottom, at[i+1]*c.zoom)
	}
	part := image.Rect(int(math.Floor(left)), int(math.Floor(top)), int(math.Ceil(right))+1,
		int(math.Ceil(bottom))+1).Intersect(c.Bounds())
	if part.Empty() {
		return
	}
	r := vector.NewRasterizer(part.Dx(), part.Dy())
	for i := 0; i+1 < len(at); i += 2 {
		x, y := float32(at[i]*c.zoom-float64(part.Min.X)), float32(at[i+1]*c.zoom-float64(part.Min.Y))
		if i == 0 {
			r.MoveTo(x, y)
		} else {
			r.LineTo(x, y)
		}
	}
	r.ClosePath()
	r.Draw(c, part, image.NewUniform(ink), image.Point{})
}

func (c canvas) words(s draw.Shape) error {
	face, err := c.face(facing{s.Size * c.zoom, s.Bold})
	if err != nil {
		return err
	}
	text := plain.Spaces(plain.Text(s.Text))
	x, y := s.At[0]*c.zoom, s.At[1]*c.zoom
	width := float64(font.MeasureString(face, text)) / 64
	x -= width * []float64{0, 0.5, 1}[s.Anchor]
	print := func(x, y float64, ink draw.Ink) {
		d := font.Drawer{Dst: c, Src: image.NewUniform(pixel(ink, 1)), Face: face,
			Dot: fixed.Point26_6{X: fixed.Int26_6(x * 64), Y: fixed.Int26_6(y * 64)}}
		d.DrawString(text)
	}
	if s.Halo {
		for i := range 12 {
			a := float64(i) * math.Pi / 6
			print(x+1.8*c.zoom*math.Cos(a), y+1.8*c.zoom*math.Sin(a), draw.Back)
		}
	}
	print(x, y, s.Fill)
	return nil
}

func (c canvas) face(f facing) (font.Face, error) {
	if face, ok := c.faces[f]; ok {
		return face, nil
	}
	source := c.fonts[0]
	if f.bold {
		source = c.fonts[1]
	}
	face, err := opentype.NewFace(source, &opentype.FaceOptions{Size: f.size, DPI: 72})
	if err == nil {
		c.faces[f] = face
	}
	return face, err
}

func pixel(ink draw.Ink, opacity float64) color.Color {
	rgb, _ := strconv.ParseUint(palette[ink].light[1:], 16, 32) // the palette is a literal
	return color.NRGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), uint8(255*opacity + 0.5)}
}
