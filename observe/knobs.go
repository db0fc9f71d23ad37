package observe

import (
	"pelt/model"
	"pelt/observe/counters"
)

// Knobs reads how this host is set in the calling process's namespace, with the settings
// of one interface, or of none for "".
func Knobs(iface string) []model.Knob {
	return counters.Knobs(func(f func() error) error { return f() }, iface)
}
