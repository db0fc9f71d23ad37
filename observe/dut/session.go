package dut

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"pelt/model"
)

// session is one connection: a shell that answers one request at a time. Its methods may be called concurrently.
type session struct {
	shell  *Shell
	talk   dialect
	mark   marker
	out    *bufio.Reader
	turn   chan struct{} // full while an answer is owed
	number int           // of the last request; only who has the turn uses it
}

// reply is an answer and when this host asked for it and had it.
type reply struct {
	body       string
	sent, came time.Time
}

const (
	askSample = "sample"
	askFacts  = "facts"
)

// dialect is how one kind of system is asked. One session at a time has it.
type dialect interface {
	system() string        // as it names itself in the answer to hello
	hello(m marker) string // asks it to calculate, and to name itself
	setup(m marker) string // is sent once, before the first request
	// request asks; the answer comes between the lines B and E with the marker and the number.
	request(m marker, number, what string) string
	sample(m marker, r reply) (sample, error) // is called in the order of the answers
	learn(told map[string]string, first sample) learned
	finish(f *model.RouterFacts, told map[string]string) // what changed with the trials
}

// marker begins the lines that are for this program, a different one for each
// connection, so that no file's content is taken for one.
type marker string

func newMarker() marker { return marker(fmt.Sprintf("@@%016x", rand.Uint64())) }

// Only what can calculate answers hello rightly, so a device that repeats what it hears is not taken for a shell.
const (
	helloLeft  = 1024
	helloRight = 315
)

// answered returns the system's name out of the answer to hello.
func (m marker) answered(line string) (system string, ok bool) {
	return strings.CutPrefix(line, fmt.Sprintf("%s %d ", m, helloLeft+helloRight))
}

// maxAnswer bounds an answer in bytes: /proc/stat and /proc/softirqs of some
// hundred cores are 100 kB.
const maxAnswer = 1 << 20

var errLong = fmt.Errorf("its answer is longer than %d B", maxAnswer)

// answer reads the answer with a number, and passes over all that comes before it. With an error comes what there is
// of the answer.
func (m marker) answer(out *bufio.Reader, number string) (string, error) {
	var body []byte
	inside, begins := false, true // begins: what comes next begins a line
	for {
		chunk, err := out.ReadSlice('\n')
		line := ""
		if begins && err == nil {
			line = strings.TrimRight(string(chunk), "\r\n")
		}
		begins = !errors.Is(err, bufio.ErrBufferFull)
		switch {
		case line == string(m)+" B "+number:
			inside, body = true, nil
		case inside && line == string(m)+" E "+number && len(body) > maxAnswer:
			return "", errLong
		case inside && line == string(m)+" E "+number:
			return string(body), nil
		case inside && len(body) <= maxAnswer:
			body = append(body, chunk...)
		}
		if err != nil && begins {
			return string(body[:min(len(body), maxAnswer)]), err
		}
	}
}

// sections tells apart the answers to several questions.
func (m marker) sections(body string) map[string]string {
	out := map[string]string{}
	parts := strings.Split("\n"+body, "\n"+string(m)+" S ")
	for _, part := range parts[1:] {
		name, text, _ := strings.Cut(part, "\n")
		out[strings.TrimSuffix(name, "\r")] = kept(text)
	}
	return out
}

// maxText bounds what is kept of one text of the router, in bytes.
const maxText = 16 << 10

// kept is a text as far as it is kept, and says so.
func kept(text string) string {
	if len(text) <= maxText {
		return clean(text, maxText)
	}
	const more = "\n(more was told than is kept here)"
	return clean(text, maxText-len(more)) + more
}

// noShell says what came instead of the answer to hello.
func noShell(said, why string) error {
	if said == "" {
		return errors.New("it gives no shell: " + why)
	}
	return fmt.Errorf("it gives no shell: it said %q; %s", said, why)
}

const (
	// endPatience is how long what closed its output may take to end, on a slow host: how it
	// ended, and its last words, tell why.
	endPatience = 5 * time.Second
	// maxGreeting bounds what may be printed before the answer to hello, in bytes.
	maxGreeting = 64 << 10
)

// connect starts a shell that answers requests. ctx ends it before it is up.
func connect(ctx context.Context, start Start, talk dialect) (*session, error) {
	shell, err := start(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{
		shell: shell, talk: talk, mark: newMarker(), out: bufio.NewReaderSize(shell.Out, 64<<10), turn: make(chan struct{}, 1),
	}
	late, cancel := context.WithTimeout(ctx, shell.Patience)
	defer cancel()
	stop := context.AfterFunc(late, shell.Kill)
	go func() { _, _ = io.WriteString(shell.In, talk.hello(s.mark)) }() // its output tells if it does not take it
	system, said, err := s.greet()
	if err == nil && system == talk.system() {
		_, err = io.WriteString(shell.In, talk.setup(s.mark))
	}
	if !stop() && err == nil {
		err = late.Err() // it was killed
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = ctx.Err()
	case err != nil && late.Err() != nil:
		err = noShell(said, fmt.Sprintf("no shell answered within %v", shell.Patience))
	case err != nil:
		if err = s.explain(said, err); shell.Console != nil && isRouterOS(err) {
			err = &routerOSError{err, shell.Console}
		}
	case system != talk.system():
		err = fmt.Errorf("it runs %s; want Linux or RouterOS", cmp.Or(clean(system, maxWords), "a system without a name"))
	}
	if err != nil {
		_ = shell.Close() // what came first tells more
		return nil, err
	}
	return s, nil
}

// greet reads until hello is answered. said is the first line before that.
func (s *session) greet() (system, said string, err error) {
	n := 0
	for begins := true; ; {
		chunk, err := s.out.ReadSlice('\n')
		if begins && err == nil {
			if system, ok := s.mark.answered(strings.TrimRight(string(chunk), "\r\n")); ok {
				return system, "", nil
			}
		}
		begins = err == nil
		n += len(chunk)
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

// explain says in one line why a shell ended before it answered.
func (s *session) explain(said string, err error) error {
	switch {
	case !errors.Is(err, io.EOF) && !s.shell.ends(closeGrace):
		return noShell(said, err.Error())
	case !s.shell.ends(endPatience):
		return noShell(said, "it closed its output")
	}
	complaint := s.shell.Complaint()
	if fault := sshFault(complaint); fault != "" {
		return errors.New(fault)
	}
	return noShell(cmp.Or(said, lastLine(complaint)), "it ended with "+s.shell.Status())
}

// exchange asks, once no other answer is owed, and waits. If the answer does not come in time the connection is
// closed; then, and if it ends by itself, what came of the answer is returned with the error. After the end of ctx
// the answer is owed still.
func (s *session) exchange(ctx context.Context, what string, within time.Duration) (reply, error) {
	answered := make(chan struct{})
	var owed reply
	var fault error
	go func() {
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			return
		}
		owed, fault = s.ask(what)
		<-s.turn
		close(answered)
	}()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-answered:
		return owed, fault
	case <-ctx.Done():
		return reply{}, ctx.Err()
	case <-late.C:
		s.shell.Kill()
		<-answered
		return owed, fmt.Errorf("the router did not answer within %v", within)
	}
}

func (s *session) ask(what string) (r reply, err error) {
	s.number++
	number := strconv.Itoa(s.number)
	r.sent = time.Now()
	if _, err = io.WriteString(s.shell.In, s.talk.request(s.mark, number, what)); err == nil {
		r.body, err = s.mark.answer(s.out, number)
		r.came = time.Now()
	}
	if err == nil || errors.Is(err, errLong) {
		return r, err
	}
	if !s.shell.ends(closeGrace) { // its last words come before its end
		s.shell.Kill()
		s.shell.ends(closeGrace)
	}
	return r, errors.New(s.why())
}

func (s *session) gone() bool {
	select {
	case <-s.shell.Ended:
		return true
	default:
		return false
	}
}

// why says in one line why the connection is gone.
func (s *session) why() string {
	why := "the connection was closed"
	if last := lastLine(s.shell.Complaint()); last != "" {
		why += ": " + strings.TrimSuffix(last, ".")
	} else if s.gone() {
		why += ": the shell ended with " + s.shell.Status()
	}
	return why
}
