package lab

import (
	"pelt/finding"
	"pelt/model"
	"pelt/words"
)

// UsageError is a request that can never be fulfilled as it was asked: it names
// what is wrong and what would be right.
type UsageError struct{ said error }

func (e *UsageError) Error() string { return e.said.Error() }
func (e *UsageError) Unwrap() error { return e.said }

func usagef(format string, args ...any) error { return &UsageError{words.Errorf(format, args...)} }

func lacksRights(code, doing string, err error) error {
	return finding.NewFault(code, "name", doing, "text", model.SystemSaid(err)).From(err)
}

func kernelLacks(facility, config string, err error) error {
	return finding.NewFault(model.LabKernelLacks, "name", facility, "config", config,
		"text", model.SystemSaid(err)).From(err)
}
