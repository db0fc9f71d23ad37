// Package controls folds a comparison of congestion controls into what its
// readers look at: a cell for each control under each condition with its figures
// in words, its trials as points, and the trial whose seconds stand for it.
//
// A model.Document comes in; figures in base units and words that are safe on one
// line come out. It lays nothing out and judges nothing: intervals and verdicts
// are those of the document.
package controls
