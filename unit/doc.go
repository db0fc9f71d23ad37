// Package unit parses, prints and computes exactly with the quantities of a
// packet measurement: packet rates, bit rates, sizes, durations and ratios.
//
// Text from a user comes in, exact values in base units (s, B, bit/s, packets
// per second, ratio 0..1) go out; scaled text is made only for printing. It
// never rounds a rate to a whole-nanosecond interval.
package unit

import (
	"errors"
	"fmt"

	"pelt/words"
)

// SyntaxError says which word of the user's text is wrong and what would be right.
type SyntaxError struct {
	Kind string // what was being read: "rate", "size", "duration", ...
	Text string // what the user wrote
	Want string // what would be right, with an example

	want error // Want, to be said in another language
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s %q: %s", e.Kind, e.Text, e.Want)
}

// Said is the error as words.Sentence, of which two parts can be said in another language.
func (e *SyntaxError) Said() (format string, values []any) {
	return "%v %q: %v", []any{errors.New(e.Kind), e.Text, e.want}
}

func wrong(kind, text, format string, values ...any) *SyntaxError {
	return Wrong(kind, text, words.Errorf(format, values...))
}

// Wrong makes an error about a text of a kind.
func Wrong(kind, text string, want error) *SyntaxError {
	return &SyntaxError{kind, text, want.Error(), want}
}
