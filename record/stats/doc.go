// Package stats computes a trial's figures again from its record, and more that the
// trial itself does not keep: how far packets were reordered, how long the runs of
// lost ones were, how the gaps between arrivals were distributed.
//
// A record comes in, a [Document] goes out. The package does no I/O of its own;
// its memory does not grow with the record.
package stats
