// Package contents lists what a record holds: its trials and flows, how many packets
// of each came, and the first runs of lost ones.
//
// A record comes in, a [Document] goes out. The package does no I/O of its own;
// its memory does not grow with the record.
package contents
