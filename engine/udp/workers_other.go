//go:build !linux

package udp

// Workers is nothing on this system: each stream has a thread of its own.
type Workers struct{}

// NewWorkers makes none.
func NewWorkers() *Workers { return &Workers{} }

func (*Workers) send(s *sender) error      { return s.runOnThreads() }
func (*Workers) receive(r *receiver) error { return r.runOnThreads() }
