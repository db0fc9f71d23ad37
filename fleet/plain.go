package fleet

import (
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// plain takes out of a JSON text what could steer a terminal or hide in a
// report: a control or otherwise unprintable character, raw or escaped, becomes
// U+FFFD, a line break or tab a space. The other host is not trusted to send
// text that can be shown as it is.
func plain(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		c := data[i]
		switch {
		case c == '\\' && i+1 < len(data):
			n := 2
			switch data[i+1] {
			case 'b', 'f', 'n', 'r', 't':
				out = append(out, ' ')
			case 'u':
				n = min(6, len(data)-i)
				code, err := strconv.ParseUint(string(data[i+2:i+n]), 16, 16)
				if n == 6 && err == nil && !unicode.IsPrint(rune(code)) && !utf16.IsSurrogate(rune(code)) {
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
