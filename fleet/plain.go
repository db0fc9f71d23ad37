package fleet

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape is one of a JSON text; a character beyond 16 bits is a pair of them.
var escape = regexp.MustCompile(`(?is)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\u[0-9a-f]{4}|\\.`)

// plain replaces in a JSON text, raw or escaped, what could steer a terminal or hide in a
// report: what cannot be printed becomes U+FFFD, tabs and line breaks a space, unless lines
// are kept. The other host is not trusted to send text that can be shown as it is.
func plain(data []byte, lines bool) []byte {
	data = bytes.Map(shown, data)
	if !bytes.Contains(data, []byte{'\\'}) { // a megabyte of base64
		return data
	}
	return escape.ReplaceAllFunc(data, func(e []byte) []byte {
		var text string
		if json.Unmarshal(slices.Concat([]byte{'"'}, e, []byte{'"'}), &text) != nil || lines && text == "\n" {
			return e // no escape is the decoder's to refuse
		}
		if now := plainText(text); now != text || text == string(utf8.RuneError) {
			return []byte(now)
		}
		return e
	})
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
