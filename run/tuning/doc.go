// Package tuning tries what the counters of a run call for, one setting at a time.
//
// A plan comes in, and who runs it. What was tried, what it changed, what was kept and
// what still loses packets goes out. A setting is kept only if trials with it, in turn
// with trials without it, are separably better (package analysis/compare); else it is
// taken back. Settings of this host go through package tune, so that its Revert undoes
// all of them at any moment; settings of pelt's own sockets are changed in the plan.
// No other host is touched.
package tuning
