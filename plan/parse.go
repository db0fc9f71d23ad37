package plan

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"pelt/model"
	"pelt/unit"
)

// Bounds of a plan's text. The nesting of a plan is 4; a parser that recurses
// must not be led deeper than it can bear.
const (
	MaxBytes = 1 << 20
	maxDepth = 100
	// Lines and entries: the parser's time grows with their square. The longest
	// list that an option makes needs two for each of its unit.MaxListLength.
	maxEntries = 2*unit.MaxListLength + 5000

	maxLine   = 64 << 10
	maxErrors = 255

	maxFieldName = 40
)

// Parse reads one plan from YAML. Unknown fields, wrong types, duplicates,
// several documents, anchors and tags are errors, and so is whatever
// model.Plan.Check refuses. An error is one line: name:line: field: what would
// be right. name is the file's name.
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

// reader turns YAML nodes into a plan and remembers where each field stood.
type reader struct {
	name  string
	lines map[string]int // field path -> line, from 1
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
		if p := recover(); p != nil {
			err = r.wrong(0, "", "not YAML that can be read")
		}
	}()
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, r.syntax(err)
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
		rest := bytes.TrimLeft(line, " -?\t:&!*")
		depth += bytes.Count(rest, []byte{'['}) + bytes.Count(rest, []byte{'{'}) - bytes.Count(rest, []byte{']'}) - bytes.Count(rest, []byte{'}'})
		depth = max(depth, 0)
		indent = len(line) - len(rest)
		opened := bytes.Count(line, []byte{'['}) + bytes.Count(line, []byte{'{'})
		dashes := bytes.Count(line, []byte("- ")) + bytes.Count(line, []byte("? ")) + bytes.Count(line, []byte(": "))
		if entries += 1 + dashes; entries > maxEntries {
			return r.wrong(i+1, "", "is longer than any plan: a list has at most %d entries", unit.MaxListLength)
		}
		if depth > maxDepth || indent > 4*maxDepth || opened > maxDepth || dashes > 10*maxDepth {
			return r.wrong(i+1, "", "is nested deeper than any plan")
		}
	}
	return nil
}

var position = regexp.MustCompile(`^\[(\d+):\d+\] `)

// syntax keeps the first line of a parser's error, with its line number where ours stand.
func (r *reader) syntax(err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if m := position.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		return r.wrong(line, "", "not YAML: %s", text[len(m[0]):])
	}
	return r.wrong(0, "", "not YAML: %s", text)
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

var (
	valueType = reflect.TypeFor[model.Value]()
	textType  = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (r *reader) into(v reflect.Value, n ast.Node, field string) error {
	if _, seen := r.lines[field]; !seen {
		r.lines[field] = lineOf(n)
	}
	switch {
	case v.Type() == valueType:
		return r.level(v, n, field)
	case v.Addr().Type().Implements(textType):
		s, ok := scalar(n)
		if !ok {
			return r.wrong(lineOf(n), field, "want one word, not %s", kindOf(n))
		}
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
			return r.wrong(lineOf(n), field, "%v", err)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return r.into(v.Elem(), n, field)
	case reflect.Struct:
		return r.object(v, n, field)
	case reflect.Slice:
		return r.list(v, n, field)
	case reflect.Map:
		return r.settings(v, n, field)
	}
	return r.plain(v, n, field)
}

func (r *reader) object(v reflect.Value, n ast.Node, field string) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return r.wrong(lineOf(n), field, "want fields as name: value, not %s", kindOf(n))
	}
	places := map[string]int{}
	var names []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		places[name] = i
		names = append(names, name)
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		key, ok := scalar(it.Key())
		place, known := places[key]
		at := strings.TrimPrefix(field+"."+key, ".")
		if !known { // foreign text: it must not break the line or the terminal
			at = strings.TrimPrefix(field+"."+strconv.Quote(key[:min(len(key), maxFieldName)]), ".")
		}
		switch {
		case !ok || !known:
			return r.wrong(lineOf(it.Key()), at, "unknown field; want one of %s", strings.Join(names, ", "))
		case seen[key]:
			return r.wrong(lineOf(it.Key()), at, "stands twice")
		}
		seen[key] = true
		r.lines[at] = lineOf(it.Key())
		if err := r.into(v.Field(place), it.Value(), at); err != nil {
			return err
		}
	}
	return nil
}

// settings reads a map by names, which whoever checks the plan knows.
func (r *reader) settings(v reflect.Value, n ast.Node, field string) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return r.wrong(lineOf(n), field, "want settings as name: value, not %s", kindOf(n))
	}
	v.Set(reflect.MakeMap(v.Type()))
	for it := m.MapRange(); it.Next(); {
		key, ok := scalar(it.Key())
		name := reflect.ValueOf(key)
		switch {
		case !ok || len(key) > maxFieldName:
			return r.wrong(lineOf(it.Key()), field, "want settings as name: value, not %s", kindOf(it.Key()))
		case v.MapIndex(name).IsValid():
			return r.wrong(lineOf(it.Key()), field, "%s stands twice", strconv.Quote(key))
		}
		value := reflect.New(v.Type().Elem()).Elem()
		if err := r.into(value, it.Value(), field); err != nil {
			return err
		}
		v.SetMapIndex(name, value)
	}
	return nil
}

func (r *reader) list(v reflect.Value, n ast.Node, field string) error {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		return r.wrong(lineOf(n), field, "want a list, not %s", kindOf(n))
	}
	if len(s.Values) > model.MaxTrials {
		return r.wrong(lineOf(n), field, "want at most %d entries", model.MaxTrials)
	}
	v.Set(reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values)))
	for i, e := range s.Values {
		if err := r.into(v.Index(i), e, fmt.Sprintf("%s[%d]", field, i)); err != nil {
			return err
		}
	}
	return nil
}

// level reads a number or a word.
func (r *reader) level(v reflect.Value, n ast.Node, field string) error {
	s, ok := scalar(n)
	if !ok || s == "" {
		return r.wrong(lineOf(n), field, "want a number or a word, not %s", kindOf(n))
	}
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return r.wrong(lineOf(n), field, "want a decimal number, not %s", s)
		}
		v.Set(reflect.ValueOf(model.Number(f)))
	default:
		v.Set(reflect.ValueOf(model.Word(s)))
	}
	return nil
}

func (r *reader) plain(v reflect.Value, n ast.Node, field string) error {
	s, ok := scalar(n)
	want := "text"
	var err error
	switch v.Kind() {
	case reflect.String:
		ok = ok && isText(n)
		v.SetString(s)
	case reflect.Bool:
		want = "true or false"
		b, isBool := n.(*ast.BoolNode)
		if ok = isBool; ok {
			v.SetBool(b.Value)
		}
	case reflect.Int:
		want = "a whole number"
		var i int64
		if i, err = strconv.ParseInt(s, 10, v.Type().Bits()); err == nil {
			v.SetInt(i)
		}
		ok = ok && !isText(n)
	case reflect.Uint64:
		want = "a whole number, not negative"
		var u uint64
		if u, err = strconv.ParseUint(s, 10, 64); err == nil {
			v.SetUint(u)
		}
		ok = ok && !isText(n)
	case reflect.Float64:
		want = "a number"
		var f float64
		if f, err = strconv.ParseFloat(s, 64); err == nil {
			v.SetFloat(f)
		}
		ok = ok && !isText(n)
	default:
		return r.wrong(lineOf(n), field, "cannot be read from YAML")
	}
	if !ok || err != nil {
		return r.wrong(lineOf(n), field, "want %s, not %s", want, kindOf(n))
	}
	return nil
}

func isText(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return true
	}
	return false
}

// scalar is the text of a single value, as it was written where it is a number.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	case *ast.MappingKeyNode:
		return "", false
	}
	return "", false
}

func kindOf(n ast.Node) string {
	if s, ok := scalar(n); ok {
		return strconv.Quote(s)
	}
	switch n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.SequenceNode:
		return "a list"
	case ast.MapNode:
		return "fields"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or alias"
	case *ast.TagNode:
		return "a tag"
	}
	return "that"
}
