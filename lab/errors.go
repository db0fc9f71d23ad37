package lab

import (
	"fmt"

	"pelt/words"
)

// UsageError is a request that can never be fulfilled as it was asked: it names
// what is wrong and what would be right.
type UsageError struct {
	Text string

	said error // Text, to be said in another language
}

func (e *UsageError) Error() string { return e.Text }
func (e *UsageError) Unwrap() error { return e.said }

func usagef(format string, args ...any) error {
	said := words.Errorf(format, args...)
	return &UsageError{said.Error(), said}
}

// advised is an error whose text says what the user can do about it.
type advised struct {
	text string
	err  error
}

func (e *advised) Error() string { return e.text }
func (e *advised) Unwrap() error { return e.err }

func lacksRights(doing, missing, remedy string, err error) error {
	return &advised{fmt.Sprintf("%s: %v: needs %s; %s", doing, err, missing, remedy), err}
}

func kernelLacks(facility, config string, err error) error {
	return &advised{fmt.Sprintf("this kernel has no %s (%s): %v", facility, config, err), err}
}
