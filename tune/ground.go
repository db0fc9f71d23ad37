package tune

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pelt/internal/nic"
)

// ground is the host that is tuned: the kernel's files and /etc below a directory, and
// its drivers.
type ground struct {
	root    string // "/", or a tree that stands for a host
	real    bool   // root is this very host: rights, namespaces and drivers are its own
	drivers func() (*nic.Conn, error)
	// moment, if set, is called before and after each write and removal: a test dies there.
	moment func(p Place, after bool)
}

// newGround takes an absolute path.
func newGround(root string) ground {
	g := ground{root: filepath.Clean(root), drivers: nic.Open}
	if g.real = g.root == "/"; !g.real {
		g.drivers = func() (*nic.Conn, error) { return nil, errors.New("a tree under --root has no drivers") }
	}
	return g
}

func (g ground) path(p Place) string {
	switch p.Kind {
	case atSysctl:
		return filepath.Join(g.root, "proc/sys", sysctlPath(p.At))
	case atSysfs:
		return filepath.Join(g.root, "sys", p.At)
	case atIRQ:
		return filepath.Join(g.root, "proc/irq", p.At)
	}
	return filepath.Join(g.root, p.At)
}

// read returns the text at a place without its last end of line, and of a file all of it.
// fs.ErrNotExist says that there is none.
func (g ground) read(p Place) (string, error) {
	if p.Kind == atDriver {
		c, err := g.drivers()
		if err != nil {
			return "", err
		}
		defer c.Close()
		dev, name, _ := strings.Cut(p.At, " ")
		text, err := c.Get(dev, name)
		if noDevice(err) {
			return "", fmt.Errorf("%w: %w", fs.ErrNotExist, err)
		}
		return text, err
	}
	f, err := os.Open(g.path(p))
	if err != nil {
		return "", cause(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxText+1))
	switch {
	case err != nil:
		return "", cause(err)
	case len(b) > maxText:
		return "", fmt.Errorf("is longer than %d B", maxText)
	case bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b):
		return "", errors.New("is no text")
	case p.Kind == atFile:
		return string(b), nil
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// maxText is the longest value or file, in bytes.
const maxText = 1 << 16

// write makes a place hold a text.
func (g ground) write(p Place, text string, mode os.FileMode) error {
	if g.moment != nil {
		g.moment(p, false)
		defer g.moment(p, true)
	}
	return g.put(p, text, mode)
}

func (g ground) put(p Place, text string, mode os.FileMode) error {
	if p.Kind == atDriver {
		c, err := g.drivers()
		if err != nil {
			return err
		}
		defer c.Close()
		dev, name, _ := strings.Cut(p.At, " ")
		return c.Set(dev, name, text)
	}
	path := g.path(p)
	if p.Kind == atFile {
		return replaceFile(path, text, mode)
	}
	if !kernelFile(path) {
		return replaceFile(path, text+"\n", 0o644)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return cause(err)
	}
	_, err = f.WriteString(text + "\n")
	return cause(errors.Join(err, f.Close()))
}

// remove takes away a file that was not there before.
func (g ground) remove(p Place) error {
	if g.moment != nil {
		g.moment(p, false)
		defer g.moment(p, true)
	}
	path := g.path(p)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cause(err)
	}
	return syncDir(filepath.Dir(path))
}

// tidy removes what a process that was killed while it wrote a plain file left.
func (g ground) tidy(p Place) error {
	if p.Kind == atDriver || kernelFile(g.path(p)) {
		return nil
	}
	return forget(g.path(p))
}

// index is the number of an interface, which no other of this boot has had; 0 if there
// is none of that name.
func (g ground) index(dev string) int {
	b, err := os.ReadFile(filepath.Join(g.root, "sys/class/net", dev, "ifindex"))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}

// named is the interface of a number, "" if there is none.
func (g ground) named(index int) string {
	entries, _ := os.ReadDir(filepath.Join(g.root, "sys/class/net")) // none is an answer
	for _, e := range entries {
		if g.index(e.Name()) == index {
			return e.Name()
		}
	}
	return ""
}

// device finds out that an interface is there, and that /sys shows this namespace's.
func (g ground) device(dev string) (index int, err error) {
	if index, err = g.present(dev); err == nil && index == 0 {
		err = fmt.Errorf("no interface %s here", dev)
	}
	return index, err
}

// present is the number of an interface, 0 if there is none of that name. The error says
// that /sys does not show this namespace's, so that neither can be told.
func (g ground) present(dev string) (index int, err error) {
	index = g.index(dev)
	if !g.real {
		return index, nil
	}
	own := 0
	if i, err := net.InterfaceByName(dev); err == nil {
		own = i.Index
	}
	if own != index {
		return 0, fmt.Errorf("/sys shows another network namespace than this process's, so %s cannot be reached; mount a sysfs of this namespace", dev)
	}
	return index, nil
}

// places are where a knob's values stand on this host. The errors are a user's to mend.
func (g ground) places(c Change) ([]Place, []string, error) {
	k, dev, err := find(c.Knob)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case k.Name == "DEV.irq_affinity":
		irqs := g.interrupts(dev)
		if len(irqs) == 0 {
			return nil, nil, fmt.Errorf("%s: the interface has no interrupts of its own", c.Knob)
		}
		each := strings.Split(c.Value, "/")
		var list []Place
		var values []string
		for i, irq := range irqs {
			list, values = append(list, Place{atIRQ, strconv.Itoa(irq) + "/smp_affinity_list"}), append(values, each[i%len(each)])
		}
		return list, values, nil
	case k.place != nil:
		pattern := k.place(dev)
		if !strings.Contains(pattern, "*") {
			return []Place{{atSysfs, pattern}}, []string{c.Value}, nil
		}
		base := filepath.Join(g.root, "sys")
		found, _ := filepath.Glob(filepath.Join(globQuote(base), pattern)) // the pattern is right
		slices.SortFunc(found, byNumber)
		var list []Place
		var values []string
		for _, f := range found {
			at, _ := filepath.Rel(base, f)
			list, values = append(list, Place{atSysfs, at}), append(values, c.Value)
		}
		if len(list) == 0 {
			return nil, nil, fmt.Errorf("%s: this host has none (/sys/%s)", c.Knob, pattern)
		}
		return list, values, nil
	case strings.HasPrefix(k.Name, "DEV."):
		return []Place{{atDriver, dev + " " + strings.TrimPrefix(k.Name, "DEV.")}}, []string{c.Value}, nil
	}
	return []Place{{atSysctl, c.Knob}}, []string{c.Value}, nil
}

// interrupts are those of an interface's device, ascending.
func (g ground) interrupts(dev string) (list []int) {
	entries, _ := os.ReadDir(filepath.Join(g.root, "sys/class/net", dev, "device/msi_irqs")) // none is an answer
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			if _, err := os.Stat(filepath.Join(g.root, "proc/irq", e.Name())); err == nil {
				list = append(list, n)
			}
		}
	}
	slices.Sort(list)
	return list
}

// queueFiles are what goes with a queue of an interface.
func (g ground) queueFiles(dev string) (list []Place) {
	base := filepath.Join(g.root, "sys")
	for _, pattern := range []string{
		"rx-*/rps_cpus", "rx-*/rps_flow_cnt", "tx-*/xps_cpus", "tx-*/xps_rxqs", "tx-*/tx_maxrate",
		"tx-*/byte_queue_limits/hold_time", "tx-*/byte_queue_limits/limit_max", "tx-*/byte_queue_limits/limit_min",
	} {
		found, _ := filepath.Glob(filepath.Join(globQuote(base), "class/net", dev, "queues", pattern)) // the pattern is right
		slices.SortFunc(found, byNumber)
		for _, f := range found {
			at, _ := filepath.Rel(base, f)
			list = append(list, Place{atSysfs, at})
		}
	}
	return list
}

// byNumber puts rx-2 before rx-10.
func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// cause drops the path that an os error shows: the caller says what it was about.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
