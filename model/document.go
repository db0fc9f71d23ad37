package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"pelt/words"
)

// EncodeDocument writes a run as indented JSON that ends with a newline. Lists are never null. A number that JSON
// cannot hold (NaN, infinity) becomes null in a series, is left out of a finding's values, and is 0 elsewhere; a
// time beyond RFC 3339 becomes the zero time.
func EncodeDocument(d Document) ([]byte, error) {
	d.Format = RunFormat
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(Finite(d)); err != nil {
		return nil, fmt.Errorf("encode run %s: %w", d.ID, err)
	}
	return out.Bytes(), nil
}

// FileError says what is wrong with a file. The user gave it, and can mend it.
type FileError struct {
	Name string
	Line int // 0: the file as a whole
	Err  error
}

func (e *FileError) Error() string { return e.SaidIn(words.English) }
func (e *FileError) Unwrap() error { return e.Err }

// SaidIn says the error in a language; see words.Language.Error.
func (e *FileError) SaidIn(l words.Language) string {
	at := e.Name
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.Name, e.Line)
	}
	return at + ": " + l.Error(e.Err)
}

// WrongJSON says what is wrong with the JSON text of a file by the error of a decoder, which has come to a byte of it.
// The value that it decoded begins at from.
func WrongJSON(name string, text []byte, from, at int64, err error) *FileError {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = words.Errorf("the JSON value is cut short")
	case errors.As(err, &syntax):
		at, err = max(at, syntax.Offset), words.Errorf("not JSON: %s", oneLine(syntax.Error()))
	case errors.As(err, &kind):
		at = from + kind.Offset
		want := errors.New(KindName(kind.Type)) // a value that is an error is said in the reader's language
		if n, ok := strings.CutPrefix(kind.Value, "number "); ok && kind.Type.Kind() == reflect.Float64 {
			err = noFloat(n)
		} else {
			err = words.Errorf("want %s, not a JSON %s", want, clip(kind.Value))
		}
		if kind.Field != "" {
			err = words.Errorf("%s: %w", clip(kind.Field), err)
		}
	default:
		if text := oneLine(err.Error()); text != err.Error() {
			err = errors.New(text)
		}
	}
	return &FileError{name, lineAt(text, at), err}
}

// DecodeDocument reads what EncodeDocument writes. Fields it does not know are ignored, because a format version
// may gain some. name is the file's name for the error, which is a *FileError of one line.
func DecodeDocument(b []byte, name string) (Document, error) {
	var head struct {
		Format string `json:"format"`
	}
	if err := decodeJSON(b, name, &head); err != nil {
		err.Err = words.Errorf("%w; want a run, as --json writes it", err.Err)
		return Document{}, err
	}
	if head.Format != RunFormat {
		return Document{}, &FileError{Name: name,
			Err: words.Errorf("format: is %q; want %q, as --json writes it", clip(head.Format), RunFormat)}
	}
	var d Document
	if err := decodeJSON(b, name, &d); err != nil {
		return Document{}, err
	}
	for i, r := range d.Results {
		if err := r.Check(); err != nil {
			return Document{}, &FileError{Name: name, Err: words.Errorf("%s.%w", fmt.Sprintf("results[%d]", i), err)}
		}
	}
	return d, nil
}

// Check returns what is impossible in a result that was read, as a *FieldError.
func (r Result) Check() error {
	switch {
	case r.State != Valid && r.State != Invalid && r.State != Aborted:
		return wrong("state", "want %s, %s or %s, not %q", Valid, Invalid, Aborted, clip(string(r.State)))
	case r.Repeat < 0 || r.Repeat >= MaxTrials: // several runs are joined as repeats
		return wrong("repeat", "want 0 to %d, not %d", MaxTrials-1, r.Repeat)
	}
	for i, f := range r.Flows {
		if f.Received > f.Attempted && f.Protocol == UDP {
			at := fmt.Sprintf("flows[%d].received_packets", i)
			return wrong(at, "%d is more than the %d attempted", f.Received, f.Attempted)
		}
	}
	return nil
}

// decodeJSON reads exactly one JSON value from b into v.
func decodeJSON(b []byte, name string, v any) *FileError {
	dec := json.NewDecoder(bytes.NewReader(b))
	err, at := dec.Decode(v), dec.InputOffset()
	if err == nil {
		if _, more := dec.Token(); more == io.EOF {
			return nil
		}
		err, at = words.Errorf("more text after the end of the JSON value"), dec.InputOffset()
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at = int64(len(b))
	}
	return WrongJSON(name, b, 0, at, err)
}

// noFloat is the error of a text that is no number, or one that a float64 cannot hold.
func noFloat(text string) error {
	return words.Errorf("want a number from -1.79e308 to 1.79e308, not %s", clip(text))
}

func KindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float64:
		return "a number"
	case reflect.Uint64, reflect.Uint32, reflect.Uint16:
		return "a whole number, not negative"
	default:
		return "a whole number"
	}
}

func lineAt(b []byte, offset int64) int {
	offset = max(0, min(offset, int64(len(b))))
	return 1 + bytes.Count(b[:offset], []byte{'\n'})
}

func oneLine(s string) string { return clip(strings.Join(strings.Fields(s), " ")) }

// clip keeps foreign text in an error short.
func clip(s string) string {
	if len(s) > maxTextLength {
		return strings.ToValidUTF8(s[:maxTextLength], "") + "…"
	}
	return s
}

// Finite returns a copy of v that JSON can hold: see EncodeDocument. Nothing in
// the copy is shared with v except values that cannot be changed.
func Finite[T any](v T) T {
	return finite(reflect.ValueOf(&v).Elem()).Interface().(T)
}

var seriesType = reflect.TypeFor[Series]()

func finite(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			out.SetFloat(0)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(finite(v.Elem()))
		}
	case reflect.Slice:
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(finite(v.Index(i)))
		}
	case reflect.Map:
		out.Set(reflect.MakeMap(v.Type()))
		for it := v.MapRange(); it.Next(); {
			if e := it.Value(); e.Kind() != reflect.Float64 || !math.IsNaN(e.Float()) && !math.IsInf(e.Float(), 0) {
				out.SetMapIndex(it.Key(), finite(e))
			}
		}
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			if _, err := t.MarshalJSON(); err != nil { // RFC 3339 ends with the year 9999
				out.Set(reflect.ValueOf(time.Time{}))
			}
			break
		}
		if v.Type() == seriesType { // writes its own null for NaN
			s := v.Interface().(Series)
			for _, f := range []*float64{&s.StartSeconds, &s.StepSeconds} {
				if math.IsNaN(*f) || math.IsInf(*f, 0) {
					*f = 0
				}
			}
			s.Values = append(make([]float64, 0, len(s.Values)), s.Values...)
			out.Set(reflect.ValueOf(s))
			break
		}
		for i := range v.NumField() {
			if out.Field(i).CanSet() {
				out.Field(i).Set(finite(v.Field(i)))
			}
		}
	}
	return out
}

type plainSeries Series

type nullableSeries struct {
	plainSeries
	Values []*float64 `json:"values"`
}

// MarshalJSON writes a value that is not a number as null: no sample there.
func (s Series) MarshalJSON() ([]byte, error) {
	n := nullableSeries{plainSeries(s), make([]*float64, len(s.Values))}
	for i := range s.Values {
		if !math.IsNaN(s.Values[i]) && !math.IsInf(s.Values[i], 0) {
			n.Values[i] = &s.Values[i]
		}
	}
	return json.Marshal(n)
}

// maybeNumber is NaN for null.
type maybeNumber float64

func (m *maybeNumber) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*m = maybeNumber(math.NaN())
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if *m = maybeNumber(v); err != nil {
		return noFloat(string(b))
	}
	return nil
}

func (s *Series) UnmarshalJSON(b []byte) error {
	var n struct {
		plainSeries
		Values []maybeNumber `json:"values"`
	}
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*s = Series(n.plainSeries)
	s.Values = make([]float64, len(n.Values))
	for i, v := range n.Values {
		s.Values[i] = float64(v)
	}
	return nil
}
