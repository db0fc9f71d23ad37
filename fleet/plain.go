package fleet

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// plain replaces in a JSON text, raw or escaped, what could steer a terminal or hide in a
// report: what cannot be printed becomes U+FFFD, tabs and line breaks a space, unless lines
// are kept. The other host is not trusted to send text that can be shown as it is.
func plain(data []byte, lines bool) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		r, n := character(data)
		if plain := shown(r); plain != r && !(lines && r == '\n') || r == utf8.RuneError {
			out = utf8.AppendRune(out, plain)
		} else {
			out = append(out, data[:n]...)
		}
		data = data[n:]
	}
	return out
}

// plainText is plain for a text that is not JSON.
func plainText(s string) string { return strings.Map(shown, s) }

// shown is what stands for a character on a terminal.
func shown(r rune) rune {
	switch {
	case unicode.IsPrint(r):
		return r
	case strings.ContainsRune("\b\f\n\r\t", r):
		return ' '
	}
	return utf8.RuneError
}

// character decodes the first one of a JSON text, and tells how many bytes it takes there.
// Half a pair of \u is U+FFFD, as it is to the decoder.
func character(text []byte) (r rune, n int) {
	if c := text[0]; c < utf8.RuneSelf && c != '\\' {
		return rune(c), 1
	}
	switch {
	case text[0] != '\\':
		return utf8.DecodeRune(text)
	case len(text) == 1:
		return '\\', 1
	case text[1] != 'u':
		if control := slices.Index([]byte("bfnrt"), text[1]); control >= 0 {
			return rune("\b\f\n\r\t"[control]), 2
		}
		return rune(text[1]), 2
	}
	code := func(text []byte) rune {
		if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
			if code, err := strconv.ParseUint(string(text[2:6]), 16, 16); err == nil {
				return rune(code)
			}
		}
		return -1
	}
	first := code(text)
	switch {
	case first < 0: // the decoder will say so
		return '\\', 1
	case !utf16.IsSurrogate(first):
		return first, 6
	}
	if r := utf16.DecodeRune(first, code(text[6:])); r != utf8.RuneError {
		return r, 12
	}
	return utf8.RuneError, 6
}
