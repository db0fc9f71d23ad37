// Package table turns run documents into figures: rows, metrics, groups,
// summaries and comparisons.
//
// Run documents come in. Out go rows (what one figure is about), groups of rows
// that share the levels of some keys, and the figures of groups: their middle
// with its interval, and whether two groups differ. There is one list of metrics
// in display order, one way to group, one to summarise and one to compare.
//
// It never asks what kind of test a run is, makes no sentence and draws nothing.
// It changes no document. Only valid trials make figures; a group knows how many
// of its trials were not.
package table
