package fleet

import (
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// plain takes out of a JSON text what could steer a terminal or hide in a
// report: a control or otherwise unprintable character, raw or escaped, becomes
// U+FFFD, a tab a space, and a line break one too unless lines are to be kept. The other host is not trusted to send
// text that can be shown as it is.
func plain(data []byte, lines bool) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		c := data[i]
		switch {
		case c == '\\' && i+1 < len(data):
			n := 2
			switch data[i+1] {
			case 'b', 'f', 'n', 'r', 't':
				if lines && data[i+1] == 'n' {
					out = append(out, `\n`...)
					break
				}
				out = append(out, ' ')
			case 'u':
				var r rune
				if r, n = escaped(data[i:]); !unicode.IsPrint(r) {
					out = utf8.AppendRune(out, utf8.RuneError)
					break
				}
				out = append(out, data[i:i+n]...)
			default:
				out = append(out, data[i:i+n]...)
			}
			i += n
		case c >= 0x7f: // DEL, and all that is not ASCII
			r, n := utf8.DecodeRune(data[i:])
			if !unicode.IsPrint(r) {
				r = utf8.RuneError
			}
			out = utf8.AppendRune(out, r)
			i += n
		default: // JSON has no raw control characters within strings
			out = append(out, c)
			i++
		}
	}
	return out
}

// escaped reads what \u stands for, or a pair of them, and how many bytes that takes. What
// is no character, as half a pair, is U+FFFD, as it is to who decodes it.
func escaped(data []byte) (r rune, n int) {
	unit := func(at int) rune {
		if len(data) < at+6 || data[at] != '\\' || data[at+1] != 'u' {
			return -1
		}
		code, err := strconv.ParseUint(string(data[at+2:at+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(code)
	}
	switch first := unit(0); {
	case first < 0: // no JSON; who decodes it says so
		return utf8.RuneError, min(6, len(data))
	case !utf16.IsSurrogate(first):
		return first, 6
	default:
		if r := utf16.DecodeRune(first, unit(6)); r != utf8.RuneError {
			return r, 12
		}
		return utf8.RuneError, 6
	}
}

// plainText does the same to a text that is not JSON.
func plainText(s string) string {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			r = ' '
		case !unicode.IsPrint(r):
			r = utf8.RuneError
		}
		out = append(out, r)
	}
	return string(out)
}
