package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"time"

	"pelt/model"
)

// maxCleanWarnings bounds how many odd values one document complains about by name.
const maxCleanWarnings = 10

// JSON writes the document, indented. JSON has no word for NaN and infinity:
// such a figure is left out of maps, is 0 elsewhere, and a warning in the
// document names it. Lists are never null. doc is not changed.
func JSON(w io.Writer, doc model.Document) error {
	c := cleaner{}
	copied := c.clean(reflect.ValueOf(doc), "").Interface().(model.Document)
	copied.Warnings = append(copied.Warnings, c.warnings...)
	if c.more > 0 {
		copied.Warnings = append(copied.Warnings, fmt.Sprintf("%d further values were not numbers", c.more))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(copied); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// cleaner deep-copies a document into one that encoding/json can write.
type cleaner struct {
	warnings []string
	more     int
}

func (c *cleaner) warn(path, what string) {
	if len(c.warnings) == maxCleanWarnings {
		c.more++
		return
	}
	c.warnings = append(c.warnings, strings.TrimPrefix(path, ".")+" "+what)
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func (c *cleaner) clean(v reflect.Value, path string) reflect.Value {
	switch x := v.Interface().(type) {
	case time.Time:
		if _, err := x.MarshalJSON(); err != nil {
			c.warn(path, "was no time that RFC 3339 can write; written as year 1")
			return reflect.ValueOf(time.Time{})
		}
		return v
	case model.Value:
		if !finite(x.Number) {
			c.warn(path, "was not a number; written as 0")
			x.Number = 0
		}
		return reflect.ValueOf(x)
	case json.Marshaler, interface{ MarshalText() ([]byte, error) }:
		return v
	}
	switch v.Kind() {
	case reflect.Float64:
		if !finite(v.Float()) {
			c.warn(path, "was not a number; written as 0")
			return reflect.Zero(v.Type())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			p := reflect.New(v.Type().Elem())
			p.Elem().Set(c.clean(v.Elem(), path))
			return p
		}
	case reflect.Struct:
		s := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			s.Field(i).Set(c.clean(v.Field(i), path+"."+name))
		}
		return s
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			s.Index(i).Set(c.clean(v.Index(i), fmt.Sprintf("%s[%d]", path, i)))
		}
		return s
	case reflect.Map:
		return c.cleanMap(v, path)
	}
	return v
}

func (c *cleaner) cleanMap(v reflect.Value, path string) reflect.Value {
	m := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		at := path + "." + it.Key().String()
		if it.Value().Kind() == reflect.Float64 && !finite(it.Value().Float()) {
			c.warn(at, "was not a number; left out")
			continue
		}
		m.SetMapIndex(it.Key(), c.clean(it.Value(), at))
	}
	return m
}
