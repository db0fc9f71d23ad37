// Package run carries out plans: it opens the path, walks the one loop of
// design, trial and store, and turns what the two ends report into results.
//
// A plan comes in, a document and a stream of events go out. It is the only
// package that knows both the pure stages and the effectful ones; it decides
// nothing about traffic itself and prints nothing.
package run
