package fleet

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestPlain(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"a":"x y <&> Grüße 漢 😀","n":[1,-2.5e3,null]}`, `{"a":"x y <&> Grüße 漢 😀","n":[1,-2.5e3,null]}`},
		{`"\u001b[2J\u009b1m\u0007"`, `"�[2J�1m�"`},
		{"\"\u009b31m\u202e\u2028\"", `"�31m��"`},
		{`"one\ntwo\tthree\r\b"`, `"one two three  "`},
		{`"\\u001b \" \/ \u003c \ud83d\ude00"`, `"\\u001b \" \/ \u003c \ud83d\ude00"`},
		{`"\udb40\udc41 \udb40 \udb40\u0041 \udc41\udb40 \ud83d\u001b \ud83d\`, `"� � �\u0041 �� �� �\`},
		{`"\u00`, `"\u00`},
		{`"\`, `"\`},
		{"\xff", "�"},
	} {
		if got := string(plain([]byte(c.in), false)); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

// FuzzPlain: what comes out holds nothing unprintable once decoded, and means
// the same if nothing unprintable was in it.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{`"a"`, `"\u001b"`, `"\ud800\u0041"`, `"\udb40\udc41"`, `"\ud83d\ude00"`, "\"\x7f\"", `"\\"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var before, after string
		if json.Unmarshal([]byte(in), &before) != nil {
			return
		}
		out := plain([]byte(in), false)
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
		odd := func(s string) bool {
			return strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
		}
		if odd(after) || !odd(before) && after != before {
			t.Errorf("%q became %q", before, after)
		}
	})
}

// TestHostileWords: what the far host says of itself cannot steer the terminal.
func TestHostileWords(t *testing.T) {
	t.Parallel()
	w := newWire()
	s := serve(t, w, func(c *ServeConfig) {
		c.Agent.Version = "1.0\x1b]0;owned\a"
		c.Agent.Engines["udp"].(*fakeEngine).connectErr = errorText("\x1b[2Jhello\nworld")
	})
	c := dial(t, s.addr, agentOn(w, "near"))
	for _, a := range c.Agents() {
		if strings.ContainsFunc(a.Version, unicode.IsControl) {
			t.Errorf("version %q", a.Version)
		}
	}
	_, err := c.RunTrial(t.Context(), bothTrial("near", "far", 50*1e6), nil)
	if err == nil || strings.ContainsFunc(err.Error(), unicode.IsControl) || !strings.Contains(err.Error(), "hello world") {
		t.Errorf("got %q", err)
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }
