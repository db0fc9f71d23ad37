// Package record is the file format of packets that were received, one by one:
// sequence, send time and receive time of each, without loss of a nanosecond, in
// two to three bytes where a flow is steady (docs/engines.md).
//
// Packets come in, bytes go out, and the reverse. The package opens no file, reads no
// clock and starts nothing.
//
// # The format pelt/record/2
//
// A file opens with the 13 bytes 89 70 65 6c 74 2d 72 65 63 0d 0a 1a 0a. Blocks follow to
// its end:
//
//	kind u8 | length of the body u32 | CRC-32C of kind, length and body u32 | body
//
// Both numbers are little endian; the check sum is CRC-32C as in RFC 3720 (polynomial
// 0x1edc6f41). A body is at most 1 MiB. Each block can be read without the ones after it,
// so a file that was cut is whole up to the cut. A reader passes over kinds and fields that
// it does not know, and stops at the first block that is cut or damaged.
//
//	H  JSON, first: format, run, started, tool with pelt's version, target, resolution_ns
//	T  JSON, a trial begins: trial (its number in this file, from 1), cell, repeat, started,
//	   wire_trial (a number of its packets), warmup_s, measure_s, and flows: of each flow
//	   (its number), wire_trial (the number in its packets; none in older records: that of
//	   the trial), name, from, to, from_host, to_host, family, payload_bytes, rate_pps (none:
//	   as fast as it goes), streams, and one_clock, whether both ends read one clock
//	P  binary, packets of one stream, in the order they came
//	S  JSON, a stream ends: trial, flow, stream (from 0), packets recorded, and dropped: left out
//	C  JSON, a trial ends: trial, its state, why, and the figures of its own account, by flow:
//	   attempted (of each stream), received, duplicates, reordered, late, jitter_ns, delay_ns,
//	   recorded, dropped
//	V  JSON, a trial was not kept, it ran again: trial; after its C, or in place of it
//	E  JSON, last of a whole file: packets, dropped (of the trials that have a C), complete
//	   (the run went to its end)
//
// The body of a P has at most 16384 packets. Its numbers are varints (LEB128), signed ones in
// zigzag: trial, flow, stream, packets left out right before, count, first sequence, first
// send time, and first receive time less that (signed). The rest of the body is one zstd
// frame (RFC 8878) of at most 512 KiB. It holds three columns of signed varints, one after
// the other, with a number for each packet but the first:
//
//	sequences   the step from the packet before, less 1
//	send times  the gap after the packet before, less the gap before that (0 for the first)
//	delays      the delay, less the delay of the packet before
//
// Sequences and send times have 48 bits: a step or a gap is the signed number of 48 bits from
// one to the next, and sums are taken modulo 2^48. A delay is a receive time less a send time,
// where send times go on beyond 2^48: the first one and all gaps. All else has 64 bits.
package record
