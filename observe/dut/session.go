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

// session is one connection: a shell that answers requests. At most one request is
// under way at any time; its methods may be called concurrently.
type session struct {
	shell *Shell
	talk  dialect
	mark  marker
	send  chan string   // room for the setup and a request, so that sending never waits
	done  chan struct{} // closed when the connection is gone
	why   string        // of done: one line
	rest  reply         // what came of an answer that was under way then

	echoes bool // it repeated hello; settled when connect returns

	mu      sync.Mutex
	number  uint64
	waiting *request // nil if the router owes nothing
}

// request is one that the router owes an answer to.
type request struct {
	number string
	sent   time.Time
	answer chan reply // has room for the answer
}

// reply is an answer and when this host asked for it and had it.
type reply struct {
	answer
	sent, came time.Time
}

// noShell says what came instead of the answer to hello.
func noShell(said, why string) error {
	if said == "" {
		return errors.New("it gives no shell: " + why)
	}
	return fmt.Errorf("it gives no shell: it said %q; %s", said, why)
}

// echoPatience is how long one that repeats what it is told has to show a shell.
const echoPatience = time.Second

// endPatience is how long what closed its output may take to end, on a slow host: how it
// ended, and its last words, tell why.
const endPatience = 5 * time.Second

// maxGreeting bounds what may be printed before the answer to hello, in bytes.
const maxGreeting = 64 << 10

// What a router is asked for.
const (
	askSample = "sample"
	askBefore = "before" // the first trial
	askAfter  = "after"  // the last one
)

// dialect is how one kind of system is asked. One session at a time has it.
type dialect interface {
	system() string        // as it names itself in the answer to hello
	hello(m marker) string // asks it to calculate, and to name itself
	setup(m marker) string // is sent once, before the first request
	// request asks; the answer comes between the markers B and E with the number.
	request(m marker, number, what string) string
	sample(r reply) (sample, error) // is called in the order of the answers
	learn(told map[string]string, first sample, hostDevices bool) learned
	finish(f *model.RouterFacts, told map[string]string) // what changed with the trials
}

// connect starts a shell that answers requests. ctx ends it before it is up.
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
	if err != nil {
		if err = s.explain(late, ctx, said, err); shell.Console != nil && isRouterOS(err) {
			err = &routerOSError{err, shell.Console}
		}
	} else if system != talk.system() {
		name := cmp.Or(clean([]byte(system), maxWords), "a system without a name")
		err = fmt.Errorf("it runs %s; want Linux or RouterOS", name)
	}
	if err != nil {
		close(s.done)
		_ = shell.Close() // what came first tells more
		return nil, err
	}
	s.send <- talk.setup(s.mark)
	go s.read(out)
	return s, nil
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

// explain says in one line why there is no session.
func (s *session) explain(late, ctx context.Context, said string, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.echoes:
		return noShell(said, "it only repeats what it is told")
	case late.Err() != nil:
		return noShell(said, fmt.Sprintf("no shell answered within %v", s.shell.Patience))
	case !errors.Is(err, io.EOF) && !s.ends(closeGrace):
		return noShell(said, err.Error())
	case !s.ends(endPatience):
		return noShell(said, "it closed its output")
	}
	complaint := s.shell.Complaint()
	if fault := sshFault(complaint); fault != "" {
		return errors.New(fault)
	}
	return noShell(cmp.Or(said, lastLine(complaint)), "it ended with "+s.shell.Status())
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
	} else if noise != "" {
		s.why += fmt.Sprintf(": it had said %q", noise)
	} else if s.ends(0) {
		s.why += ": the shell ended with " + s.shell.Status()
	}
	s.rest.answer = rest
	close(s.done)
}

// deliver hands an answer to whoever asked; what nobody asked for is passed over.
func (s *session) deliver(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.waiting; r != nil && r.number == a.number {
		s.waiting = nil
		r.answer <- reply{a, r.sent, time.Now()}
	}
}

// ask sends a request, unless one is under way; then it returns nil.
func (s *session) ask(what string) chan reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting != nil {
		return nil
	}
	s.number++
	r := &request{strconv.FormatUint(s.number, 10), time.Now(), make(chan reply, 1)}
	select {
	case s.send <- s.talk.request(s.mark, r.number, what):
		s.waiting = r
		return r.answer
	default:
		return nil // not even the last one was written yet
	}
}

func (s *session) gone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

const askAgain = 20 * time.Millisecond

// exchange asks, once nothing else is owed, and waits. If the answer does not come in time the connection is
// closed; then, and if it ends by itself, what came of the answer is returned with the error. After the end of ctx
// the answer is owed still.
func (s *session) exchange(ctx context.Context, what string, within time.Duration) (reply, error) {
	late := time.NewTimer(within)
	defer late.Stop()
	again := time.NewTicker(askAgain)
	defer again.Stop()
	answer := s.ask(what)
	for {
		select {
		case a := <-answer:
			return a, nil
		case <-again.C:
			if answer == nil {
				answer = s.ask(what)
			}
		case <-s.done:
			return s.rest, errors.New(s.why)
		case <-ctx.Done():
			return reply{}, ctx.Err()
		case <-late.C:
			s.shell.Kill()
			<-s.done
			return s.rest, fmt.Errorf("the router did not answer within %v", within)
		}
	}
}

// close ends the shell and waits for the reader.
func (s *session) close() error {
	err := s.shell.Close()
	<-s.done
	return err
}
