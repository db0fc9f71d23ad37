package observe

import (
	"os"
	"runtime"

	"pelt/model"
)

// Facts describes this machine as far as it tells; it never fails. Node,
// Version and the fields of the interface are the caller's to fill.
func Facts() model.Host {
	h := model.Host{OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU()}
	if name, err := os.Hostname(); err == nil {
		h.Name = name
	}
	systemFacts(&h)
	return h
}
