package words

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Sentence is an error that keeps the English format that it was made of, and the values in it, so that it can be said
// in another language where it is shown.
type Sentence interface {
	error
	Said() (format string, values []any)
}

type sentence struct {
	error
	format string
	values []any
}

// Errorf makes an error as fmt.Errorf does; Language.Error says it in another language.
func Errorf(format string, values ...any) error {
	return &sentence{fmt.Errorf(format, values...), format, values}
}

func (s *sentence) Said() (format string, values []any) { return s.format, s.values }

// Unwrap returns the errors that stand in the sentence as %w.
func (s *sentence) Unwrap() []error { return parts(s.error) }

// parts returns what an error wraps itself, not what those wrap.
func parts(err error) []error {
	switch x := any(err).(type) {
	case interface{ Unwrap() []error }:
		return x.Unwrap()
	case interface{ Unwrap() error }:
		return []error{x.Unwrap()}
	}
	return nil
}

// Line says an error in one line; "" for none.
func (l Language) Line(err error) string {
	if err == nil {
		return ""
	}
	return strings.Join(strings.FieldsFunc(l.Error(err), func(r rune) bool { return r == '\n' }), l.Say("; "))
}

// wrapped is the verb of an error, whose text takes its place: %w or, in another order than the English one, %[2]w.
var wrapped = regexp.MustCompile(`%(\[\d\])?w`)

// Error says an error in the language. Its parts that the table lacks stay in English.
func (l Language) Error(err error) string {
	text := err.Error()
	if l == English {
		return text
	}
	if x, ok := err.(interface{ SaidIn(l Language) string }); ok {
		return x.SaidIn(l)
	}
	if said := l.Say(text); said != text {
		return said
	}
	if of, ok := any(err).(*fs.PathError); ok {
		return l.Sayf("%s: %s", of.Path, l.Error(of.Err))
	}
	if s, ok := any(err).(Sentence); ok {
		format, values := s.Said()
		values = slices.Clone(values)
		for i, v := range values {
			if inner, ok := v.(error); ok {
				values[i] = l.Error(inner)
			}
		}
		return l.put(wrapped.ReplaceAllString(l.Say(format), "%${1}v"), values)
	}
	for _, part := range parts(err) {
		if part != nil {
			english, said := part.Error(), l.Error(part)
			if head, tail, behind := strings.Cut(text, ": "+english); behind && said != english {
				text = head + l.Sayf("%s: ", "") + said + tail
			} else {
				text = strings.Replace(text, english, said, 1)
			}
		}
	}
	return text
}
