package observe

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// ticks is the time one core, or all of them, spent since boot, in clock ticks.
type ticks struct {
	total, idle, softirq uint64
}

// load is one reading of /proc/stat.
type load struct {
	all   ticks
	cores map[int]ticks
}

// maxCores is above what any Linux build allows (NR_CPUS is at most 8192).
const maxCores = 1 << 16

// parseLoad reads the cpu lines of /proc/stat (Documentation/filesystems/proc.rst,
// section 1.7): user nice system idle iowait irq softirq steal guest guest_nice.
// Guest time is already in user. Kernels before 2.6.11 end earlier; missing
// columns count as 0, and columns to come are ignored.
func parseLoad(r io.Reader) (load, error) {
	l := load{cores: map[int]ticks{}}
	seen := false
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "cpu")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		whole := rest == "" || rest[0] == ' ' || rest[0] == '\t'
		core := 0
		if !whole && len(fields) == 0 {
			return load{}, fmt.Errorf("reading processor time: line %q names no core", lines.Text())
		}
		if !whole {
			var err error
			if core, err = strconv.Atoi(fields[0]); err != nil || core < 0 || core >= maxCores {
				return load{}, fmt.Errorf("reading processor time: %q is not a core", "cpu"+fields[0])
			}
			fields = fields[1:]
		}
		t, err := parseTicks(fields)
		if err != nil {
			return load{}, fmt.Errorf("reading processor time: line %q: %w", lines.Text(), err)
		}
		if whole {
			l.all, seen = t, true
		} else {
			l.cores[core] = t
		}
	}
	if err := lines.Err(); err != nil {
		return load{}, fmt.Errorf("reading processor time: %w", err)
	}
	if !seen {
		return load{}, fmt.Errorf("reading processor time: no line for all cores")
	}
	return l, nil
}

func parseTicks(fields []string) (t ticks, err error) {
	if len(fields) < 4 {
		return t, fmt.Errorf("want at least 4 columns, not %d", len(fields))
	}
	for i, f := range fields[:min(len(fields), 8)] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil || n > math.MaxInt64/8 {
			return t, fmt.Errorf("%q is not a time", f)
		}
		t.total += n
		switch i {
		case 3, 4: // idle, and idle with a disk request under way
			t.idle += n
		case 6:
			t.softirq += n
		}
	}
	return t, nil
}

// share is how a span of time was spent, as ratios 0..1.
type share struct {
	busy, softirq, idle float64
}

// since returns how the time between two readings was spent. Time stolen by
// the hypervisor counts as busy: it was not there to be used. ok is false when
// no tick passed. A counter that ran backwards, as iowait may, counts as 0.
func (t ticks) since(before ticks) (s share, ok bool) {
	total := minus(t.total, before.total)
	if total == 0 {
		return share{}, false
	}
	idle := min(minus(t.idle, before.idle), total)
	s.idle = float64(idle) / float64(total)
	s.busy = 1 - s.idle
	s.softirq = float64(min(minus(t.softirq, before.softirq), total)) / float64(total)
	return s, true
}

func minus(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}
