package dut

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The parts of a sample, in the order in which the router prints them. What must
// belong together comes first.
const (
	partUptime = iota
	partStat
	partSoftirqs
	partSoftnet
	partDev
	partSNMP
	partNetstat
	partConntrack
	partConnections
	partConnectionsMax
	partClock
	partTemperature
	partBoot
	partShell
	partParent
	parts
)

// sampleFiles are what the parts are read of, as the shell writes them. A file that
// is missing leaves its part empty. Neither /proc/interrupts nor the table of
// connections is among them: reading those costs too much.
var sampleFiles = [parts]string{
	partUptime:         "/proc/uptime",
	partStat:           "/proc/stat",
	partSoftirqs:       "/proc/softirqs",
	partSoftnet:        "/proc/net/softnet_stat",
	partDev:            "/proc/net/dev",
	partSNMP:           "/proc/net/snmp",
	partNetstat:        "/proc/net/netstat",
	partConntrack:      "/proc/net/stat/nf_conntrack",
	partConnections:    "/proc/sys/net/netfilter/nf_conntrack_count",
	partConnectionsMax: "/proc/sys/net/netfilter/nf_conntrack_max",
	partClock:          "$q",
	partTemperature:    "$z",
	partBoot:           "/proc/sys/kernel/random/boot_id",
	partShell:          "/proc/$$/stat",
	partParent:         "/proc/$PPID/stat",
}

// divider is the content of divideBy, and no line of any of the sampleFiles. It
// lets one cat, one process, print all of them told apart.
const (
	divider  = "Linux"
	divideBy = "/proc/sys/kernel/ostype"
)

// marker begins the lines that are for this program, a different one for each
// connection, so that no file's content is taken for one.
type marker string

func newMarker() marker {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return marker("@@" + hex.EncodeToString(b))
}

// linux is the dialect of /bin/sh on Linux.
type linux struct{}

func (linux) system() string { return divider }

func (linux) hello(m marker) string { return m.hello() }

func (linux) script(m marker) string { return m.script() }

func (linux) request(_ marker, number, what string) string { return number + " " + what + "\n" }

func (linux) sample(r reply) (sample, error) { return parseSample(r.answer) }

// hello is a shell's first line. Only what can calculate answers rightly, so a
// device that repeats what it is told is not taken for a shell.
func (m marker) hello() string {
	return fmt.Sprintf("echo \"%s $((%d+%d)) $(uname -s)\"\n", m, helloLeft, helloRight)
}

const (
	helloLeft  = 1024
	helloRight = 315
)

// answered returns the system's name out of the answer to hello.
func (m marker) answered(line string) (system string, ok bool) {
	return strings.CutPrefix(line, fmt.Sprintf("%s %d ", m, helloLeft+helloRight))
}

// script is the loop that answers requests: a number and a word a line, the number
// echoed around the answer. Request 0 is its own: that it has been read to its end.
// Until that is answered nothing more may be sent, because many shells read their
// commands in blocks, and would take a request for a part of the script. For the
// same reason it follows hello only when that was answered.
func (m marker) script() string {
	var b strings.Builder
	fmt.Fprintf(&b, `export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
cd /
m='%s'
q=$(echo /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq)
z=$(echo /sys/class/thermal/thermal_zone*/temp)
s() { echo; echo "$m S $1"; }
h() { command -v "$1" >/dev/null; }
facts() {
`, m)
	for _, q := range questions {
		fmt.Fprintf(&b, "case $1 in %s) s '%s'; { %s; } | head -n %d;; esac\n", q.when, q.name, q.command, q.lines)
	}
	fmt.Fprintf(&b, "}\n{ echo \"$m B 0\"; echo \"$m E 0\"\nwhile read -r n w; do\necho \"$m B $n\"\ncase $w in\nsample) cat %s 2>/dev/null;;\nbefore|after) facts $w </dev/null 2>/dev/null;;\nesac\necho; echo \"$m E $n\"\ndone; exit; }\n",
		strings.Join(sampleFiles[:], " "+divideBy+" "))
	return b.String()
}

// answer is what a router printed between the beginning and the end of an answer.
type answer struct {
	number string
	body   []byte
	cut    bool // it was longer than maxAnswer
}

// maxAnswer bounds an answer in bytes: /proc/stat and /proc/softirqs of some
// hundred cores are 100 kB.
const maxAnswer = 1 << 20

// noise counts what a router printed outside of any answer.
type noise struct {
	bytes uint64
	first string
}

// answers reads a router's output to its end and hands over each whole answer. rest
// is the body of one that was under way at the end. It never holds more than
// maxAnswer.
func (m marker) answers(r *bufio.Reader, deliver func(answer)) (rest answer, n noise, err error) {
	var now answer
	inside, whole := false, true // whole: what comes next begins a line
	for {
		chunk, err := r.ReadSlice('\n')
		begins := whole
		whole = !errors.Is(err, bufio.ErrBufferFull)
		kind, number := byte(0), ""
		if begins && err == nil {
			kind, number = m.kind(chunk)
		}
		switch {
		case kind == 'B':
			now, inside = answer{number: number}, true
		case kind == 'E' && inside && number == now.number:
			deliver(now)
			now, inside = answer{}, false
		case inside && len(now.body)+len(chunk) <= maxAnswer:
			now.body = append(now.body, chunk...)
		case inside:
			now.cut = true
		case len(bytes.TrimSpace(chunk)) > 0:
			if n.bytes += uint64(len(chunk)); n.first == "" {
				n.first = firstLine(string(chunk))
			}
		}
		if err != nil && whole {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return now, n, err
		}
	}
}

// kind tells a line that begins or ends an answer, and its number.
func (m marker) kind(line []byte) (kind byte, number string) {
	rest, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte(m))
	if !ok || len(rest) < 4 || rest[0] != ' ' || rest[2] != ' ' || rest[1] != 'B' && rest[1] != 'E' {
		return 0, ""
	}
	return rest[1], string(rest[3:])
}

// sections tells apart the answers to several questions.
func (m marker) sections(body []byte) map[string]string {
	out := map[string]string{}
	name := ""
	var text []byte
	for len(body) > 0 {
		line, rest, _ := bytes.Cut(body, []byte("\n"))
		next, ok := bytes.CutPrefix(line, []byte(m+" S "))
		if ok {
			if name != "" {
				out[name] = kept(text)
			}
			name, text = string(bytes.TrimSuffix(next, []byte("\r"))), nil
		} else {
			text = append(append(text, line...), '\n')
		}
		body = rest
	}
	if name != "" {
		out[name] = kept(text)
	}
	return out
}

// maxText bounds what is kept of one text of the router, in bytes.
const maxText = 16 << 10

// kept is a text as far as it is kept, and says so.
func kept(text []byte) string {
	if len(text) <= maxText {
		return clean(text, maxText)
	}
	const more = "\n(more was told than is kept here)"
	return clean(text, maxText-len(more)) + more
}
