package dut

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/observe/counters"
)

// ticks is how a core, or all of them, spent the time since boot, in clock ticks:
// user, nice, system, idle, iowait, irq, softirq, steal
// (Documentation/filesystems/proc.rst, section 1.7). Guests are within user.
type ticks [8]uint64

// split is how the time between two readings was spent. A tick count that went
// back, as iowait's may, counts as 0. ok is false if no tick passed, or if another than
// iowait's went back by more than a second: then it was set anew, as of a core that was
// switched off, and how much of it passed is not known.
func (t ticks) split(since ticks, core int) (s model.CPUSplit, ok bool) {
	var d [len(t)]float64
	total := 0.0
	for i := range t {
		switch {
		case t[i] > since[i]:
			d[i] = float64(t[i] - since[i])
		case i != 4 && since[i]-t[i] > tickHz:
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

// core is what one reading tells of one core.
type core struct {
	number  int
	ticks   ticks
	rx, tx  uint32 // softirqs NET_RX and NET_TX; they wrap
	softirq bool   // rx and tx are there
}

// sample is one answer of the router, all of the same moment.
type sample struct {
	up             float64 // of the router's clock, s since its boot
	boot           string  // "" if it does not tell
	all            ticks
	cores          []core // in rising order; those that are switched off are not there
	backlog        []counters.Backlog
	connections    *uint64
	connectionsMax *uint64
	clockHz        float64 // of the slowest core; NaN unknown
	temperatureC   float64 // of the hottest zone; NaN unknown
	spent          uint64  // by the watch itself, in ticks
	spentKnown     bool
	texts          counters.Texts
}

// maxCores is above what any Linux build allows (NR_CPUS is at most 8192).
const maxCores = 1 << 14

var errForm = errors.New("its answer has not the parts that were asked for")

// parseSample reads an answer. Only without the time and the processors' ticks is
// there no sample; what else is missing or broken stays unknown.
func parseSample(a answer) (s sample, err error) {
	if a.cut {
		return s, fmt.Errorf("its answer is longer than %d B", maxAnswer)
	}
	var part [parts][]byte
	n, from := 0, 0
	for at := 0; at < len(a.body); {
		end := bytes.IndexByte(a.body[at:], '\n')
		if end < 0 {
			end = len(a.body) - at
		}
		if string(bytes.TrimSuffix(a.body[at:at+end], []byte("\r"))) == divider {
			if n == parts-1 {
				return s, errForm
			}
			part[n], from = a.body[from:at], min(at+end+1, len(a.body))
			n++
		}
		at += end + 1
	}
	if n != parts-1 {
		return s, errForm
	}
	part[n] = a.body[from:]

	if s.up, err = strconv.ParseFloat(firstWord(part[partUptime]), 64); err != nil || !(s.up >= 0 && s.up < 1e10) {
		return s, fmt.Errorf("its uptime %.40q is not a time", part[partUptime])
	}
	if err := s.parseStat(part[partStat]); err != nil {
		return s, err
	}
	s.parseSoftirqs(part[partSoftirqs])
	s.backlog = counters.ParseBacklog(part[partSoftnet])
	s.connections, s.connectionsMax = whole(part[partConnections]), whole(part[partConnectionsMax])
	s.clockHz, s.temperatureC = math.NaN(), math.NaN()
	for _, kHz := range numbers(part[partClock]) {
		if kHz > 0 && !(s.clockHz <= kHz*1000) {
			s.clockHz = kHz * 1000
		}
	}
	for _, milli := range numbers(part[partTemperature]) {
		// Zones that are switched off report absurd values.
		if c := milli / 1000; c > -50 && c < 200 && !(s.temperatureC >= c) {
			s.temperatureC = c
		}
	}
	s.boot = clean(part[partBoot], 64)
	s.parseSpent(part[partShell], part[partParent])
	s.texts = counters.Texts{
		SNMP: part[partSNMP], Netstat: part[partNetstat], Softnet: part[partSoftnet], Dev: part[partDev], Conntrack: part[partConntrack],
	}
	return s, nil
}

// parseStat reads the cpu lines of /proc/stat. Older kernels have fewer columns.
func (s *sample) parseStat(b []byte) error {
	seen := false
	for line := range bytes.Lines(b) {
		rest, ok := strings.CutPrefix(string(line[:min(len(line), 1024)]), "cpu")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		number := -1
		if len(fields) > 0 && rest[0] != ' ' && rest[0] != '\t' {
			n, err := strconv.Atoi(fields[0])
			if err != nil || n < 0 || n >= maxCores {
				return fmt.Errorf("its /proc/stat has a core %.20q", fields[0])
			}
			number, fields = n, fields[1:]
		}
		if len(fields) < 4 {
			return fmt.Errorf("its /proc/stat has a line of %d columns", len(fields))
		}
		var t ticks
		for i := range min(len(t), len(fields)) {
			n, err := strconv.ParseUint(fields[i], 10, 63)
			if err != nil {
				return fmt.Errorf("its /proc/stat says %.40q for a time", fields[i])
			}
			t[i] = n
		}
		switch {
		case number < 0:
			s.all, seen = t, true
		case len(s.cores) > 0 && s.cores[len(s.cores)-1].number >= number:
			return fmt.Errorf("its /proc/stat has core %d in disorder", number)
		default:
			s.cores = append(s.cores, core{number: number, ticks: t})
		}
	}
	if !seen {
		return errors.New("its /proc/stat does not tell of the processors")
	}
	return nil
}

// parseSoftirqs reads /proc/softirqs: a line with the cores, also those that are
// switched off, then a line for each kind with a count for each core.
func (s *sample) parseSoftirqs(b []byte) {
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	columns := map[int]int{} // core -> column
	for i, name := range strings.Fields(string(first)) {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "CPU")); err == nil && strings.HasPrefix(name, "CPU") {
			columns[n] = i
		}
	}
	var rx, tx []string
	for line := range bytes.Lines(rest) {
		fields := strings.Fields(string(line))
		if len(fields) > 0 && fields[0] == "NET_RX:" {
			rx = fields[1:]
		} else if len(fields) > 0 && fields[0] == "NET_TX:" {
			tx = fields[1:]
		}
	}
	for i := range s.cores {
		c := &s.cores[i]
		column, ok := columns[c.number]
		if !ok || column >= len(rx) || column >= len(tx) {
			continue
		}
		in, err1 := strconv.ParseUint(rx[column], 10, 32)
		out, err2 := strconv.ParseUint(tx[column], 10, 32)
		if err1 == nil && err2 == nil {
			c.rx, c.tx, c.softirq = uint32(in), uint32(out), true
		}
	}
}

// parseSpent adds up what the watch took of the router's cores: the shell and the
// processes that it started, and the ssh server's process that carries the
// connection and ciphers it, which is the shell's parent. The kernel's own work for
// the connection's packets, in interrupts, is in nobody's account.
func (s *sample) parseSpent(shell, parent []byte) {
	own, ok := spentBy(shell, nil, true)
	if !ok {
		return
	}
	server, _ := spentBy(parent, []string{"sshd", "dropbear"}, false) // in a lab it is not there
	s.spent, s.spentKnown = own+server, true
}

// spentBy adds utime and stime of a /proc/PID/stat, and those of its ended children,
// if its name begins with one of names (proc_pid_stat(5), fields 14 to 17).
func spentBy(stat []byte, names []string, children bool) (n uint64, ok bool) {
	open, closed := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || closed < open {
		return 0, false
	}
	named := names == nil
	for _, name := range names {
		named = named || bytes.HasPrefix(stat[open+1:closed], []byte(name))
	}
	fields := strings.Fields(string(stat[closed+1 : min(len(stat), closed+1024)]))
	const utime = 14 - 3 // the state, field 3, follows the name
	if !named || len(fields) < utime+4 {
		return 0, false
	}
	last := utime + 2
	if children {
		last += 2
	}
	for _, f := range fields[utime:last] {
		t, err := strconv.ParseUint(f, 10, 63)
		if err != nil {
			return 0, false
		}
		n += t
	}
	return n, true
}

func firstWord(b []byte) string {
	if f := bytes.Fields(b[:min(len(b), 256)]); len(f) > 0 {
		return string(f[0])
	}
	return ""
}

// whole is a file with one whole number; nil if it is not there.
func whole(b []byte) *uint64 {
	n, err := strconv.ParseUint(firstWord(b), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// numbers are those of files with one number each; what is none is passed over.
func numbers(b []byte) (out []float64) {
	for line := range bytes.Lines(b) {
		if n, err := strconv.ParseInt(firstWord(line), 10, 64); err == nil {
			out = append(out, float64(n))
		}
	}
	return out
}
