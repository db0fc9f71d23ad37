package observe

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxLine bounds one line of a kernel file; the intr line of /proc/stat is the
// longest, about 20 B for each of up to some thousand interrupts.
const maxLine = 1 << 20

// files is a root under which proc and sys lie, so that tests can bring their own.
type files string

// text returns a kernel file without surrounding white space, "" if it cannot be read.
func (root files) text(path string) string {
	b, err := os.ReadFile(filepath.Join(string(root), path))
	if err != nil {
		return ""
	}
	return string(bytes.Trim(b, " \t\n\x00"))
}

// number returns a kernel file that holds one whole number.
func (root files) number(path string) (n int, ok bool) {
	n, err := strconv.Atoi(root.text(path))
	return n, err == nil
}

// parseMemory reads MemTotal of /proc/meminfo in bytes; 0 if it is not there.
func parseMemory(r io.Reader) uint64 {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "MemTotal:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil || kib > math.MaxUint64>>10 {
			return 0
		}
		return kib << 10
	}
	return 0
}

// processor is what /proc/cpuinfo tells of the first core.
type processor struct {
	model   string
	virtual bool // the hypervisor flag is set (x86 only)
}

// parseProcessor reads /proc/cpuinfo, whose names differ by architecture:
// "model name" (x86, some arm), "cpu model" and "system type" (mips), "Model"
// and "Hardware" (arm boards), in falling order of use.
func parseProcessor(r io.Reader) (p processor) {
	names := []string{"model name", "cpu model", "Model", "Hardware", "system type"}
	best := len(names)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			continue
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "flags" && strings.Contains(" "+value+" ", " hypervisor ") {
			p.virtual = true
		}
		for i, name := range names[:best] {
			if key == name && value != "" {
				p.model, best = value, i
				break
			}
		}
	}
	return p
}

// parseKernel reads "6.18.44-whatever" into 6, 18.
func parseKernel(release string) (major, minor int, ok bool) {
	a, rest, ok := strings.Cut(release, ".")
	if !ok {
		return 0, 0, false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	major, e1 := strconv.Atoi(a)
	minor, e2 := strconv.Atoi(rest[:end])
	return major, minor, e1 == nil && e2 == nil && major >= 0
}
