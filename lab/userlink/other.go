//go:build !linux

package userlink

// Pool makes no cables: they need Linux.
type Pool struct{}

// Close has nothing to do.
func (*Pool) Close() error { return nil }

// Cable is none: it needs Linux.
type Cable struct{}

// Counts are none.
func (*Cable) Counts(int) Counts { return Counts{} }

// Watching is none.
type Watching struct{}

// Watch sees nothing.
func (*Cable) Watch(uint16, Identify) *Watching { return &Watching{} }

// Collect has nothing.
func (*Watching) Collect() (lists [2][]Verdict, unlisted [2]uint64) { return lists, unlisted }
