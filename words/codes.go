package words

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Codes is no language of readers: its texts keep what is to be said, and with which values, until Read says it. Words
// of stored findings are in it.
const Codes Language = "codes"

// A code stands between two marks: how its parts are said, and these. A part may hold codes.
const codeOpens, codeParts, codeEnds = "\ue001", "\ue002", "\ue003"

func code(how string, parts ...string) string {
	return codeOpens + strings.Join(append([]string{how}, parts...), codeParts) + codeEnds
}

// Read says in a language what is written in Codes. It leaves other text as it is.
func (l Language) Read(text string) string {
	for l != Codes {
		end := strings.Index(text, codeEnds)
		begin := strings.LastIndex(text[:max(end, 0)], codeOpens) // of the innermost code
		if begin < 0 {
			break
		}
		parts := strings.Split(text[begin+len(codeOpens):end], codeParts)
		text = text[:begin] + l.read(parts[0], parts[1:]) + text[end+len(codeEnds):]
	}
	return text
}

// read says the parts of a code. A damaged file may lack some.
func (l Language) read(how string, parts []string) string {
	of := append(parts, "", "")
	switch how {
	case "say":
		return l.Say(of[0])
	case "form":
		return l.Form(of[0], of[1])
	case "with":
		return l.With(of[0], of[1:len(of)-1-len(of)%2]...)
	case "bracketed":
		return l.Bracketed(of[0], of[1])
	case "time":
		at, _ := time.Parse(time.RFC3339, of[1])
		return l.Time(of[0], at)
	case "capital":
		return l.Capital(of[0])
	}
	var values []any
	for _, v := range of[1:max(len(parts), 1)] {
		values = append(values, v)
	}
	return l.put(strings.ReplaceAll(l.Say(of[0]), "%d", "%s"), values) // a code has numbers as texts
}

// Form says a form with a text in the place of its %: "every %" with "1 ms". A form with a word may have words of its
// own.
func (l Language) Form(form, text string) string {
	if l == Codes {
		return code("form", form, text)
	}
	whole := strings.Replace(form, "%", text, 1)
	if said := l.Say(whole); said != whole {
		return said
	}
	if l == English && text == "1" {
		return strings.TrimSuffix(whole, "s") // one stream
	}
	return strings.Replace(l.Say(form), "%", text, 1)
}

// With says a text and replaces marks in it: mark, value, mark, value...
func (l Language) With(text string, marks ...string) string {
	if l == Codes {
		return code("with", append([]string{text}, marks...)...)
	}
	return strings.NewReplacer(marks...).Replace(l.Say(text))
}

// Time is a moment in UTC in an English layout of package time.
func (l Language) Time(layout string, at time.Time) string {
	if l == Codes {
		return code("time", layout, at.UTC().Format(time.RFC3339))
	}
	return at.UTC().Format(l.Say(layout))
}

// Capital is a name as the beginning of a sentence.
func (l Language) Capital(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	switch {
	case size == 0:
		return ""
	case l == Codes:
		return code("capital", name)
	}
	return string(unicode.ToUpper(first)) + name[size:]
}

// coded is a format with its values.
func coded(format string, values []any) string {
	parts := []string{format}
	for _, v := range values {
		parts = append(parts, fmt.Sprint(v))
	}
	return code("", parts...)
}
