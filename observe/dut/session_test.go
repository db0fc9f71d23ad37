package dut

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// What goes on for ever is not held, and what follows it is read.
func TestAnswerWithoutEnd(t *testing.T) {
	endless := io.LimitReader(zeros{}, 8*maxAnswer)
	text := io.MultiReader(strings.NewReader("@@m B 1\n"), endless,
		strings.NewReader("\n@@m E 1\n@@m B 2\nok\n@@m E 2\n"))
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

// A line may be longer than any buffer.
func TestLongLine(t *testing.T) {
	line := strings.Repeat("x", 100<<10) + "@@m E 2\n"
	if got, _, err := marker("@@m").answer(bufio.NewReaderSize(strings.NewReader("@@m B 2\n"+line+"@@m E 2\n"), 64),
		2); got != line || err != nil {
		t.Errorf("%d B, %v", len(got), err)
	}
}

func TestSections(t *testing.T) {
	got := marker("@@m").sections("lost\n@@m S a\n1\n2\n\n@@m S b\n\n@@m S c\n\x1b[31mred\x00\n" + strings.Repeat("y",
		2*maxText))
	if got["a"] != "1\n2" || got["b"] != "" || !strings.HasPrefix(got["c"], "[31mred\ny") ||
		!strings.HasSuffix(got["c"], "yy\n(more was told than is kept here)") || len(got["c"]) > maxText ||
		len(got) != 3 {
		t.Errorf("%.100q", got)
	}
}

func TestTail(t *testing.T) {
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
