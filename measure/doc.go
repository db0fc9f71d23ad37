// Package measure turns packets seen by one receiver into counts: distinct,
// duplicate, reordered, late and wrong-length packets, delay, jitter and the
// series over time; and durations into histograms.
//
// Arrivals come in, a model.Tally goes out. The package reads no clock, does
// no I/O, and never infers a count from a gap between sequences: it keeps one
// bit for each sequence. Memory is fixed however long a trial lasts, but for
// 8 bytes a second of the series and a bounded list of what is missing.
package measure
