// Package record is the file format of packets that were received, one by one:
// sequence, send time and receive time of each, without loss of a nanosecond, in
// two to three bytes where a flow is steady (docs/engines.md).
//
// Packets come in, bytes go out, and the reverse. A file is a run's [Header] and
// blocks after it, each with its length and a check sum, and each can be read
// without the ones after it: a file that was cut is whole up to the cut. The
// package opens no file, reads no clock and starts nothing.
package record
