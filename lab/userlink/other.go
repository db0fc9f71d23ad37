//go:build !linux

package userlink

import (
	"errors"

	"pelt/lab/impair"
)

// Pool makes no cables: they need Linux.
type Pool struct{}

// NewPool fails: emulated links need Linux.
func NewPool(int) (*Pool, error) { return nil, errors.ErrUnsupported }

// Close has nothing to do.
func (*Pool) Close() error { return nil }

// Cable is none: it needs Linux.
type Cable struct{}

// Open fails: emulated links need Linux.
func (*Pool) Open(End, End, [2]impair.Settings) (*Cable, error) { return nil, errors.ErrUnsupported }

// Set does nothing.
func (*Cable) Set(int, impair.Settings) {}

// Counts are none.
func (*Cable) Counts(int) Counts { return Counts{} }

// Watching is none.
type Watching struct{}

// Watch sees nothing.
func (*Cable) Watch(uint16, Identify) *Watching { return &Watching{} }

// Collect has nothing.
func (*Watching) Collect() (lists [2][]Verdict, unlisted [2]uint64) { return lists, unlisted }
