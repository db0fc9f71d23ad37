package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/unit"
)

// MaxDocumentBytes bounds what ReadJSON takes into memory: a week's series of
// a hundred flows stays below it.
const MaxDocumentBytes = 1 << 29

// ReadJSON reads a document that JSON wrote. Errors are as Parse's, for "input".
func ReadJSON(r io.Reader) (model.Document, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxDocumentBytes+1))
	if err != nil {
		return model.Document{}, fmt.Errorf("reading a run document: %w", err)
	}
	return Parse(b, "input")
}

// Parse reads a document that JSON wrote; name is the file's, for the errors. An
// error is one line with file, line, field and what would be right. Fields
// that this pelt does not know are passed over: a later version may add some.
func Parse(b []byte, name string) (model.Document, error) {
	fail := func(offset int, format string, args ...any) (model.Document, error) {
		at := name
		if offset > 0 {
			at = fmt.Sprintf("%s:%d", name, 1+bytes.Count(b[:min(offset, len(b))], []byte("\n")))
		}
		return model.Document{}, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...))
	}
	if len(b) > MaxDocumentBytes {
		return fail(0, "is larger than a run document can be (%d MiB)", MaxDocumentBytes>>20)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return fail(0, "is empty; want a run document, as --json writes it")
	}
	var head struct {
		Format json.RawMessage `json:"format"`
	}
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(b, &head); {
	case errors.As(err, &syntax):
		return fail(int(syntax.Offset), "not JSON: %s", words.Plain(syntax.Error()))
	case err != nil:
		return fail(0, "is JSON, but not an object; want a run document, as --json writes it")
	}
	if problem := checkFormat(head.Format); problem != "" {
		return fail(bytes.Index(b, []byte(`"format"`))+1, "%s", problem)
	}
	var doc model.Document
	if err := json.Unmarshal(b, &doc); err != nil {
		var kind *json.UnmarshalTypeError
		offset := 0
		if errors.As(err, &kind) {
			offset = int(kind.Offset)
		}
		path, cause := locate(b, reflect.TypeFor[model.Document](), "", err)
		return fail(offset, "%s: %s", path, explain(cause))
	}
	if path, want := checkDocument(doc); path != "" {
		return fail(0, "%s: %s", path, want)
	}
	return doc, nil
}

func checkFormat(raw json.RawMessage) string {
	const right = "a run document, as --json writes it, has \"format\": \"" + model.RunFormat + "\""
	if raw == nil {
		return "not a document of pelt: no field \"format\"; " + right
	}
	var format string
	if json.Unmarshal(raw, &format) != nil {
		return "format: is not a word; " + right
	}
	switch {
	case format == model.RunFormat:
		return ""
	case format == model.PlanFormat:
		return "is a plan, not a run; start it with: pelt run FILE"
	case strings.HasPrefix(format, "pelt/run/"):
		return fmt.Sprintf("format: is %q; this pelt reads %s: use the pelt that wrote it, or a newer one", words.Name(format), model.RunFormat)
	}
	return fmt.Sprintf("format: is %q, not a document of pelt; %s", words.Name(format), right)
}

// locate finds the deepest field that will not decode: encoding/json names no
// index and says nothing of errors from a type's own decoder.
func locate(b []byte, t reflect.Type, path string, err error) (string, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	try := func(raw json.RawMessage, t reflect.Type, at string) (string, error) {
		if e := json.Unmarshal(raw, reflect.New(t).Interface()); e != nil {
			return locate(raw, t, strings.TrimPrefix(at, "."), e)
		}
		return "", nil
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		var fields map[string]json.RawMessage
		if json.Unmarshal(b, &fields) != nil {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if ft, ok := fieldType(t, name); ok {
				if p, e := try(fields[name], ft, path+"."+name); e != nil {
					return p, e
				}
			}
		}
	case reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(b, &items) != nil {
			break
		}
		for i, raw := range items {
			if p, e := try(raw, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); e != nil {
				return p, e
			}
		}
	}
	return path, err
}

func fieldType(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}

func explain(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Sprintf("want %s, not %s", wanted(kind.Type), words.Plain(kind.Value))
	}
	var syntax *unit.SyntaxError
	if errors.As(err, &syntax) {
		return words.Plain(syntax.Error())
	}
	return words.Plain(err.Error())
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a word in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Uint64, reflect.Uint:
		return "a whole number from 0"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a number"
}

// checkDocument finds what no pelt writes and no reader could make sense of.
func checkDocument(doc model.Document) (path, want string) {
	for i, r := range doc.Results {
		at := fmt.Sprintf("results[%d]", i)
		if !slices.Contains([]model.State{model.Valid, model.Invalid, model.Aborted}, r.State) {
			return at + ".state", fmt.Sprintf("want valid, invalid or aborted, not %q", words.Name(string(r.State)))
		}
		for j, f := range r.Flows {
			if f.Protocol != model.UDP && f.Protocol != model.TCP {
				return fmt.Sprintf("%s.flows[%d].protocol", at, j), fmt.Sprintf("want udp or tcp, not %q", words.Name(string(f.Protocol)))
			}
		}
		for j, s := range r.Series {
			if s.StepSeconds <= 0 {
				return fmt.Sprintf("%s.series[%d].step_s", at, j), "want more than 0 s"
			}
		}
	}
	return "", ""
}
