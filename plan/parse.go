package plan

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"pelt/model"
	"pelt/unit"
)

// Bounds of a plan's text. The nesting of a plan is 4; a parser that recurses must not be
// led deeper than it can bear.
const (
	MaxBytes = 1 << 20
	maxDepth = 100
	// Lines and entries: the parser's time grows with their square. The longest
	// list that an option makes needs two for each of its unit.MaxListLength.
	maxEntries = 2*unit.MaxListLength + 5000

	maxLine   = 64 << 10
	maxErrors = 255
	maxName   = 40
)

// Parse reads one plan from YAML. Unknown fields, wrong types, duplicates, several
// documents, anchors and tags are errors, and so is whatever model.Plan.Check refuses. An
// error is one line: name:line: field: what would be right. name is the file's name.
func Parse(b []byte, name string) (model.Plan, error) {
	r := &reader{name: name, lines: map[string]int{}}
	root, err := r.document(b)
	if err != nil {
		return model.Plan{}, err
	}
	var p model.Plan
	if err := r.into(reflect.ValueOf(&p).Elem(), root, ""); err != nil {
		return model.Plan{}, err
	}
	if err := p.Check(); err != nil {
		var field *model.FieldError
		if errors.As(err, &field) {
			return model.Plan{}, r.wrong(r.line(field.Field), field.Field, "%s", field.Want)
		}
		return model.Plan{}, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// reader turns a YAML document into a plan and remembers where each field stood. The
// library's own decoder is not strict (2.5 becomes 2, "2" becomes 2) and takes 5 s for a
// list of 10 000 levels.
type reader struct {
	name  string
	lines map[string]int // of each field, from 1
}

func (r *reader) wrong(line int, field, format string, args ...any) error {
	at := r.name
	if line > 0 {
		at += ":" + strconv.Itoa(line)
	}
	if field != "" {
		at += ": " + field
	}
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	if len(text) > maxErrors {
		text = strings.ToValidUTF8(text[:maxErrors], "") + "…"
	}
	return errors.New(at + ": " + text)
}

// line finds where a field stands, or the nearest field around it.
func (r *reader) line(field string) int {
	for field != "" {
		if n, ok := r.lines[field]; ok {
			return n
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return 0
}

func (r *reader) document(b []byte) (_ ast.Node, err error) {
	if err := r.bounded(b); err != nil {
		return nil, err
	}
	defer func() { // the parser is not ours and has met less than the world holds
		if recover() != nil {
			err = r.wrong(0, "", "not YAML that can be read")
		}
	}()
	file, err := parser.ParseBytes(b, 0)
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		return nil, r.wrong(syntax.GetToken().Position.Line, "", "not YAML: %s", syntax.GetMessage())
	} else if err != nil {
		return nil, r.wrong(0, "", "not YAML: %v", err)
	}
	var roots []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType && d.Body.Type() != ast.CommentGroupType {
			roots = append(roots, d.Body)
		}
	}
	switch len(roots) {
	case 0:
		return nil, r.wrong(0, "", "is empty; want a plan as --print-plan writes it")
	case 1:
		return roots[0], nil
	}
	return nil, r.wrong(lineOf(roots[1]), "", "a second document starts here; want one plan a file")
}

func (r *reader) bounded(b []byte) error {
	if len(b) > MaxBytes {
		return r.wrong(0, "", "is %d bytes; a plan is at most %d", len(b), MaxBytes)
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return r.wrong(0, "", "is not text in UTF-8")
	}
	depth, indent, entries := 0, 0, 0
	for i, line := range bytes.Split(b, []byte{'\n'}) {
		if len(line) > maxLine {
			return r.wrong(i+1, "", "the line is longer than %d bytes", maxLine)
		}
		count := func(mark string) int { return bytes.Count(line, []byte(mark)) }
		rest := bytes.TrimLeft(line, " -?\t:&!*")
		opened := count("[") + count("{")
		depth = max(depth+opened-count("]")-count("}"), 0)
		indent = len(line) - len(rest)
		dashes := count("- ") + count("? ") + count(": ")
		if entries += 1 + dashes; entries > maxEntries {
			return r.wrong(i+1, "", "is longer than any plan: a list has at most %d entries", unit.MaxListLength)
		}
		if depth > maxDepth || indent > 4*maxDepth || opened > maxDepth || dashes > 10*maxDepth {
			return r.wrong(i+1, "", "is nested deeper than any plan")
		}
	}
	return nil
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// into reads a node into a value, by the names and the readers that the value's type has
// for JSON.
func (r *reader) into(v reflect.Value, n ast.Node, field string) error {
	if _, known := r.lines[field]; !known {
		r.lines[field] = lineOf(n)
	}
	switch v.Addr().Interface().(type) {
	case json.Unmarshaler, encoding.TextUnmarshaler:
		return r.single(v, n, field)
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return r.into(v.Elem(), n, field)
	case reflect.Struct, reflect.Map:
		return r.fields(v, n, field)
	case reflect.Slice:
		list, ok := n.(*ast.SequenceNode)
		if !ok {
			return r.wrong(lineOf(n), field, "want a list")
		}
		v.Set(reflect.MakeSlice(v.Type(), len(list.Values), len(list.Values)))
		for i, e := range list.Values {
			if err := r.into(v.Index(i), e, fmt.Sprintf("%s[%d]", field, i)); err != nil {
				return err
			}
		}
		return nil
	}
	return r.single(v, n, field)
}

// fields reads a struct or a map.
func (r *reader) fields(v reflect.Value, n ast.Node, field string) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return r.wrong(lineOf(n), field, "want fields as name: value")
	}
	places := map[string]reflect.Value{}
	if v.Kind() == reflect.Map {
		v.Set(reflect.MakeMap(v.Type()))
	} else {
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			places[name] = v.Field(i)
		}
	}
	for it := m.MapRange(); it.Next(); {
		key := it.Key().GetToken().Value
		at := strings.TrimPrefix(field+"."+key, ".")
		place, known := places[key]
		if v.Kind() == reflect.Map {
			place, known = reflect.New(v.Type().Elem()).Elem(), len(key) <= maxName
		}
		if _, twice := r.lines[at]; !known || twice {
			what := map[bool]string{true: "%.40q stands twice", false: "unknown field %.40q"}[twice]
			return r.wrong(lineOf(it.Key()), field, what, key)
		}
		r.lines[at] = lineOf(it.Key())
		if err := r.into(place, it.Value(), at); err != nil {
			return err
		}
		if v.Kind() == reflect.Map {
			v.SetMapIndex(reflect.ValueOf(key), place)
		}
	}
	return nil
}

// single reads a word or a number.
func (r *reader) single(v reflect.Value, n ast.Node, field string) error {
	var text []byte
	switch n := n.(type) {
	case *ast.StringNode:
		text, _ = json.Marshal(n.Value) // a string always encodes
	case *ast.LiteralNode:
		text, _ = json.Marshal(n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = []byte(n.GetToken().Value)
		if _, isText := v.Addr().Interface().(encoding.TextUnmarshaler); isText {
			text = []byte(strconv.Quote(n.GetToken().Value))
		}
	default:
		return r.wrong(lineOf(n), field, "want %s, one plain value", nameOf(v.Kind()))
	}
	err := json.Unmarshal(text, v.Addr().Interface())
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	if errors.As(err, &kind) || errors.As(err, &syntax) {
		return r.wrong(lineOf(n), field, "want %s, not %.40q", nameOf(v.Kind()), n.GetToken().Value)
	} else if err != nil {
		return r.wrong(lineOf(n), field, "%v", err)
	}
	return nil
}

func nameOf(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number, not negative"
	case reflect.Float64:
		return "a number"
	}
	return "a number or a word"
}
