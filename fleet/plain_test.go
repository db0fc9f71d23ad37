package fleet

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"pelt/model"
)

// TestDecodedTexts: what is decoded has no text that steers a terminal, wherever it stands.
func TestDecodedTexts(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`x y <&> Grüße 漢 😀`, "x y <&> Grüße 漢 😀"},
		{`\u001b[2J\u009b1m\u0007`, "�[2J�1m�"},
		{"\u009b31m\u202e\u2028", "�31m��"},
		{`one\ntwo\tthree\r\b`, "one two three  "},
		{`\\u001b \" \/ \u003c \ud83d\ude00`, `\u001b " / < 😀`},
		{`\udb40\udc41 \udb40 \udb40\u0041 \ud83d\u001b`, "� � �A ��"},
		{"\xff", "�"},
	} {
		text := `"` + c.in + `"`
		r, err := decode[sessionReport]([]byte(`{"ends":{"1":{"why":[{"code":` + text + `}],"warnings":[{"text":` + text +
			`}],"disturbed":[{"code":` + text + `}],` +
			`"send":{"errors":{` + text + `:1},"tcp":{"control":` + text + `},"series":[{"metric":` + text + `}]}}},` +
			`"observed":{"mode":` + text + `,"drops":{"sites":[{"reason":` + text + `}]}}}`))
		if err != nil {
			t.Fatalf("%q: %v", c.in, err)
		}
		e := r.Ends[1]
		list := []string{e.Why[0].Code, e.Warnings[0].Text, e.Disturbed[0].Code, e.Send.TCP.Control, e.Send.Series[0].Metric,
			string(r.Observed.Mode), r.Observed.Drops.Sites[0].Reason}
		for name := range e.Send.Errors {
			list = append(list, name)
		}
		for i, got := range list {
			if got != c.want {
				t.Errorf("%q, text %d: got %q, want %q", c.in, i, got, c.want)
			}
		}
	}
	order, err := decode[makeOrder]([]byte(`{"session":"\u001b","ends":[{"order":{"peer":"fe80::1%\u001b[2J"}}]}`))
	if err != nil || order.Ends[0].Order.Peer.Zone() != "�[2J" || order.Session != "�" {
		t.Errorf("%+v: %v", order, err)
	}
	for _, text := range []string{`{"\u001b":1}`, "{\x1b", `{"ends":[{"order":{"peer":"\u001b[2J"}}]}`} {
		if _, err := decode[makeOrder]([]byte(text)); err == nil ||
			strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("%q: %v", text, err)
		}
	}
	lines, err := decodeLines[model.RouterFacts]([]byte(`{"before":[{"text":"a\nb\u001b"}]}`), true)
	if err != nil || lines.Before[0].Text != "a\nb�" {
		t.Errorf("%q: %v", lines.Before, err)
	}
}

// FuzzDecodedText: a text comes out printable, and as it was if it was printable.
func FuzzDecodedText(f *testing.F) {
	for _, s := range []string{`a`, `\u001b`, `\ud800\u0041`, `\udb40\udc41`, `\ud83d\ude00`, "\x7f", `\\`, "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var before string
		if json.Unmarshal([]byte(`"`+in+`"`), &before) != nil {
			return
		}
		r, err := decode[reply]([]byte(`{"fault":{"code":"` + in + `"}}`))
		if err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		odd := func(s string) bool {
			return strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && r != '�' })
		}
		if odd(r.Fault.Code) || !odd(before) && r.Fault.Code != before {
			t.Errorf("%q became %q", before, r.Fault.Code)
		}
	})
}
