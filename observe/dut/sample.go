package dut

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/observe/counters"
)

// sample is one answer of the router, all of the same moment.
type sample struct {
	up   float64 // of the router's clock, s since its boot
	boot string  // "" if it does not tell
	counters.Processors
	backlog        []counters.Backlog
	connections    *uint64
	connectionsMax *uint64
	clockHz        float64 // of the slowest core; NaN unknown
	temperatureC   float64 // of the hottest zone; NaN unknown
	spent          uint64  // by the watch itself, in ticks
	spentKnown     bool
	texts          map[string]string // of counters.RouterFiles
}

var errForm error = finding.NewFault(model.AnswerParts)

// samplePaths are what a sample consists of, in the order in which the router prints them; the shell makes paths of
// what begins with $. What must belong together comes first. A file that is missing is empty. Neither /proc/interrupts
// nor the table of connections is among them: reading those costs too much.
var samplePaths = slices.Concat([]string{uptimePath, statPath}, counters.RouterFiles(), []string{
	clockPaths, zonePaths, bootPath, shellPath, parentPath,
})

const (
	uptimePath         = "/proc/uptime"
	statPath           = "/proc/stat"
	softnetPath        = "/proc/net/softnet_stat"                     // one of counters.RouterFiles
	connectionsPath    = "/proc/sys/net/netfilter/nf_conntrack_count" // likewise, as the next
	connectionsMaxPath = "/proc/sys/net/netfilter/nf_conntrack_max"
	clockPaths         = "$clocks"
	zonePaths          = "$zones"
	bootPath           = "/proc/sys/kernel/random/boot_id"
	shellPath          = "/proc/$$/stat"
	parentPath         = "/proc/$PPID/stat"
)

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
	more := texts[min(len(samplePaths), len(texts)):]
	if len(texts) < len(samplePaths) || len(more) != 0 && len(more) != len(momentTexts) {
		return s, errForm
	}
	s = sample{texts: map[string]string{}, clockHz: math.NaN(), temperatureC: math.NaN()}
	for i, path := range samplePaths {
		s.texts[path] = texts[i]
	}
	for i, text := range more {
		s.texts[momentTexts[i].name] = text
	}
	uptime := s.texts[uptimePath]
	if s.up, err = strconv.ParseFloat(firstWord(uptime), 64); err != nil || !(s.up >= 0 && s.up < 1e10) {
		return s, finding.NewFault(model.RouterUptime, "said", fmt.Sprintf("%.40q", uptime))
	}
	if s.Processors, err = counters.ParseProcessors(s.texts[statPath]); err != nil {
		return s, finding.NewFault(model.ProcessorsUntold).From(err)
	}
	s.backlog = counters.ParseBacklog(s.texts[softnetPath])
	s.connections, s.connectionsMax = whole(s.texts[connectionsPath]), whole(s.texts[connectionsMaxPath])
	for _, kHz := range numbers(s.texts[clockPaths]) {
		if kHz > 0 && !(s.clockHz <= kHz*1000) {
			s.clockHz = kHz * 1000
		}
	}
	for _, milli := range numbers(s.texts[zonePaths]) { // zones that are switched off report absurd values
		if c := milli / 1000; c > -50 && c < 200 && !(s.temperatureC >= c) {
			s.temperatureC = c
		}
	}
	s.boot = clean(s.texts[bootPath], 64)
	// The watch costs the router's cores what the shell and its children take, and the ssh server's process that
	// carries the connection, which is the shell's parent; in a lab there is none. What the kernel does in interrupts
	// for the connection's packets is in nobody's account.
	s.spent, s.spentKnown = spentBy(s.texts[shellPath], nil, true)
	server, _ := spentBy(s.texts[parentPath], []string{"sshd", "dropbear"}, false)
	s.spent += server
	return s, nil
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
