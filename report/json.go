package report

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"

	"pelt/model"
)

// maxNamed bounds how many odd values one document complains about by name.
const maxNamed = 10

// JSON writes the document, indented, as model.EncodeDocument does, with a
// warning in it for each figure that was not a number. doc is not changed.
func JSON(w io.Writer, doc model.Document) error {
	o := odd{}
	o.walk(reflect.ValueOf(doc), "")
	doc.Warnings = append(slices.Clip(doc.Warnings), o.named...)
	if o.more > 0 {
		doc.Warnings = append(doc.Warnings, fmt.Sprintf("%d further values were not numbers", o.more))
	}
	b, err := model.EncodeDocument(doc)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// odd finds the figures that JSON cannot hold. In a series they are gaps,
// which the file shows as such.
type odd struct {
	named []string
	more  int
}

func (o *odd) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Float64:
		if finite(v.Float()) {
			return
		}
		if len(o.named) == maxNamed {
			o.more++
			return
		}
		o.named = append(o.named, strings.TrimPrefix(path, ".")+" was not a number")
	case reflect.Pointer:
		if !v.IsNil() {
			o.walk(v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); v.Type() != reflect.TypeFor[model.Series]() || name != "values" {
				o.walk(v.Field(i), strings.TrimSuffix(path+"."+name, "."))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			o.walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			o.walk(v.MapIndex(k), path+"."+k.String())
		}
	}
}
