package run

import (
	"pelt/model"
	"pelt/observe"
)

// ThisHost is what is known of this host as of an end of a path.
func ThisHost() model.Host { return observe.Facts() }

// Settings reads how this host is set, with the settings of one interface, or of none for "".
func Settings(iface string) []model.Knob { return observe.Knobs(iface) }
