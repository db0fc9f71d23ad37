// Package bench folds the trials of a router bench into what its readers
// compare: a row per setting and direction with rate, loss, delay and the
// router's processor time, and each trial's seconds.
//
// A model.Document comes in; figures in base units and words that are safe on one
// line come out. It lays nothing out and judges nothing: a trial that is not
// valid counts only where its setting has no valid one, and then the row says so.
package bench
