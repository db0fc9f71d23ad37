package main

import "runtime/debug"

// release is the version of this source; the build adds the commit when the
// tool chain recorded one.
const release = "0.1.0"

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return release + "+" + s.Value[:12]
		}
	}
	return release
}
