//go:build !linux

package udp

// Crew is nothing on this system: each stream has a thread of its own.
type Crew struct{}

// NewCrew makes a crew.
func NewCrew() *Crew { return &Crew{} }

func (*Crew) send(s *sender) error      { return s.alone() }
func (*Crew) receive(r *receiver) error { return r.alone() }
