package tune

import (
	"bytes"
	"cmp"
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
	"pelt/internal/outfile"
	"pelt/words"
)

// host is the host that is tuned: the kernel's files below a directory, and its drivers.
type host struct {
	root    string // "/"; a test has a tree of files there
	drivers func() (*nic.Conn, error)
	// the number of an interface in this process's namespace, 0 if there is none of that name
	own func(dev string) int
	// onWrite, if set, is called before and after each write: a test dies there, or lets the write fail.
	onWrite func(p Place, after bool) error
}

func newHost(root string) host {
	return host{root: root, drivers: nic.Open, own: func(dev string) int {
		if i, err := net.InterfaceByName(dev); err == nil {
			return i.Index
		}
		return 0
	}}
}

func (h host) path(p Place) string {
	if p.Kind == atSysctl {
		return filepath.Join(h.root, "proc/sys", sysctlPath(p.At))
	}
	return filepath.Join(h.root, "sys", p.At)
}

// read returns the text at a place without its last end of line. fs.ErrNotExist says that there is none.
func (h host) read(p Place) (string, error) {
	if p.Kind == atDriver {
		c, err := h.drivers()
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
	f, err := os.Open(h.path(p))
	if err != nil {
		return "", outfile.Cause(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxText+1))
	switch {
	case err != nil:
		return "", outfile.Cause(err)
	case len(b) > maxText:
		return "", fmt.Errorf("is longer than %d B", maxText)
	case bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b):
		return "", errors.New("is no text")
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// maxText is the longest value, in bytes.
const maxText = 1 << 16

// write makes a place hold a text.
func (h host) write(p Place, text string) error {
	if h.onWrite == nil {
		return h.put(p, text)
	}
	if err := h.onWrite(p, false); err != nil {
		return err
	}
	return errors.Join(h.put(p, text), h.onWrite(p, true))
}

func (h host) put(p Place, text string) error {
	if p.Kind == atDriver {
		c, err := h.drivers()
		if err != nil {
			return err
		}
		defer c.Close()
		dev, name, _ := strings.Cut(p.At, " ")
		return c.Set(dev, name, text)
	}
	path := h.path(p)
	if !kernelFile(path) {
		return outfile.Write(path, func(w io.Writer) error { _, err := io.WriteString(w, text+"\n"); return err })
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return outfile.Cause(err)
	}
	_, err = f.WriteString(text + "\n")
	return outfile.Cause(errors.Join(err, f.Close()))
}

// index is the number of an interface, which no other of this boot has had; 0 if there
// is none of that name.
func (h host) index(dev string) int {
	b, err := os.ReadFile(filepath.Join(h.root, "sys/class/net", dev, "ifindex"))
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
func (h host) named(index int) string {
	entries, _ := os.ReadDir(filepath.Join(h.root, "sys/class/net")) // none is an answer
	for _, e := range entries {
		if h.index(e.Name()) == index {
			return e.Name()
		}
	}
	return ""
}

// device finds out that an interface is there, and that /sys shows this namespace's.
func (h host) device(dev string) (index int, err error) {
	if index, err = h.present(dev); err == nil && index == 0 {
		err = words.Errorf("no interface %s here", dev)
	}
	return index, err
}

// present is the number of an interface, 0 if there is none of that name. The error says
// that /sys does not show this namespace's, so that neither can be told.
func (h host) present(dev string) (index int, err error) {
	if index = h.index(dev); h.own(dev) != index {
		return 0, fmt.Errorf("/sys shows another network namespace than this process's, so %s cannot be reached; "+
			"mount a sysfs of this namespace", dev)
	}
	return index, nil
}

// places are where a knob's values stand on this host. The error is a user's to mend.
func (h host) places(k Knob, dev string) ([]Place, error) {
	pattern := k.place(dev)
	if !strings.Contains(pattern.At, "*") {
		return []Place{pattern}, nil
	}
	list := h.found(pattern)
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: this host has none (/sys/%s)", k.Name, pattern.At)
	}
	return list, nil
}

// found are the places in sysfs that a pattern stands for, rx-2 before rx-10.
func (h host) found(pattern Place) (list []Place) {
	base := filepath.Join(h.root, "sys")
	files, _ := filepath.Glob(filepath.Join(globQuote(base), pattern.At)) // the pattern is right
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	for _, f := range files {
		at, _ := filepath.Rel(base, f)
		list = append(list, Place{atSysfs, at})
	}
	return list
}

func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
