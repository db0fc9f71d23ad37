// Package golden keeps what tests got in files, which a person reads when they change: go test PACKAGE -update writes
// them anew. Only tests import this package.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew; then read the difference")

// File compares what a test got with a file.
func File(t testing.TB, path, got string) {
	t.Helper()
	old, err := os.ReadFile(path)
	switch {
	case string(old) == got && err == nil:
	case *update:
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Fatal(err)
	default:
		t.Errorf("%s differs (write it anew with -update, and read it):\n%s", path, Difference(string(old), got))
	}
}

// Part compares what a test got with the part of a page between <!-- name, and <!-- end -->.
func Part(t testing.TB, path, name, got string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begun := strings.Cut(string(page), "<!-- "+name+", ")
	mark, rest, _ := strings.Cut(rest, "-->\n")
	_, tail, ended := strings.Cut(rest, "<!-- end -->")
	if !begun || !ended {
		t.Fatalf("%s has no place for the %s", path, name)
	}
	File(t, path, head+"<!-- "+name+", "+mark+"-->\n\n"+got+"\n<!-- end -->"+tail)
}

// Table reads a file of questions, a line each, with the answers on the indented lines below. Each answer must be the
// same again. A line that begins with # says something to the reader.
func Table(t testing.TB, path string, answer func(question string) string) {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(old)) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		out.WriteString(line)
		if question := strings.TrimSuffix(line, "\n"); question != "" && question[0] != '#' {
			for line := range strings.Lines(answer(question)) {
				out.WriteString("\t" + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	File(t, path, out.String())
}

// Texts is a Table whose questions are a word and a quoted text each.
func Texts(t testing.TB, path string, answer func(what, text string) string) {
	t.Helper()
	Table(t, path, func(question string) string {
		what, quoted, _ := strings.Cut(question, " ")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		return answer(what, text)
	})
}

// Difference returns the lines that only one of two texts has, with - or + before them.
func Difference(before, after string) string {
	a, b := strings.Split(strings.TrimSuffix(before, "\n"), "\n"), strings.Split(strings.TrimSuffix(after, "\n"), "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	common := make([][]int, len(a)+1) // lines that a[i:] and b[j:] have in common
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out.WriteString("- " + a[i] + "\n")
			i++
		default:
			out.WriteString("+ " + b[j] + "\n")
			j++
		}
	}
	return out.String()
}
