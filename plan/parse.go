package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"pelt/model"
	"pelt/words"
)

const (
	MaxBytes  = 1 << 20 // of a plan's text
	maxDepth  = 100     // that of a plan is 4
	maxErrors = 255
)

// Parse reads one plan from YAML. Unknown fields, wrong types, duplicates, several
// documents, anchors and tags are errors, and so is whatever model.Plan.Check refuses. An
// error is one line: name:line: field: what would be right. name is the file's name.
func Parse(b []byte, name string) (model.Plan, error) {
	r := &reader{name: name, fields: map[string]*yaml.Node{}, keys: map[string]int{}}
	text, err := r.read(b)
	if err != nil {
		return model.Plan{}, err
	}
	p, err := model.ReadPlan(text)
	if err != nil {
		return model.Plan{}, r.refused(err)
	}
	return p, nil
}

// reader turns YAML into JSON and knows where the fields of a plan stand.
type reader struct {
	name   string
	out    bytes.Buffer
	fields map[string]*yaml.Node // values by path: flows[0].set.payload_bytes
	keys   map[string]int        // first line of each key
}

// wrong is an error of one line; line 0 is unknown.
func (r *reader) wrong(line int, format string, args ...any) error {
	err := words.Errorf(format, args...)
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > maxErrors {
		text = strings.ToValidUTF8(text[:maxErrors], "") + "…"
	}
	if text != err.Error() { // which no other language has
		err = errors.New(text)
	}
	return &model.FileError{Name: r.name, Line: line, Err: err}
}

// read returns the JSON of a text that is one plain document.
func (r *reader) read(b []byte) ([]byte, error) {
	if len(b) > MaxBytes {
		return nil, r.wrong(0, "is %d bytes; a plan is at most %d", len(b), MaxBytes)
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return nil, r.wrong(0, "is not text in UTF-8")
	}
	in := yaml.NewDecoder(bytes.NewReader(b))
	var document, second yaml.Node
	if err := in.Decode(&document); errors.Is(err, io.EOF) {
		return nil, r.wrong(0, "is empty; want a plan as --print-plan writes it")
	} else if err != nil {
		return nil, r.syntax(err, b)
	}
	if err := in.Decode(&second); err == nil {
		return nil, r.wrong(second.Content[0].Line, "a second document starts here; want one plan a file")
	} else if !errors.Is(err, io.EOF) {
		return nil, r.syntax(err, b)
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, r.wrong(root.Line, "want fields as name: value")
	}
	err := r.write(root, "", 0)
	return r.out.Bytes(), err
}

// write writes the JSON of a node that stands at a path. What makes one text of YAML stand for another is refused.
func (r *reader) write(n *yaml.Node, path string, depth int) error {
	switch {
	case n.Anchor != "":
		return r.wrong(n.Line, "want plain values, not %.40q", "&"+n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		return r.wrong(n.Line, "want plain values, not %.40q", n.Tag)
	case depth > maxDepth:
		return r.wrong(n.Line, "is nested deeper than any plan")
	}
	r.fields[path] = n
	switch n.Kind {
	case yaml.MappingNode:
		r.out.WriteByte('{')
		for i := 0; i < len(n.Content); i += 2 {
			key, at := n.Content[i], n.Content[i].Value
			if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || key.Anchor != "" {
				return r.wrong(key.Line, "want plain names, not %.40q", at)
			}
			if path != "" {
				at = path + "." + at
			}
			if r.fields[at] != nil {
				return r.wrong(key.Line, "%s stands twice", at)
			}
			if r.keys[key.Value] == 0 {
				r.keys[key.Value] = key.Line
			}
			r.comma(i)
			r.value(key.Value)
			r.out.WriteByte(':')
			if err := r.write(n.Content[i+1], at, depth+1); err != nil {
				return err
			}
		}
		r.out.WriteByte('}')
	case yaml.SequenceNode:
		r.out.WriteByte('[')
		for i, each := range n.Content {
			r.comma(i)
			if err := r.write(each, path+"["+strconv.Itoa(i)+"]", depth+1); err != nil {
				return err
			}
		}
		r.out.WriteByte(']')
	default:
		var v any
		if tag := n.ShortTag(); tag == "!!str" || tag == "!!timestamp" {
			v = n.Value
		} else if err := n.Decode(&v); err != nil {
			return r.wrong(n.Line, "not YAML: %v", err)
		}
		if f, number := v.(float64); v == nil || number && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return r.wrong(n.Line, "want plain values, not %.40q", n.Value)
		}
		r.value(v)
	}
	return nil
}

func (r *reader) comma(i int) {
	if i > 0 {
		r.out.WriteByte(',')
	}
}

func (r *reader) value(v any) {
	text, _ := json.Marshal(v) // texts and finite numbers always marshal
	r.out.Write(text)
}

var libraryError = regexp.MustCompile(`(?s)^yaml: (?:line ([0-9]+): )?(.*?(?:'(.*)' referenced)?)$`)

// parserError matches what the library's parser misses, not its scanner: their lines count from 0.
var parserError = regexp.MustCompile(`^did not find expected (<|'|key|node)`)

// syntax is an error of the YAML library about b.
func (r *reader) syntax(err error, b []byte) error {
	m := libraryError.FindStringSubmatch(err.Error())
	if m == nil {
		return r.wrong(0, "not YAML: %v", err)
	}
	line, _ := strconv.Atoi(m[1])
	if line > 0 && parserError.MatchString(m[2]) {
		last := bytes.Count(bytes.TrimSuffix(b, []byte{'\n'}), []byte{'\n'}) + 1
		line = min(line+1, last)
	}
	if line == 0 && !strings.Contains(m[2], "control characters") { // whose place it never says
		line = 1
	}
	if before, _, found := bytes.Cut(b, []byte("*"+m[3])); m[3] != "" && found { // nor this one's
		line = bytes.Count(before, []byte{'\n'}) + 1
	}
	return r.wrong(line, "not YAML: %s", m[2])
}

// line finds where a setting or another field stands, or the nearest field around it.
func (r *reader) line(field string) int {
	for field != "" {
		for _, at := range []string{"set." + field, "flows[0].set." + field, "flows[0]." + field, field} {
			if n := r.fields[at]; n != nil {
				return n.Line
			}
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return 0
}

// refused says what is wrong with a field, and where it stands.
func (r *reader) refused(err error) error {
	var field *model.FieldError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &field):
		return r.wrong(r.line(field.Field), "%w", field)
	case errors.As(err, &kind):
		text := kind.Value
		if n := r.fields[kind.Field]; n != nil && n.Kind == yaml.ScalarNode {
			text = strconv.Quote(n.Value)
		}
		want := errors.New(model.KindName(kind.Type)) // said in the reader's language
		return r.wrong(r.line(kind.Field), "%s: want %s, not %.40s", kind.Field, want, text)
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		key, _ := strconv.Unquote(quoted)
		return r.wrong(r.keys[key], "unknown field %s", quoted)
	}
	return r.wrong(0, "%w", err)
}
