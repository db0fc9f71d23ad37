package run

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLastLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"\n \n", ""}, {"one\ntwo\n", ": two"}, {"a\x1b[31m\x07b", ": a[31mb"},
		{"x" + strings.Repeat("é", 200), ": x" + strings.Repeat("é", 127)},
	} {
		got := lastLine(c.text)
		if got != c.want || !utf8.ValidString(got) {
			t.Errorf("lastLine(%.20q) = %q; want %q", c.text, got, c.want)
		}
	}
}
