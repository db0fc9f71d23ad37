package lab

import "fmt"

// UsageError is a request that can never be fulfilled as it was asked: it names
// what is wrong and what would be right.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// RightsError is a missing permission.
type RightsError struct {
	Doing   string
	Missing string // CAP_SYS_ADMIN, ...
	Remedy  string
	Err     error
}

func (e *RightsError) Error() string {
	return fmt.Sprintf("%s: %v: needs %s; %s", e.Doing, e.Err, e.Missing, e.Remedy)
}

func (e *RightsError) Unwrap() error { return e.Err }

// KernelError is a facility that this kernel lacks.
type KernelError struct {
	Facility string // tbf, veth, ...
	Config   string // the kernel option that brings it
	Err      error
}

func (e *KernelError) Error() string {
	return fmt.Sprintf("this kernel has no %s (%s): %v", e.Facility, e.Config, e.Err)
}

func (e *KernelError) Unwrap() error { return e.Err }
