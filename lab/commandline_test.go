package lab

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pelt/internal/testenv"
)

func TestSplitWords(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       []string
	}{
		{"plain", "caddy file-server --root /srv --listen :8080", []string{"caddy", "file-server", "--root", "/srv", "--listen", ":8080"}},
		{"blanks", "  a \t b\n c ", []string{"a", "b", "c"}},
		{"single quotes", `sh -c 'a "b" \ | c'`, []string{"sh", "-c", `a "b" \ | c`}},
		{"double quotes", `a "b 'c' d" e`, []string{"a", "b 'c' d", "e"}},
		{"joined", `a"b c"'d e'f`, []string{"ab cd ef"}},
		{"empty words", `a '' "" b`, []string{"a", "", "", "b"}},
		{"escaped blank", `a\ b c`, []string{"a b", "c"}},
		{"escaped quotes", `a \" \' \\ b`, []string{"a", `"`, "'", `\`, "b"}},
		{"in double quotes", `"a\"b\\c\nd"`, []string{`a"b\c\nd`}},
		{"line goes on", "a b\\\nc \\\n d \"e\\\nf\"", []string{"a", "bc", "d", "ef"}},
		{"escaped operators", `a \| \& "c;d" 'e>f'`, []string{"a", "|", "&", "c;d", "e>f"}},
		{"braces and more", `wget -qO /dev/null http://{server}:8080/f-{bytes}?x=1,2%20=~b`, []string{"wget", "-qO", "/dev/null", "http://{server}:8080/f-{bytes}?x=1,2%20=~b"}},
		{"not ASCII", "é 'ü ö' \u00a0", []string{"é", "ü ö", "\u00a0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := SplitWords(c.line)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q\ngot  %q, %v\nwant %q", c.line, got, err, c.want)
			}
			if !strings.ContainsRune(strings.Trim(c.line, " \n"), '\t') && c.name != "blanks" {
				testenv.Tool(t, "sh")
				out, err := exec.Command("sh", "-c", `printf '%s\n.\n' `+c.line).Output()
				if want := strings.Join(got, "\n.\n") + "\n.\n"; err != nil || string(out) != want {
					t.Errorf("%q: sh splits it to %q, %v", c.line, out, err)
				}
			}
		})
	}
}

func TestSplitWordsDoesNotExpand(t *testing.T) {
	got, err := SplitWords(`a $HOME * ~ #b "$(c)"`)
	if want := []string{"a", "$HOME", "*", "~", "#b", "$(c)"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestSplitWordsRefuses(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", "names no program"},
		{" \t\n", "names no program"},
		{"'' a", "names no program"},
		{`a 'b`, "no closing '"},
		{`a "b\"`, `no closing "`},
		{`a\`, "backslash"},
		{"a | b", "sh -c"},
		{"a && b", "sh -c"},
		{"a; b", "sh -c"},
		{"a >b", "sh -c"},
		{"a <b", "sh -c"},
		{"(a)", "sh -c"},
		{"a `b`", "sh -c"},
		{"wget http://x/?a=1&b=2", "quote it"},
	} {
		got, err := SplitWords(c.line)
		if err == nil || !errors.As(err, new(*UsageError)) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %q, %v; want an error with %q", c.line, got, err, c.want)
		}
	}
}

func FuzzSplitWords(f *testing.F) {
	f.Add(`a 'b' "c\"" \d`)
	f.Fuzz(func(t *testing.T, line string) {
		words, err := SplitWords(line)
		if (err == nil) == (len(words) == 0) {
			t.Fatalf("%q: %q, %v", line, words, err)
		}
		if err != nil {
			return
		}
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		again, err := SplitWords(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(again, words) {
			t.Fatalf("%q: %q, and quoted %q, %v", line, words, again, err)
		}
	})
}

func TestTailLines(t *testing.T) {
	for _, c := range []struct {
		name string
		said []string
		want []string
	}{
		{"nothing", nil, nil},
		{"blank", []string{"\n \n\r\n"}, nil},
		{"last three", []string{"a\nb\n", "c\nd"}, []string{"b", "c", "d"}},
		{"in pieces", []string{"err", "or\n"}, []string{"error"}},
		{"progress bar", []string{"10%\r20%\r", "100%\n"}, []string{"10%", "20%", "100%"}},
		{"hostile", []string{"\x1b[2Ja\x00\xffb\tc\n"}, []string{"?[2Ja??b c"}},
		{"long line", []string{strings.Repeat("x", 300)}, []string{strings.Repeat("x", lineRunes) + "..."}},
		{"very long", []string{strings.Repeat("y", 5*tailBytes), "\nend\n"}, []string{strings.Repeat("y", lineRunes) + "...", "end"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out tail
			for _, s := range c.said {
				if n, err := out.Write([]byte(s)); n != len(s) || err != nil {
					t.Errorf("Write: %d, %v", n, err)
				}
			}
			if got := out.lines(); !slices.Equal(got, c.want) {
				t.Errorf("%q\ngot  %q\nwant %q", c.said, got, c.want)
			}
			if len(out.text) > tailBytes {
				t.Errorf("kept %d B, at most %d", len(out.text), tailBytes)
			}
		})
	}
}
