package run

import (
	"pelt/model"
	"pelt/observe"
)

// ThisHost describes this host.
func ThisHost() model.Host { return observe.Facts() }

// Settings reads the settings of this host, and of one interface unless it is "".
func Settings(iface string) []model.HostSetting { return observe.Knobs(iface) }
