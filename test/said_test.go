package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pelt/words"
)

// sayers are functions whose text a user reads in his language, and which argument that text is.
var sayers = map[string]int{"Say": 0, "Sayf": 0, "Time": 0, "Errorf": 0, "usagef": 0, "tellf": 1, "NewFieldError": 1,
	"flagError": 1, "Wrong": -1, "wrong": -1, "refuse": -1, "Put": 0}

// inBraces is a text in markup.
var inBraces = regexp.MustCompile(`\{([^{}]+)\}`)

// TestSaidInChinese: each text that is said in the user's language, and stands in the source as it is, has Chinese
// words. Of fmt.Errorf and other functions of these names nothing is asked.
func TestSaidInChinese(t *testing.T) {
	marks := regexp.MustCompile(`%[-+# 0-9.\[\]]*[a-zA-Z%]|--[a-z-]+`)
	text := regexp.MustCompile(`[a-z]{2}`)
	said := 0
	for _, dir := range []string{"cmd", "fleet", "finding", "foreign", "internal", "iperf3", "lab", "ledger", "live", "model",
		"observe", "plan", "render", "run", "store", "table", "tune", "unit", "view"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				for _, english := range saidBy(n, dir) {
					if !text.MatchString(marks.ReplaceAllString(english, "")) {
						continue
					}
					if said++; words.Chinese.Say(english) == english {
						t.Errorf("%s: no Chinese words for %q", path, english)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if said < 400 {
		t.Errorf("only %d texts were found", said)
	}
}

// saidBy are the texts that a call says.
func saidBy(n ast.Node, dir string) []string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	name, of := "", ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if x, ok := f.X.(*ast.Ident); ok {
			of = x.Name
		}
	}
	at, says := sayers[name]
	switch {
	case !says, name == "Errorf" && of != "words":
		return nil
	case at < 0 && dir == "unit":
		at = 2
	case at < 0 && (name == "wrong" && (dir == "model" || dir == "plan") || name == "refuse" && dir == "run"):
		at = 1
	case at < 0:
		return nil
	}
	if at >= len(call.Args) {
		return nil
	}
	english, ok := literal(call.Args[at])
	switch {
	case !ok:
		return nil
	case name != "Put":
		return []string{english}
	}
	var list []string
	for _, m := range inBraces.FindAllStringSubmatch(english, -1) {
		list = append(list, m[1])
	}
	return list
}

// literal is a text that stands in the source, perhaps in several parts.
func literal(e ast.Expr) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, x.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, ok := literal(x.X)
		right, also := literal(x.Y)
		return left + right, ok && also
	}
	return "", false
}
