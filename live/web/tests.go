package web

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"pelt/finding"
	"pelt/live"
	"pelt/words"
)

const (
	// mostTests is how many tests can be watched again: the stream of each is some MB.
	mostTests = 4
	// stopTime is how long a test may take to end after it was asked to.
	stopTime = 10 * time.Second
	// saidLines is how many of the last lines of a child's standard error are kept.
	saidLines = 20
)

// Test is a test that can be watched.
type Test struct {
	ID     string // in addresses
	Line   string // its command, as it is typed
	Stream *live.Stream
	Stop   func() // asks it to end, and to report what was measured; any number of times

	form url.Values    // what started it here; nil: it was started elsewhere
	over chan struct{} // closed when a test that was started here has ended
}

// Watch makes a test of this very process, which runs as long as the server does.
func Watch(args []string, stream *live.Stream, stop func()) *Test {
	return &Test{Line: finding.CommandLine(args), Stream: stream, Stop: stop}
}

func (t *Test) Over() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// Again reports whether the test can be started again from here.
func (t *Test) Again() bool { return t.form != nil }

// tests are those that a server knows, the newest last. At most one that it started runs.
type tests struct {
	program  string // that is started
	stopTime time.Duration

	mu   sync.Mutex
	list []*Test
	shut bool
}

func (t *tests) find(id string) *Test {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.list, func(x *Test) bool { return x.ID == id }); i >= 0 {
		return t.list[i]
	}
	return nil
}

// all lists the tests, the newest first.
func (t *tests) all() []*Test {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Clone(t.list)
	slices.Reverse(list)
	return list
}

// add makes a test known. t.mu is held.
func (t *tests) add(one *Test) {
	one.ID = strings.ToLower(rand.Text()[:8])
	if t.list = append(t.list, one); len(t.list) > mostTests {
		t.list = slices.Clone(t.list[1:])
	}
}

// start starts a command of this program as a child process, which speaks the language of who starts it. The code goes
// by the environment, where other users do not see it.
func (t *tests) start(args []string, code string, in words.Language, form url.Values) (*Test, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut {
		return nil, words.Errorf("this pelt web is ending; nothing was started")
	}
	for _, other := range t.list {
		if !other.Over() {
			return nil, words.Errorf("%s runs already; stop it or wait: two tests at once would measure each other",
				other.Line)
		}
	}
	c := &child{cmd: exec.Command(t.program, append(slices.Clone(args), "--json-lines", "-")...), patience: t.stopTime,
		language: in, stream: &live.Stream{}, stopped: make(chan struct{}), over: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), words.Variable+"="+in.Tag(), words.EventsVariable+"="+in.Tag())
	if code != "" {
		c.cmd.Env = append(c.cmd.Env, "PELT_CODE="+code)
	}
	one := &Test{Line: finding.CommandLine(args), Stream: c.stream, Stop: sync.OnceFunc(func() { close(c.stopped) }),
		form: form,
		over: c.over}
	begun := make(chan error)
	go c.run(begun)
	if err := <-begun; err != nil {
		return nil, words.Errorf("start a test: %w", err)
	}
	t.add(one)
	return one, nil
}

// close stops what runs, and waits until it has ended.
func (t *tests) close() {
	t.mu.Lock()
	t.shut = true
	list := slices.Clone(t.list)
	t.mu.Unlock()
	for _, one := range list {
		if one.Again() {
			one.Stop()
			<-one.over
		}
	}
}

// child is a test in a process of its own.
type child struct {
	cmd      *exec.Cmd
	patience time.Duration
	language words.Language // of who started it
	stream   *live.Stream
	stopped  chan struct{} // closed: it is to end
	over     chan struct{} // closed: it has ended
	killed   bool
}

// run carries the child from its start to its end. Its thread must live as long as the child, which the kernel ends
// with that thread.
func (c *child) run(begun chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithParent(c.cmd)
	said := &lastLines{}
	c.cmd.Stderr = said
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if begun <- err; err != nil {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { c.end(ended) })
	last, err := c.read(out)
	if err != nil {
		_ = c.cmd.Process.Kill()
	}
	waited := c.cmd.Wait()
	cancel()
	watch.Wait()
	why := ""
	switch {
	case c.killed:
		why = c.language.Sayf("it did not end within %v of the stop, and was killed; what it had measured is kept",
			c.patience)
	case err != nil:
		why = c.language.Error(err)
	case last == nil:
		if why = said.why(); why == "" {
			why = c.language.Sayf("it ended and gave no reason: %v", waited)
		}
	}
	close(c.over) // before the last event: a reader who sees it may ask for the run, or start another test
	if why != "" {
		c.stream.Publish(live.Event{Done: &live.Done{Error: why}})
	} else {
		c.stream.Append(*last)
	}
}

// end makes the child end once it is to: first with Ctrl-C, then with force.
func (c *child) end(ended context.Context) {
	select {
	case <-ended.Done():
		return
	case <-c.stopped:
	}
	if err := c.cmd.Process.Signal(os.Interrupt); err == nil {
		select {
		case <-ended.Done():
			return
		case <-time.After(c.patience):
		}
	}
	c.killed = c.cmd.Process.Kill() == nil
}

// read takes the events of the child until its output ends, but for the last.
func (c *child) read(out io.Reader) (last *live.Event, err error) {
	for d := json.NewDecoder(bufio.NewReader(out)); ; {
		var e live.Event
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed):
			return last, nil
		case err != nil:
			return nil, words.Errorf("its events cannot be read: %w", err)
		case e.Done != nil:
			last = &e
		default:
			c.stream.Append(e)
		}
	}
}

// lastLines keeps the last lines that are written to it.
type lastLines struct {
	lines []string
	rest  string
}

const longestLine = 4 << 10

func (l *lastLines) Write(b []byte) (int, error) {
	text := l.rest + string(b)
	for line, rest, ok := strings.Cut(text, "\n"); ok; line, rest, ok = strings.Cut(text, "\n") {
		l.lines, text = append(l.lines, line), rest
	}
	l.lines = slices.Clone(l.lines[max(0, len(l.lines)-saidLines):])
	l.rest = text[max(0, len(text)-longestLine):]
	return len(b), nil
}

// why is what the child said last of what went wrong.
func (l *lastLines) why() string {
	for _, line := range slices.Backward(l.lines) {
		for _, before := range []string{"pelt: ", words.Chinese.Sayf("pelt: %s", "")} {
			if text, ok := strings.CutPrefix(line, before); ok {
				return text
			}
		}
	}
	if l.rest != "" || len(l.lines) == 0 {
		return l.rest
	}
	return l.lines[len(l.lines)-1]
}
