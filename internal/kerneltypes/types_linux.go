// Package kerneltypes shares what was read of the running kernel's type
// information (BTF) among those that load programs: to decode it takes 0.1 s on a
// fast machine, and each load would do it anew.
package kerneltypes

import (
	"os"
	"slices"
	"sync"

	"github.com/cilium/ebpf/btf"
)

var kept struct {
	sync.Mutex
	cache   *btf.Cache
	modules []string // with type information, when the cache was made
}

// Cache gives the kernel's and its modules' types. It is the same for as long as
// no module comes or goes, for a cache takes in no later ones. It is safe for
// concurrent use, and nothing of it may be changed.
func Cache() *btf.Cache {
	kept.Lock()
	defer kept.Unlock()
	now := modules()
	if kept.cache == nil || !slices.Equal(kept.modules, now) {
		kept.cache, kept.modules = btf.NewCache(), now
	}
	return kept.cache
}

// modules are those with type information, by name.
func modules() []string {
	entries, err := os.ReadDir("/sys/kernel/btf")
	if err != nil {
		return nil // no type information: the cache says so where it is asked
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
