// Package tune changes settings of this host so that they can be taken back.
//
// Names of knobs with values come in (net.core.rmem_max=4194304, eth0.rx_ring=1024);
// what was changed, from what, and what stands there now, goes out. Before anything is
// touched the old values are in a journal on the disk: whenever the process is killed, Revert
// restores what was, text for text. It decides nothing about which value is good, runs no
// program, and touches no other host and nothing that is not in Knobs.
//
// The journal is a file of JSON lines, see JournalFormat. A lock beside it keeps a
// second process out. The functions work on Linux; elsewhere Open fails.
package tune

import "pelt/words"

// JournalFormat names what the journal holds. Its first line is the header {"format"}. Each other line is a Step,
// and takes the place of an earlier one of the same setting: it is written before the setting is touched, again with
// "made" when all settings of the request are, and with "undone" when it was taken back. A last line without an end of
// line was being written when the process died: it says nothing.
const JournalFormat = "pelt/tune-journal/2"

// Errors that a caller may tell apart.
var (
	ErrBusy    = words.Errorf("another pelt tune is at work")
	ErrRights  = words.Errorf("needs root: it changes settings of this host")
	ErrLinux   = words.Errorf("settings can be changed on Linux only")
	ErrNothing = words.Errorf("nothing is applied")
)

// UsageError is a wish that is the user's to mend: nothing was touched.
type UsageError struct{ error }

func (e *UsageError) Unwrap() error { return e.error }
