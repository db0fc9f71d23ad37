package fleet

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"pelt/finding"
	"pelt/model"
)

const (
	lightBytes  = 4 << 10 // a text as short as this is not weighed
	weightBytes = 1 << 20 // that any text may have, and
	weightRatio = 4       // for each byte of it
	mostNested  = 100     // objects and lists in each other: reasons may hold reasons
)

var (
	errHeavy = finding.NewFault(model.MessageHeavy)
	errDeep  = finding.NewFault(model.MessageDeep)
	errShape = finding.NewFault(model.MessageShape)
)

// weigh refuses a JSON text whose lists would take far more memory as a t than they do as text, before
// any is taken: an end of a flow is 500 B, and "{}," or "0," makes one.
func weigh(data []byte, t reflect.Type) error {
	if len(data) <= lightBytes {
		return nil
	}
	w := weigher{in: json.NewDecoder(bytes.NewReader(data)), room: weightBytes + weightRatio*len(data),
		fields: map[reflect.Type][]reflect.StructField{}}
	return w.value(t)
}

// weigher reads a text along the type that it will be decoded to.
type weigher struct {
	in     *json.Decoder
	room   int // bytes that are left
	nested int // objects and lists that are open
	fields map[reflect.Type][]reflect.StructField
}

// light is a value that takes no more memory than some times its text.
type light struct{}

func (light) UnmarshalJSON([]byte) error { return nil }

func isLight(t reflect.Type) bool {
	own := reflect.PointerTo(t)
	switch {
	case own.Implements(reflect.TypeFor[json.Unmarshaler]()),
		own.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return true
	case t.Kind() == reflect.Slice: // of numbers
		return t.Elem().Kind() < reflect.Array
	}
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Map
}

// value weighs what comes next, as a t.
func (w *weigher) value(t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
		w.room -= int(t.Size())
	}
	if isLight(t) {
		return w.in.Decode(&light{})
	}
	open, err := w.in.Token()
	if err != nil || open == nil {
		return err
	}
	if list := t.Kind() == reflect.Slice; open != json.Delim('{') && !list || open != json.Delim('[') && list {
		return errShape
	}
	if w.nested++; w.nested > mostNested {
		return errDeep
	}
	for w.in.More() {
		member, err := w.member(t)
		if err == nil && w.room < 0 {
			err = errHeavy
		}
		if err == nil {
			err = w.value(member)
		}
		if err != nil {
			return err
		}
	}
	w.nested--
	_, err = w.in.Token()
	return err
}

// member makes room for the next member of a list or an object.
func (w *weigher) member(t reflect.Type) (reflect.Type, error) {
	if t.Kind() == reflect.Slice {
		w.room -= int(t.Elem().Size())
		return t.Elem(), nil
	}
	key, err := w.in.Token()
	if err != nil {
		return nil, err
	}
	if t.Kind() == reflect.Map {
		w.room -= 2 * int(t.Key().Size()+t.Elem().Size())
		return t.Elem(), nil
	}
	if w.fields[t] == nil {
		w.fields[t] = reflect.VisibleFields(t)
	}
	for _, f := range w.fields[t] {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name, _ := key.(string); strings.EqualFold(cmp.Or(tag, f.Name), name) {
			return f.Type, nil
		}
	}
	return reflect.TypeFor[light](), nil // of an unknown name, which the decoder refuses
}
