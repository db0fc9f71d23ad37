package dut

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/observe/counters"
)

// core is what one reading tells of one core.
type core struct {
	number  int
	ticks   counters.Ticks
	rx, tx  uint32 // softirqs NET_RX and NET_TX; they wrap
	softirq bool   // rx and tx are there
}

// sample is one answer of the router, all of the same moment.
type sample struct {
	up             float64 // of the router's clock, s since its boot
	boot           string  // "" if it does not tell
	all            counters.Ticks
	cores          []core // in rising order; those that are switched off are not there
	backlog        []counters.Backlog
	connections    *uint64
	connectionsMax *uint64
	clockHz        float64 // of the slowest core; NaN unknown
	temperatureC   float64 // of the hottest zone; NaN unknown
	spent          uint64  // by the watch itself, in ticks
	spentKnown     bool
	texts          map[string]string // of counters.RouterFiles
}

var errForm = errors.New("its answer has not the parts that were asked for")

// sampleFile is a file of a sample, or what the shell makes files of.
type sampleFile struct {
	path  string
	parse func(*sample, string) error // nil: package counters reads it
}

// sampleFiles are what a sample consists of, in the order in which the router prints them. What must belong together
// comes first. A file that is missing is empty. Neither /proc/interrupts nor the table of connections is among them:
// reading those costs too much.
var sampleFiles = slices.Concat([]sampleFile{
	{"/proc/uptime", (*sample).parseUptime},
	{"/proc/stat", (*sample).parseStat},
	{"/proc/softirqs", (*sample).parseSoftirqs},
}, counterFiles(), []sampleFile{
	{"/proc/sys/net/netfilter/nf_conntrack_count", (*sample).parseConnections},
	{"/proc/sys/net/netfilter/nf_conntrack_max", (*sample).parseConnectionsMax},
	{"$clocks", (*sample).parseClocks},
	{"$zones", (*sample).parseZones},
	{"/proc/sys/kernel/random/boot_id", (*sample).parseBoot},
	{"/proc/$$/stat", (*sample).parseShell},
	{"/proc/$PPID/stat", (*sample).parseParent},
})

func counterFiles() (list []sampleFile) {
	for _, path := range counters.RouterFiles() {
		list = append(list, sampleFile{path: path})
	}
	return list
}

func samplePaths() (paths []string) {
	for _, f := range sampleFiles {
		paths = append(paths, f.path)
	}
	return paths
}

// parseSample reads an answer. Only without the time and the processors' ticks is
// there no sample; what else is missing or broken stays unknown.
func parseSample(body string) (s sample, err error) {
	texts := []string{""}
	for line := range strings.Lines(body) {
		if strings.TrimRight(line, "\r\n") == divider {
			texts = append(texts, "")
		} else {
			texts[len(texts)-1] += line
		}
	}
	if len(texts) != len(sampleFiles) {
		return s, errForm
	}
	s = sample{texts: map[string]string{}, clockHz: math.NaN(), temperatureC: math.NaN()}
	for i, f := range sampleFiles {
		if f.parse == nil {
			s.texts[f.path] = texts[i]
		} else if err := f.parse(&s, texts[i]); err != nil {
			return s, err
		}
	}
	s.backlog = counters.ParseBacklog(s.texts["/proc/net/softnet_stat"])
	return s, nil
}

func (s *sample) parseUptime(b string) (err error) {
	if s.up, err = strconv.ParseFloat(firstWord(b), 64); err != nil || !(s.up >= 0 && s.up < 1e10) {
		return fmt.Errorf("its uptime %.40q is not a time", b)
	}
	return nil
}

func (s *sample) parseConnections(b string) error {
	s.connections = whole(b)
	return nil
}

func (s *sample) parseConnectionsMax(b string) error {
	s.connectionsMax = whole(b)
	return nil
}

func (s *sample) parseBoot(b string) error {
	s.boot = clean(b, 64)
	return nil
}

// parseClocks keeps the slowest core's clock.
func (s *sample) parseClocks(b string) error {
	for _, kHz := range numbers(b) {
		if kHz > 0 && !(s.clockHz <= kHz*1000) {
			s.clockHz = kHz * 1000
		}
	}
	return nil
}

// parseZones keeps the hottest zone's temperature. Zones that are switched off report absurd values.
func (s *sample) parseZones(b string) error {
	for _, milli := range numbers(b) {
		if c := milli / 1000; c > -50 && c < 200 && !(s.temperatureC >= c) {
			s.temperatureC = c
		}
	}
	return nil
}

func (s *sample) parseStat(b string) error {
	p, err := counters.ParseProcessors(b)
	if err != nil {
		return fmt.Errorf("its %w", err)
	}
	s.all = p.All
	for _, number := range slices.Sorted(maps.Keys(p.Cores)) {
		s.cores = append(s.cores, core{number: number, ticks: p.Cores[number]})
	}
	return nil
}

// parseSoftirqs reads /proc/softirqs: a line with the cores, also those that are
// switched off, then a line for each kind with a count for each core.
func (s *sample) parseSoftirqs(b string) error {
	rows := map[string][]string{}
	for line := range strings.Lines(b) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if strings.HasPrefix(fields[0], "CPU") {
			rows["CPU"] = fields
		} else {
			rows[fields[0]] = fields[1:]
		}
	}
	rx, tx := rows["NET_RX:"], rows["NET_TX:"]
	for i := range s.cores {
		c := &s.cores[i]
		column := slices.Index(rows["CPU"], fmt.Sprint("CPU", c.number))
		if column < 0 || column >= len(rx) || column >= len(tx) {
			continue
		}
		in, err1 := strconv.ParseUint(rx[column], 10, 32)
		out, err2 := strconv.ParseUint(tx[column], 10, 32)
		if err1 == nil && err2 == nil {
			c.rx, c.tx, c.softirq = uint32(in), uint32(out), true
		}
	}
	return nil
}

// parseShell and parseParent add up what the watch took of the router's cores: the shell and the processes that it
// started, and the ssh server's process that carries the connection and ciphers it, which is the shell's parent. The
// kernel's own work for the connection's packets, in interrupts, is in nobody's account.
func (s *sample) parseShell(stat string) error {
	s.spent, s.spentKnown = spentBy(stat, nil, true)
	return nil
}

func (s *sample) parseParent(stat string) error {
	server, _ := spentBy(stat, []string{"sshd", "dropbear"}, false) // in a lab it is not there
	s.spent += server
	return nil
}

// spentBy adds utime and stime of a /proc/PID/stat, and those of its ended children,
// if its name begins with one of names (proc_pid_stat(5), fields 14 to 17).
func spentBy(stat string, names []string, children bool) (n uint64, ok bool) {
	_, name, _ := strings.Cut(stat, "(")
	closed := strings.LastIndexByte(name, ')')
	named := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	if closed < 0 || names != nil && !slices.ContainsFunc(names, named) {
		return 0, false
	}
	fields := strings.Fields(name[closed+1:])
	const utime = 14 - 3 // the state, field 3, follows the name
	if len(fields) < utime+4 {
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

func firstWord(text string) string {
	if f := strings.Fields(text); len(f) > 0 {
		return f[0]
	}
	return ""
}

// whole is a file with one whole number; nil if it is not there.
func whole(text string) *uint64 {
	n, err := strconv.ParseUint(firstWord(text), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// numbers are those of files with one number each; what is none is passed over.
func numbers(text string) (out []float64) {
	for line := range strings.Lines(text) {
		if n, err := strconv.ParseInt(firstWord(line), 10, 64); err == nil {
			out = append(out, float64(n))
		}
	}
	return out
}
