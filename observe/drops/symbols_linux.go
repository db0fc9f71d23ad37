//go:build amd64 || arm64

package drops

import (
	"bytes"
	"os"
	"sync"
)

const kallsyms = "/proc/kallsyms"

// functionsNow are the running kernel's. To read them takes 0.05 s on a fast
// machine and many times that on a slow one: too long for every trial.
var functionsNow kernelFunctions

// kernelFunctions keeps what was read for as long as no module comes or goes. Its
// methods may be called at the same time.
type kernelFunctions struct {
	mu      sync.Mutex
	index   *index
	modules string
	reads   int // how often the file was read
}

// resolve finds the functions that the addresses lie in. hidden reports that the
// kernel shows no addresses.
func (k *kernelFunctions) resolve(addresses []uint64) (found map[uint64]symbol, hidden bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fresh, err := k.refresh(false)
	found = map[uint64]symbol{}
	for _, a := range addresses {
		s, fleeting, ok := k.index.find(a)
		if (fleeting || !ok) && !fresh && err == nil {
			fresh, err = k.refresh(true)
			s, _, ok = k.index.find(a)
		}
		if ok {
			found[a] = s
		}
	}
	return found, len(k.index.starts) == 0, err
}

// named tells where functions of these names are, nil if that cannot be read.
func (k *kernelFunctions) named(names []string) []tap {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := k.refresh(false); err != nil {
		return nil
	}
	return k.index.named(names)
}

// refresh reads the functions if it must, or if what is kept may be of another
// time. fresh reports that it did. There is an index afterwards, if an empty one.
func (k *kernelFunctions) refresh(must bool) (fresh bool, err error) {
	modules := modulesNow()
	if !must && k.index != nil && len(k.index.starts) > 0 && k.modules == modules {
		return false, nil
	}
	k.reads++
	k.index, k.modules = &index{}, ""
	f, err := os.Open(kallsyms)
	if err != nil {
		return true, err
	}
	defer f.Close()
	x, err := newIndex(f)
	if err == nil && modulesNow() == modules { // else some of it is of before, some of after
		k.modules = modules
	}
	k.index = x
	return true, err
}

// modulesNow names the loaded modules and where they lie: of the lines of
// /proc/modules the first word and the last that is an address. What changes while
// they stay, such as how many use them, is left out.
func modulesNow() string {
	text, err := os.ReadFile("/proc/modules")
	if err != nil {
		return "none" // a kernel without modules
	}
	b := bytes.NewBufferString("loaded:\n") // "" is what is kept of nothing
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) >= 6 {
			b.Write(words[0])
			b.WriteByte(' ')
			b.Write(words[5])
			b.WriteByte('\n')
		}
	}
	return b.String()
}
