// Package tcp runs one end of one TCP flow: N connections that carry bulk data
// or small writes in one direction for one trial.
//
// Orders come in, connections with the one peer of the flow are made and used,
// reports go out. It never counts what it cannot know: a segment is what this
// kernel's TCP_INFO says, and on a system without it the figure stays 0 and
// the report says so.
//
// # Consent
//
// Each connection begins with the messages of engine/consent.go, so a stranger, a
// replay or a wrong key never becomes a stream. All flows of an Engine share one
// listening port.
//
// # Measured part
//
// TCP has no packets of ours to mark, so each end cuts by its own clock. The
// sender's measured part begins one warm-up after its first write and lasts as
// ordered; its figures are differences of TCP_INFO between the two moments. The
// receiver's begins one warm-up after its first byte. The two windows are the
// same length and differ in position by the path's delay, so rates compare
// exactly and totals differ by what was under way at the cuts. Bytes are booked
// when they are read; counters of the kernel are read when a timer says so, and
// a warning says when that was late.
//
// # Connections
//
// A flow of connections has its streams like any other, which get both ends' consent
// and then stay silent. After that the dialing end opens further connections, each
// stream's share on one thread, and says the consent's hello on each, which the listening end
// answers with a welcome. To measure their rate it then closes the
// connection, first of the two, so that no port of the dialing end has to wait; to
// measure how many the path holds both keep them. The dialing end counts every failure
// by name, tells what this host cannot do from what the path does not, and books an
// attempt in the second it was begun, an establishment in the second it came. What is
// begun in the measured part may take 2 s and is waited for.
//
// # Packets
//
// In the reports packets are data segments: Attempted is tcpi_data_segs_out,
// retransmissions included, Received is tcpi_data_segs_in. Planned is Attempted
// at full speed. With a rate, which counts writes, Planned is Attempted scaled
// by writes due over writes made, so that Planned - Attempted is what the
// writes not made would have taken.
package tcp
