package dut

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAnswer(t *testing.T) {
	const m = marker("@@m")
	long := strings.Repeat("x", 100<<10)
	for _, c := range []struct {
		name, text, want string
		whole            bool
	}{
		{"whole", "@@m B 2\na\nb\n@@m E 2\n", "a\nb\n", true},
		{"empty", "@@m B 2\n@@m E 2\n", "", true},
		{"another before it", "@@m B 1\na\n@@m E 1\n@@m B 2\nb\n@@m E 2\n", "b\n", true},
		{"words outside", "hello\n\n@@m B 2\na\n@@m E 2\nbye", "a\n", true},
		{"a marker within a line is content", "@@m B 2\nx @@m E 2\n@@m E 2\n", "x @@m E 2\n", true},
		{"another's end is content", "@@m B 2\n@@m E 1\n@@m E 2\n", "@@m E 1\n", true},
		{"an end without a begin", "@@m E 2\n", "", false},
		{"begun anew", "@@m B 2\nold\n@@m B 2\nnew\n@@m E 2\n", "new\n", true},
		{"carriage returns", "@@m B 2\r\na\r\n@@m E 2\r\n", "a\r\n", true},
		{"cut", "@@m B 2\na\nb", "a\nb", false},
		{"cut in the last marker", "@@m B 2\na\n@@m E 2", "a\n@@m E 2", false},
		{"a line longer than any buffer", "@@m B 2\n" + long + "@@m E 2\n@@m E 2\n", long + "@@m E 2\n", true},
		{"other marks", "@@n B 2\n@@m X 2\n@@m B\n", "", false},
		{"nothing", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text))} {
				got, _, err := m.answer(bufio.NewReaderSize(r, 64), 2)
				if got != c.want || (err == nil) != c.whole || err != nil && !errors.Is(err, io.EOF) {
					t.Errorf("got %.80q, %v", got, err)
				}
			}
		})
	}
}

// What goes on for ever is not held, and what follows it is read.
func TestAnswerWithoutEnd(t *testing.T) {
	endless := io.LimitReader(zeros{}, 8*maxAnswer)
	text := io.MultiReader(strings.NewReader("@@m B 1\n"), endless, strings.NewReader("\n@@m E 1\n@@m B 2\nok\n@@m E 2\n"))
	out := bufio.NewReader(text)
	if got, _, err := marker("@@m").answer(out, 1); got != "" || !errors.Is(err, errLong) {
		t.Errorf("%d B, %v", len(got), err)
	}
	if got, _, err := marker("@@m").answer(out, 2); got != "ok\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestSections(t *testing.T) {
	got := marker("@@m").sections("lost\n@@m S a\n1\n2\n\n@@m S b\n\n@@m S c\n\x1b[31mred\x00\n" + strings.Repeat("y", 2*maxText))
	if got["a"] != "1\n2" || got["b"] != "" || !strings.HasPrefix(got["c"], "[31mred\ny") || !strings.HasSuffix(got["c"], "yy\n(more was told than is kept here)") || len(got["c"]) > maxText || len(got) != 3 {
		t.Errorf("%.100q", got)
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct{ text, first, last string }{
		{"one\ntwo\n", "one", "two"},
		{"\r\n  one\r\n\r\n", "one", "one"},
		{"\x1b[1mbold\x07\xff\n", "[1mbold", "[1mbold"},
		{"", "", ""},
		{strings.Repeat("é", 200), strings.Repeat("é", 100), strings.Repeat("é", 100)},
		{"x" + strings.Repeat("é", 200), "x" + strings.Repeat("é", 99), "x" + strings.Repeat("é", 99)},
	} {
		if f, l := firstLine(c.text), lastLine(c.text); f != c.first || l != c.last {
			t.Errorf("%q: first %q, last %q", c.text, f, l)
		}
	}
	var end tail
	for i := range 10000 {
		fmt.Fprintf(&end, "line %d\n", i)
	}
	if len(end.String()) > tailSize || lastLine(end.String()) != "line 9999" {
		t.Errorf("%d B, %q", len(end.String()), lastLine(end.String()))
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("@@m B 1\na\n@@m E 1\n@@m B 2\n@@m S x\n@@m E 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		const m = marker("@@m")
		body, _, err := m.answer(bufio.NewReaderSize(strings.NewReader(text), 16), 2)
		if len(body) > len(text) || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%q: %d B, %v", text, len(body), err)
		}
		for _, section := range m.sections(body) {
			if len(section) > maxText || strings.ContainsAny(section, "\r\x00\x1b") {
				t.Errorf("%q has a section %q", text, section)
			}
		}
		_, _ = parseSample(body)
	})
}
