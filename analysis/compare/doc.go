// Package compare says what differs between runs, or between the levels of a knob in
// one run, and what cannot be told apart.
//
// Documents come in, a model.Comparison goes out. It uses valid trials only and
// calls nothing a difference that may be noise: see docs/compare.md. It measures
// nothing, keeps nothing, and its functions may be called concurrently.
package compare

// AskError is a wish that the runs cannot fill, in one line.
type AskError struct{ text string }

func (e *AskError) Error() string { return e.text }

// NothingError says in one line why there is nothing valid to compare.
type NothingError struct{ text string }

func (e *NothingError) Error() string { return e.text }
