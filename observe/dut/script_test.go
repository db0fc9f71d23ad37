package dut

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAnswers(t *testing.T) {
	const m = marker("@@m")
	long := strings.Repeat("x", 100<<10)
	for _, c := range []struct {
		name, text, rest, noise string
		want                    []string // number: body
	}{
		{"two", "@@m B 1\na\nb\n@@m E 1\n@@m B 2\n@@m E 2\n", "", "", []string{"1:a\nb\n", "2:"}},
		{"words outside", "hello\n\n@@m B 1\na\n@@m E 1\nbye", "", "hello", []string{"1:a\n"}},
		{"a marker within a line is content", "@@m B 1\nx @@m E 1\n@@m E 1\n", "", "", []string{"1:x @@m E 1\n"}},
		{"another's end is content", "@@m B 1\n@@m E 2\n@@m E 1\n", "", "", []string{"1:@@m E 2\n"}},
		{"an end without a begin", "@@m E 1\n", "", "@@m E 1", nil},
		{"begun anew", "@@m B 1\nold\n@@m B 2\nnew\n@@m E 2\n", "", "", []string{"2:new\n"}},
		{"carriage returns", "@@m B 1\r\na\r\n@@m E 1\r\n", "", "", []string{"1:a\r\n"}},
		{"cut", "@@m B 1\na\nb", "a\nb", "", nil},
		{"cut in the last marker", "@@m B 1\na\n@@m E 1", "a\n@@m E 1", "", nil},
		{"a line longer than any buffer", "@@m B 1\n" + long + "@@m E 1\n@@m E 1\n", "", "", []string{"1:" + long + "@@m E 1\n"}},
		{"other marks", "@@n B 1\n@@m X 1\n@@m B\n", "", "@@n B 1", nil},
		{"nothing", "", "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text))} {
				var got []string
				rest, n, err := m.answers(bufio.NewReaderSize(r, 64), func(a answer) { got = append(got, a.number+":"+string(a.body)) })
				if !reflect.DeepEqual(got, c.want) || string(rest.body) != c.rest || n != c.noise || err != nil {
					t.Errorf("got %.80q, rest %.80q, noise %q, %v", got, rest.body, n, err)
				}
			}
		})
	}
}

// endless gives one line for ever, up to n bytes.
func endless(n int64) io.Reader { return io.LimitReader(zeros{}, n) }

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestAnswerWithoutEnd(t *testing.T) {
	text := io.MultiReader(strings.NewReader("@@m B 1\n"), endless(8*maxAnswer), strings.NewReader("\n@@m E 1\n@@m B 2\nok\n@@m E 2\n"))
	var got []string
	_, _, err := marker("@@m").answers(bufio.NewReader(text), func(a answer) {
		if len(a.body) > maxAnswer {
			t.Errorf("an answer of %d B is held", len(a.body))
		}
		got = append(got, fmt.Sprint(a.number, a.cut))
	})
	if fmt.Sprint(got) != "[1true 2false]" && fmt.Sprint(got) != "[1 true 2 false]" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestSections(t *testing.T) {
	got := marker("@@m").sections([]byte("lost\n@@m S a\n1\n2\n\n@@m S b\n\n@@m S c\n\x1b[31mred\x00\n" + strings.Repeat("y", 2*maxText)))
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

func FuzzAnswers(f *testing.F) {
	f.Add("@@m B 1\na\n@@m E 1\n@@m B 2\n@@m S x\n@@m E 2\n")
	f.Add("@@m 1339 Linux\n")
	f.Fuzz(func(t *testing.T, text string) {
		const m = marker("@@m")
		size := 0
		rest, n, err := m.answers(bufio.NewReaderSize(strings.NewReader(text), 16), func(a answer) {
			size += len(a.body)
			for name, section := range m.sections(a.body) {
				if name == "" || len(section) > maxText || strings.ContainsAny(section, "\r\x00\x1b") {
					t.Errorf("section %q is %q", name, section)
				}
			}
			_, _ = parseSample(a)
		})
		if err != nil || size+len(rest.body) > len(text) || strings.Contains(n, "\n") {
			t.Errorf("%q: %d B, rest %d B, %+v, %v", text, size, len(rest.body), n, err)
		}
	})
}
