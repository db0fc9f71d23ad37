package lab

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
)

// ProgramOptions say what Node.Start runs.
type ProgramOptions struct {
	Command string // for sh -c
	// Control is the congestion control that sockets in the node begin with while
	// the program runs; "" leaves the node's own.
	Control string
}

// Ending is how a program ended. The figures are of everything that it started.
type Ending struct {
	ExitCode int    // as a shell tells it: 128 and the signal if one ended it
	Signal   string // SIGKILL, ...; "" if it ended by itself
	Stopped  bool   // Stop, or the end of its context, came first
	Duration time.Duration
	// User and System are the processor time of the program and of all that it started.
	User, System time.Duration
	// MaxRSSBytes is the memory of the largest process at its largest. 0 is not
	// known: the kernel tells of none that stayed below this process's own.
	MaxRSSBytes uint64
}

// String says what ended the program.
func (e Ending) String() string {
	if e.Signal != "" {
		return "ended by " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.ExitCode)
}

// listenTime is how long a server may take until it listens.
const listenTime = 10 * time.Second

const (
	tailBytes = 4 << 10 // kept of each of a program's outputs
	tailLines = 3
	lineRunes = 200
)

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b[max(0, len(b)-tailBytes):]...)
	if extra := len(t.text) - tailBytes; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(b), nil
}

// lines are the last ones that say something, safe to print: a carriage return
// ends one too, and what cannot be printed is a question mark.
func (t *tail) lines() (list []string) {
	t.mu.Lock()
	text := strings.ToValidUTF8(string(t.text), "?")
	t.mu.Unlock()
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			switch {
			case r == '\t':
				return ' '
			case !unicode.IsPrint(r):
				return '?'
			}
			return r
		}, line))
		if runes := []rune(line); len(runes) > lineRunes {
			line = string(runes[:lineRunes]) + "..."
		}
		if line != "" {
			list = append(list, line)
		}
	}
	return list[max(0, len(list)-tailLines):]
}
