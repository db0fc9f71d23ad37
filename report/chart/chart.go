// Package chart draws a run as one picture: packet rate and goodput over
// packet size, goodput over two knobs as a heat map, the rate over seconds, of a
// soak with its losses and what changed, a router's rates beside its processor's time, or congestion controls beside each other.
//
// A model.Document comes in, the bytes of a PNG, JPEG or SVG go out. It judges
// nothing: the title is the run's own first finding. It is the only package
// that knows gonum.org/v1/plot, and it shares no state between calls.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/rows"
	"pelt/report/seconds"
)

// Kinds of picture.
const (
	Size    = "size"    // rate and goodput over packet size, or over what else varies
	Time    = "time"    // rate over seconds, of a soak with its losses
	Heat    = "heat"    // goodput over two knobs, as colours
	Load    = "load"    // rates beside the processor time of a router under test
	Control = "control" // congestion controls beside each other
	Auto    = "auto"    // Heat if the run is a sweep, Load if a router bench, Control if a comparison of controls, Size if it has several settings, else Time
)

// ErrNothing means the document has no figures that the picture could show.
var ErrNothing = errors.New("the run has no finished trial to draw")

// Size of the picture. Pixels are those of PNG and JPEG.
const (
	width   = 10 * vg.Inch
	height  = 6.75 * vg.Inch
	dpi     = 160
	quality = 92 // JPEG, 1..100: above it files grow and text does not improve
)

// Format is the picture format that a file name asks for: png, jpeg or svg.
func Format(path string) (string, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".png", ".svg":
		return ext[1:], nil
	case ".jpeg", ".jpg":
		return "jpeg", nil
	case "":
		return "", fmt.Errorf("chart file %q has no extension; want .png, .jpeg or .svg", path)
	default:
		return "", fmt.Errorf("chart file %q: unknown extension %q; want .png, .jpeg or .svg", path, ext)
	}
}

// Write draws the picture that suits the run, in a format that Format gave.
func Write(w io.Writer, doc model.Document, format string) error {
	return WriteKind(w, doc, format, Auto)
}

// WriteKind draws one kind of picture: Size, Time, Heat, Load, Control or Auto. ErrNothing is
// wrapped when the run has nothing of that kind.
func WriteKind(w io.Writer, doc model.Document, format, kind string) error {
	f, err := compose(doc, kind)
	if err != nil {
		return fmt.Errorf("drawing the chart: %w", err)
	}
	switch format {
	case "png", "jpeg":
		img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(color.White))
		f.draw(draw.New(img))
		err = encode(w, img.Image(), format)
	case "svg":
		c := vgsvg.NewWith(vgsvg.UseWH(width, height))
		f.draw(draw.New(c))
		err = writeSVG(w, c)
	default:
		return fmt.Errorf("chart format %q: want png, jpeg or svg", format)
	}
	if err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	return nil
}

// writeSVG names fonts of the same widths beside Liberation, which few readers of a picture have.
func writeSVG(w io.Writer, c *vgsvg.Canvas) error {
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	family := []byte("font-family:Liberation Sans;")
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), family, []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")))
	return err
}

func encode(w io.Writer, img image.Image, format string) error {
	if format == "png" {
		return png.Encode(w, img)
	}
	return jpeg.Encode(w, img, &jpeg.Options{Quality: quality})
}

func compose(doc model.Document, kind string) (figure, error) {
	t := rows.Fold(doc)
	switch kind {
	case Size:
		return overSize(doc, t)
	case Time:
		if seconds.Is(doc) {
			return overSoak(doc, t)
		}
		return overTime(doc, t)
	case Heat:
		return overGrid(doc, t)
	case Load:
		return overLoads(doc)
	case Control:
		return overControls(doc)
	case Auto:
		if bench.Is(doc) {
			return overLoads(doc)
		}
		if f, err := overControls(doc); !errors.Is(err, ErrNothing) {
			return f, err
		}
		if rows.IsSweep(doc) {
			if f, err := overGrid(doc, t); !errors.Is(err, ErrNothing) {
				return f, err
			}
		}
		if t.Axis() != "" {
			return overSize(doc, t)
		}
		f, err := compose(doc, Time)
		if errors.Is(err, ErrNothing) {
			return overSize(doc, t)
		}
		return f, err
	}
	return figure{}, fmt.Errorf("kind %q: want size, time, heat, load, control or auto", kind)
}
