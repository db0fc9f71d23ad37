package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	// list that a flag makes needs two for each of its unit.MaxListLength.
	maxEntries = 2*unit.MaxListLength + 5000

	maxLine   = 64 << 10
	maxErrors = 255
)

// Parse reads one plan from YAML. Unknown fields, wrong types, duplicates, several
// documents, anchors and tags are errors, and so is whatever model.Plan.Check refuses. An
// error is one line: name:line: field: what would be right. name is the file's name.
//
// YAML becomes JSON on the way: the library's own decoder of structs takes 2.5 for 2, and 5 s for a
// list of 10 000 levels.
func Parse(b []byte, name string) (p model.Plan, err error) {
	r := &reader{name: name}
	defer func() { // the parser is not ours and has met less than the world holds
		if recover() != nil {
			p, err = model.Plan{}, r.wrong(0, "not YAML that can be read")
		}
	}()
	if err := r.read(b); err != nil {
		return model.Plan{}, err
	}
	text, err := yaml.YAMLToJSON(b)
	if err != nil {
		return model.Plan{}, r.syntax(err)
	}
	if p, err = model.ReadPlan(text); err != nil {
		return model.Plan{}, r.refused(err)
	}
	return p, nil
}

// reader knows where the fields of a plan stand.
type reader struct {
	name string
	file *ast.File
}

// wrong is an error of one line; line 0 is unknown.
func (r *reader) wrong(line int, format string, args ...any) error {
	at := r.name
	if line > 0 {
		at += ":" + strconv.Itoa(line)
	}
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	if len(text) > maxErrors {
		text = strings.ToValidUTF8(text[:maxErrors], "") + "…"
	}
	return errors.New(at + ": " + text)
}

// line finds where a setting or another field stands, or the nearest field around it.
func (r *reader) line(field string) int {
	for field != "" {
		for _, at := range []string{"set." + field, "flows[0].set." + field, "flows[0]." + field, field} {
			if n := r.node(at); n != nil {
				return lineOf(n)
			}
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return 0
}

// node is the value of a field, nil if it is not there.
func (r *reader) node(field string) ast.Node {
	path, err := yaml.PathString("$." + field)
	if err != nil {
		return nil
	}
	n, err := path.FilterFile(r.file)
	if err != nil {
		return nil
	}
	return n
}

// read finds out whether a text is one plain document.
func (r *reader) read(b []byte) error {
	if err := r.bounded(b); err != nil {
		return err
	}
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return r.syntax(err)
	}
	var roots []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType && d.Body.Type() != ast.CommentGroupType {
			roots = append(roots, d.Body)
		}
	}
	switch {
	case len(roots) == 0:
		return r.wrong(0, "is empty; want a plan as --print-plan writes it")
	case len(roots) > 1:
		return r.wrong(lineOf(roots[1]), "a second document starts here; want one plan a file")
	}
	if _, ok := roots[0].(ast.MapNode); !ok {
		return r.wrong(lineOf(roots[0]), "want fields as name: value")
	}
	r.file = file
	plain := &plainOnly{r: r}
	ast.Walk(plain, roots[0])
	return plain.err
}

// plainOnly refuses what makes one text of YAML stand for another.
type plainOnly struct {
	r   *reader
	err error
}

// Visit is called for each node.
func (v *plainOnly) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode, *ast.NullNode,
		*ast.InfinityNode, *ast.NanNode:
		v.err = v.r.wrong(lineOf(n), "want plain values, not %.40q", n.String())
	}
	if v.err != nil {
		return nil
	}
	return v
}

func (r *reader) syntax(err error) error {
	var syntax yaml.Error
	if errors.As(err, &syntax) && syntax.GetToken() != nil {
		return r.wrong(syntax.GetToken().Position.Line, "not YAML: %s", syntax.GetMessage())
	}
	return r.wrong(0, "not YAML: %v", err)
}

// refused says what is wrong with a field, and where it stands.
func (r *reader) refused(err error) error {
	var field *model.FieldError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &field):
		return r.wrong(r.line(field.Field), "%s: %s", field.Field, field.Want)
	case errors.As(err, &kind):
		text := kind.Value
		if n, ok := r.node(kind.Field).(ast.ScalarNode); ok {
			text = strconv.Quote(n.GetToken().Value)
		}
		return r.wrong(r.line(kind.Field), "%s: want %s, not %.40s", kind.Field, model.KindName(kind.Type), text)
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if _, quoted, ok := strings.Cut(text, "unknown field "); ok {
		key, _ := strconv.Unquote(quoted)
		return r.wrong(r.lineOfKey(key), "%s", text)
	}
	return r.wrong(0, "%s", text)
}

// lineOfKey finds the first field of a name.
func (r *reader) lineOfKey(key string) (line int) {
	ast.Walk(visit(func(n ast.Node) {
		if v, ok := n.(*ast.MappingValueNode); ok && line == 0 && v.Key.GetToken().Value == key {
			line = lineOf(v.Key)
		}
	}), r.file.Docs[0].Body)
	return line
}

type visit func(ast.Node)

// Visit is called for each node.
func (v visit) Visit(n ast.Node) ast.Visitor { v(n); return v }

func (r *reader) bounded(b []byte) error {
	if len(b) > MaxBytes {
		return r.wrong(0, "is %d bytes; a plan is at most %d", len(b), MaxBytes)
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return r.wrong(0, "is not text in UTF-8")
	}
	depth, indent, entries := 0, 0, 0
	for i, line := range bytes.Split(b, []byte{'\n'}) {
		if len(line) > maxLine {
			return r.wrong(i+1, "the line is longer than %d bytes", maxLine)
		}
		count := func(mark string) int { return bytes.Count(line, []byte(mark)) }
		rest := bytes.TrimLeft(line, " -?\t:&!*")
		opened := count("[") + count("{")
		depth = max(depth+opened-count("]")-count("}"), 0)
		indent = len(line) - len(rest)
		dashes := count("- ") + count("? ") + count(": ")
		if entries += 1 + dashes; entries > maxEntries {
			return r.wrong(i+1, "is longer than any plan: a list has at most %d entries", unit.MaxListLength)
		}
		if depth > maxDepth || indent > 4*maxDepth || opened > maxDepth || dashes > 10*maxDepth {
			return r.wrong(i+1, "is nested deeper than any plan")
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
