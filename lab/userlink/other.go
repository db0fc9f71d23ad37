//go:build !linux

package userlink

// Emulated links need Linux: nobody can have one here.
type Pool struct{}

func (*Pool) Close() error { return nil }

type Cable struct{}

func (*Cable) Counts(int) Counts { return Counts{} }

func Now() uint64 { return 0 }

type Watching struct{}

func (*Cable) Watch(uint16, int, Identify) *Watching                { return &Watching{} }
func (*Watching) Collect() (lists [2][]Verdict, unlisted [2]uint64) { return lists, unlisted }
