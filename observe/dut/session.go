package dut

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"pelt/model"
)

// session is one connection: a shell that runs the loop. At most one request is
// under way at any time; its methods may be called concurrently.
type session struct {
	shell *Shell
	talk  dialect
	mark  marker
	send  chan string   // room for the script and a request, so that sending never waits
	done  chan struct{} // closed when the connection is gone
	why   string        // of done: one line
	rest  []byte        // of an answer that was under way then

	echoes bool // it repeated hello; settled when connect returns

	mu      sync.Mutex
	number  uint64
	waiting *request
	strays  uint64 // answers that nobody had asked for
}

type request struct {
	number  string
	sent    time.Time
	deliver func(reply)
}

// reply is an answer and when this host asked for it and had it.
type reply struct {
	answer
	sent, came time.Time
}

// systemError is what answered hello, if it is another system.
type systemError struct{ system string }

func (e systemError) Error() string {
	return fmt.Sprintf("it runs %s; want Linux or RouterOS", e.system)
}

// noShellError says what came instead of the answer to hello.
type noShellError struct{ said, why string }

func (e noShellError) Error() string {
	if e.said == "" {
		return "it gives no shell: " + e.why
	}
	return fmt.Sprintf("it gives no shell: it said %q; %s", e.said, e.why)
}

// echoPatience is how long one that repeats what it is told has to show a shell.
const echoPatience = time.Second

// endPatience is how long what closed its output may take to end, on a slow host: how it
// ended, and its last words, tell why.
const endPatience = 5 * time.Second

// maxGreeting bounds what may be printed before the answer to hello, in bytes.
const maxGreeting = 64 << 10

// dialect is how one kind of system is asked. One session at a time has it.
type dialect interface {
	system() string         // as it names itself in the answer to hello
	hello(m marker) string  // asks it to calculate, and to name itself
	script(m marker) string // what makes it answer requests; "" if nothing must
	// request asks; the answer comes between the markers B and E with the number.
	request(m marker, number, what string) string
	sample(r reply) (sample, error) // is called in the order of the answers
	learn(told map[string]string, first sample, hostDevices bool) learned
	finish(f *model.RouterFacts, told map[string]string) // what changed with the trials
}

// connect starts a shell and the loop in it. ctx ends it before it is up.
func connect(ctx context.Context, start Start, talk dialect) (*session, error) {
	shell, err := start(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{shell: shell, talk: talk, mark: newMarker(), send: make(chan string, 2), done: make(chan struct{})}
	late, cancel := context.WithTimeout(ctx, shell.Patience)
	defer cancel()
	stop := context.AfterFunc(late, shell.Kill)
	go s.write()
	s.send <- talk.hello(s.mark)
	out := bufio.NewReaderSize(shell.Out, 64<<10)
	system, said, err := s.greet(out)
	if !stop() && err == nil {
		err = late.Err() // it was killed
	}
	if err == nil && system != talk.system() {
		err = systemError{cmp.Or(clean([]byte(system), maxWords), "a system without a name")}
	}
	if err != nil {
		err = s.explain(late, ctx, said, err)
		close(s.done)
		_ = shell.Close() // what came first tells more
		if shell.Console != nil && isRouterOS(err) {
			err = &routerOSError{err, shell.Console}
		}
		return nil, err
	}
	script := talk.script(s.mark)
	if script == "" {
		go s.read(out)
		return s, nil
	}
	ready := make(chan struct{})
	s.waiting = &request{"0", time.Now(), func(reply) { close(ready) }}
	s.send <- script
	go s.read(out)
	select {
	case <-ready:
		return s, nil
	case <-s.done:
		err = errors.New(s.why)
	case <-late.Done():
		err = cmp.Or(ctx.Err(), fmt.Errorf("its shell did not take the loop within %v", shell.Patience))
	}
	_ = s.close() // as above
	return nil, err
}

// greet reads until hello is answered.
func (s *session) greet(out *bufio.Reader) (system, said string, err error) {
	n := 0
	for begins := true; ; {
		chunk, err := out.ReadSlice('\n')
		if begins {
			if system, ok := s.mark.answered(strings.TrimRight(string(chunk), "\r\n")); ok && err == nil {
				return system, "", nil
			}
		}
		begins = err == nil
		n += len(chunk)
		if !s.echoes && strings.Contains(string(chunk), string(s.mark)) {
			s.echoes = true // a terminal does so too, and then there is a shell
			defer time.AfterFunc(echoPatience, s.shell.Kill).Stop()
		}
		if said == "" {
			said = firstLine(string(chunk))
		}
		switch {
		case n > maxGreeting:
			return "", said, fmt.Errorf("that went on for more than %d B", maxGreeting)
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return "", said, err
		}
	}
}

// explain says in one line why no loop runs.
func (s *session) explain(late, ctx context.Context, said string, err error) error {
	var other systemError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &other):
		return err
	case s.echoes:
		return noShellError{said, "it only repeats what it is told"}
	case late.Err() != nil:
		return noShellError{said, fmt.Sprintf("no shell answered within %v", s.shell.Patience)}
	case !errors.Is(err, io.EOF) && !s.ends(closeGrace):
		return noShellError{said, err.Error()}
	case !s.ends(endPatience):
		return noShellError{said, "it closed its output"}
	}
	complaint := s.shell.Complaint()
	if fault := sshFault(complaint); fault != "" {
		return errors.New(fault)
	}
	return noShellError{cmp.Or(said, lastLine(complaint)), "it ended with " + s.shell.Status()}
}

// ends waits a while for the process to end.
func (s *session) ends(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-s.shell.Ended:
		return true
	case <-t.C:
		return false
	}
}

func (s *session) write() {
	for {
		select {
		case text := <-s.send:
			if _, err := io.WriteString(s.shell.In, text); err != nil {
				return // whoever reads its output sees the end
			}
		case <-s.done:
			return
		}
	}
}

func (s *session) read(out *bufio.Reader) {
	rest, noise, err := s.mark.answers(out, s.deliver)
	if err == nil {
		s.ends(closeGrace) // its last words come before its end
	}
	s.why = "the connection was closed"
	if last := lastLine(s.shell.Complaint()); last != "" {
		s.why += ": " + strings.TrimSuffix(last, ".")
	} else if noise.first != "" {
		s.why += fmt.Sprintf(": it had said %q", noise.first)
	} else if s.ends(0) {
		s.why += ": the shell ended with " + s.shell.Status()
	}
	s.rest = rest.body
	close(s.done)
}

func (s *session) deliver(a answer) {
	came := time.Now()
	s.mu.Lock()
	r := s.waiting
	if r == nil || r.number != a.number {
		s.strays++
		s.mu.Unlock()
		return
	}
	s.waiting = nil
	s.mu.Unlock()
	r.deliver(reply{a, r.sent, came})
}

// ask sends a request, unless one is under way or the connection is gone. deliver
// is called with its answer, and not at all if the connection ends before.
func (s *session) ask(what string, deliver func(reply)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return false
	default:
	}
	if s.waiting != nil {
		return false
	}
	s.number++
	n := strconv.FormatUint(s.number, 10)
	select {
	case s.send <- s.talk.request(s.mark, n, what):
	default:
		return false // not even the last one was written yet
	}
	s.waiting = &request{n, time.Now(), deliver}
	return true
}

// strayed counts the answers that nobody had asked for.
func (s *session) strayed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strays
}

// asking returns since when a request is under way.
func (s *session) asking() (since time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		return time.Time{}, false
	}
	return s.waiting.sent, true
}

const askAgain = 20 * time.Millisecond

// exchange asks and waits. If the answer does not come in time the connection is
// closed, and what came of it is returned with the error.
func (s *session) exchange(ctx context.Context, what string, within time.Duration) (reply, error) {
	came := make(chan reply, 1)
	late := time.NewTimer(within)
	defer late.Stop()
	again := time.NewTicker(askAgain)
	defer again.Stop()
	var err error
	for asked := false; err == nil; {
		asked = asked || s.ask(what, func(r reply) { came <- r })
		select {
		case r := <-came:
			return r, nil
		case <-again.C: // the last answer may be owed still
		case <-s.done:
			return reply{answer: answer{body: s.rest}}, errors.New(s.why)
		case <-ctx.Done():
			err = ctx.Err()
		case <-late.C:
			err = fmt.Errorf("the router did not answer within %v", within)
		}
	}
	s.shell.Kill()
	<-s.done
	return reply{answer: answer{body: s.rest}}, err
}

// close ends the shell and waits for the reader.
func (s *session) close() error {
	err := s.shell.Close()
	<-s.done
	return err
}
