package run

import "pelt/internal/spare"

// MemoryForClients is how many bytes of memory all clients of this host may take; 0: the system does not say.
func MemoryForClients() float64 { return spare.Memory(16<<20, 4<<30) }

// StreamsForClients is how many streams all clients of this host may have at once. A stream may take a thread, and a
// Go program ends with a fatal error at 10 000 threads, or where it gets no further one.
func StreamsForClients() int { return spare.Threads(8, 2048) }
