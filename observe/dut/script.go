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

// divider is the content of divideBy, and no line of any of sampleFiles. It
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

func (linux) setup(m marker) string { return m.setup() }

// request runs one of the functions of setup. Its input is not the shell's, so that it takes no request for its own.
func (linux) request(m marker, number, what string) string {
	const format = "echo '%[1]s B %[2]s'; %[3]s </dev/null 2>/dev/null; echo; echo '%[1]s E %[2]s'\n"
	return fmt.Sprintf(format, m, number, what)
}

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

// setup has a function for each request: one process, cat, prints all files of a sample, told apart by the divider;
// questions are told apart by the marker.
func (m marker) setup() string {
	var b strings.Builder
	fmt.Fprintf(&b, `export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
cd /
clocks=$(echo /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq)
zones=$(echo /sys/class/thermal/thermal_zone*/temp)
%s() { cat %s; }
section() { echo; echo '%s S '"$1"; }
has() { command -v "$1" >/dev/null; }
`, askSample, strings.Join(samplePaths(), " "+divideBy+" "), m)
	for _, when := range []string{askBefore, askAfter} {
		fmt.Fprintf(&b, "%s() {\n", when)
		for _, q := range questions {
			if strings.Contains(q.when, when) {
				fmt.Fprintf(&b, "section '%s'; { %s; } | head -n %d\n", q.name, q.command, q.lines)
			}
		}
		b.WriteString("}\n")
	}
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

// answers reads a router's output to its end and hands over each whole answer. rest
// is the body of one that was under way at the end, and noise the first line outside of
// any. It never holds more than maxAnswer.
func (m marker) answers(r *bufio.Reader, deliver func(answer)) (rest answer, noise string, err error) {
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
		case noise == "":
			noise = firstLine(string(chunk))
		}
		if err != nil && whole {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return now, noise, err
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
