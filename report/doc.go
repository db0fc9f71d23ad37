// Package report prints a finished run for people and for programs: a terminal
// table, JSON, CSV and one HTML file that needs no network.
//
// A model.Document comes in, bytes go out; Parse reads a document back. The
// package measures nothing, judges nothing (package analysis did) and never
// fails on odd numbers or hostile names in a document: it escapes them.
package report
