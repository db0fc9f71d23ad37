package fleet

import (
	"bytes"
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
	data = bytes.Map(shown, data)
	if !bytes.Contains(data, []byte{'\\'}) { // a megabyte of base64
		return data
	}
	out := data[:0] // what stands for an escape is never longer
	for {
		at := bytes.IndexByte(data, '\\')
		if at < 0 || at+1 == len(data) {
			return append(out, data...)
		}
		out, data = append(out, data[:at]...), data[at:]
		r, n := escaped(data)
		if now := shown(r); lines && r == '\n' || now == r && r != utf8.RuneError {
			out = append(out, data[:n]...)
		} else {
			out = utf8.AppendRune(out, now)
		}
		data = data[n:]
	}
}

// escaped is the character that an escape of a JSON text stands for, and how long the escape is. One
// beyond 16 bits is a pair of them; what is no escape is the decoder's to refuse.
func escaped(data []byte) (rune, int) {
	if i := strings.IndexByte("bfnrt", data[1]); i >= 0 {
		return rune("\b\f\n\r\t"[i]), 2
	}
	r, ok := hex16(data)
	switch {
	case !ok:
		return ' ', 2
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	low, _ := hex16(data[6:])
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return r, 6
	}
	return r, 12
}

// hex16 reads an escape of 16 bits.
func hex16(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(n), err == nil
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
