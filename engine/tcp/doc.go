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
// The end that dials opens each connection with a hello that names trial, flow
// and stream; the listening end answers with a welcome, the dialing end with a
// confirmation. Each carries a nonce or answers one, and a MAC by the flow's
// key, so a stranger, a replay or a wrong key never becomes a stream. All
// flows of an Engine share one listening port.
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
// # Packets
//
// In the reports packets are data segments: Attempted is tcpi_data_segs_out,
// retransmissions included, Received is tcpi_data_segs_in. Planned is Attempted
// at full speed. With a rate, which counts writes, Planned is Attempted scaled
// by writes due over writes made, so that Planned - Attempted is what the
// writes not made would have taken.
package tcp
