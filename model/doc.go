// Package model holds the nouns of a measurement: plan, flow, trial, result,
// ledger and finding, with the JSON names of the durable file formats.
//
// It computes only what follows from one value alone (sizes, checks, a trial
// from a plan and a cell). It does no I/O and imports nothing of pelt but unit and pace.
// All numbers are in base units; the unit is in the name or in the type.
package model

// Formats of what pelt writes. A format's names never change their meaning.
const (
	RunFormat  = "pelt/run/1"
	PlanFormat = "pelt/plan/2"
)
