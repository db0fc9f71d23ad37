package counters

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
)

// Ticks is how a core, or all of them, spent the time since boot, in clock ticks:
// user, nice, system, idle, iowait, irq, softirq, steal
// (Documentation/filesystems/proc.rst, section 1.7). Guests are within user.
type Ticks [8]uint64

// TickHz is USER_HZ, the unit of /proc/stat and /proc/PID/stat on all of Linux's usual machines.
const TickHz = 100

// Since returns how the time between two readings was spent. A tick count that went
// back, as iowait's may, counts as 0. ok is false if no tick passed, or if another than
// iowait's went back by more than a second: then it was set anew, as of a core that was
// switched off, and how much of it passed is not known.
func (t Ticks) Since(from Ticks, core int) (s model.CPUSplit, ok bool) {
	const iowait = 4
	var d [len(t)]float64
	total := 0.0
	for i := range t {
		switch {
		case t[i] > from[i]:
			d[i] = float64(t[i] - from[i])
		case i != iowait && from[i]-t[i] > TickHz:
			return s, false
		}
		total += d[i]
	}
	if total == 0 {
		return s, false
	}
	return model.CPUSplit{
		Core: core,
		User: d[0] / total, Nice: d[1] / total, System: d[2] / total, Idle: d[3] / total,
		IOWait: d[4] / total, IRQ: d[5] / total, Softirq: d[6] / total, Steal: d[7] / total,
	}, true
}

// Processors is one reading of /proc/stat.
type Processors struct {
	All   Ticks
	Cores map[int]Ticks // by number, from 0 to MaxCores-1; those that are switched off are not there
}

// Core is how a core spent the time since an earlier reading; ok is false if it was not there in both, or as of Since.
func (p Processors) Core(from Processors, core int) (s model.CPUSplit, ok bool) {
	before, known := from.Cores[core]
	now, knows := p.Cores[core]
	if !known || !knows {
		return s, false
	}
	return now.Since(before, core)
}

// Busy is the busy share of each core since an earlier reading, of those that were there in both.
func (p Processors) Busy(from Processors) map[int]float64 {
	busy := map[int]float64{}
	for core := range p.Cores {
		if s, ok := p.Core(from, core); ok {
			busy[core] = s.Busy()
		}
	}
	return busy
}

// MaxCores is above what any Linux build allows (NR_CPUS is at most 8192).
const MaxCores = 1 << 14

// ParseProcessors reads the cpu lines of /proc/stat. Older kernels have fewer columns, newer ones may have more.
func ParseProcessors(stat string) (p Processors, err error) {
	p.Cores = map[int]Ticks{}
	seen := false
	for line := range strings.Lines(stat) {
		rest, ok := strings.CutPrefix(line, "cpu")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		number := -1
		if len(fields) > 0 && rest[0] != ' ' && rest[0] != '\t' {
			n, err := strconv.ParseUint(fields[0], 10, 32)
			if _, twice := p.Cores[int(n)]; err != nil || n >= MaxCores || twice {
				return p, fmt.Errorf("/proc/stat has a core %.20q", fields[0])
			}
			number, fields = int(n), fields[1:]
		}
		if len(fields) < 4 {
			return p, fmt.Errorf("/proc/stat has a line of %d columns", len(fields))
		}
		var t Ticks
		for i := range min(len(t), len(fields)) {
			if t[i], err = strconv.ParseUint(fields[i], 10, 60); err != nil {
				return p, fmt.Errorf("/proc/stat says %.40q for a time", fields[i])
			}
		}
		if number < 0 {
			p.All, seen = t, true
		} else {
			p.Cores[number] = t
		}
	}
	if !seen {
		return p, errors.New("/proc/stat does not tell of the processors")
	}
	return p, nil
}

// Span is what was observed between two readings, in seconds; NaN if nothing.
type Span struct{ From, To, Value float64 }

// Resample spreads spans over n steps: the mean of a step, by the time that each span shares with it. A step of which
// less than a ratio was observed, or nothing, is NaN.
func Resample(spans []Span, n int, step, least float64) []float64 {
	sum, shared := make([]float64, n), make([]float64, n)
	for _, s := range spans {
		if s.To <= 0 || math.IsNaN(s.Value) {
			continue
		}
		for i := max(0, int(s.From/step)); i < n && float64(i)*step < s.To; i++ {
			if both := min(s.To, float64(i+1)*step) - max(s.From, float64(i)*step); both > 0 {
				sum[i], shared[i] = sum[i]+s.Value*both, shared[i]+both
			}
		}
	}
	for i := range sum {
		if shared[i] == 0 || shared[i] < least*step {
			sum[i] = math.NaN()
		} else {
			sum[i] /= shared[i]
		}
	}
	return sum
}

// ParseCPUInfo reads /proc/cpuinfo. name is the best name of the first core, whose key differs by architecture:
// "model name" (x86, some arm), "cpu model" and "system type" (mips), "Model" and "Hardware" (arm boards); "" on
// arm64, which has a part number only. virtual says that it runs under a hypervisor (x86 only).
func ParseCPUInfo(text string) (name, part string, virtual bool) {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); values[key] == "" {
			values[key] = strings.TrimSpace(value)
		}
	}
	for _, key := range []string{"model name", "cpu model", "Model", "Hardware", "system type"} {
		name = cmp.Or(name, values[key])
	}
	return name, values["CPU part"], slices.Contains(strings.Fields(values["flags"]), "hypervisor")
}

// ParseMemory reads MemTotal of /proc/meminfo in bytes; 0 if it is not there.
func ParseMemory(text string) uint64 {
	_, rest, _ := strings.Cut("\n"+text, "\nMemTotal:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseUint(fields[0], 10, 54)
	if err != nil {
		return 0
	}
	return kib << 10
}
