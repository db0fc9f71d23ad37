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

	"pelt/finding"
	"pelt/model"
)

// session is one connection: a shell that answers one request at a time. Its methods may be called concurrently.
type session struct {
	shell  *Shell
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

// marker begins the lines that are for this program, a different one for each
// connection, so that no file's content is taken for one.
type marker string

func newMarker() marker { return marker(fmt.Sprintf("@@%016x", rand.Uint64())) }

// maxAnswer bounds an answer in bytes: /proc/stat of some hundred cores is 50 kB.
const maxAnswer = 1 << 20

var errLong error = finding.NewFault(model.AnswerLong)

// answer reads the answer with a number, and passes over all that comes before it, of which before is the first line
// that says anything. With an error comes what there is of the answer.
func (m marker) answer(out *bufio.Reader, number int) (answer, before string, err error) {
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
		case line == m.line("B", number):
			inside, body = true, nil
		case inside && line == m.line("E", number) && len(body) > maxAnswer:
			return "", before, errLong
		case inside && line == m.line("E", number):
			return string(body), before, nil
		case inside && len(body) <= maxAnswer:
			body = append(body, chunk...)
		case !inside && before == "":
			before = firstLine(string(chunk))
		}
		if err != nil && begins {
			return string(body[:min(len(body), maxAnswer)]), before, err
		}
	}
}

// line begins or ends the answer with a number.
func (m marker) line(kind string, number int) string { return fmt.Sprintf("%s %s %d", m, kind, number) }

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
func noShell(said string, why error) error {
	if said != "" {
		said = strconv.Quote(said)
	}
	return finding.Because(why, model.NoShell, "said", said)
}

// endPatience is how long what closed its output may take to end, on a slow host: how it
// ended, and its last words, tell why.
const endPatience = 5 * time.Second

// connect starts a shell that answers requests. ctx ends it before it is up. The first request is one line, for what
// answers may be no shell.
func connect(ctx context.Context, start Start) (*session, error) {
	shell, err := start(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{
		shell: shell, mark: newMarker(), out: bufio.NewReaderSize(shell.Out, 64<<10), turn: make(chan struct{}, 1),
	}
	late, cancel := context.WithTimeout(ctx, shell.Patience)
	defer cancel()
	stop := context.AfterFunc(late, shell.Kill)
	// its output tells if it does not take it
	go func() { _, _ = io.WriteString(shell.In, s.mark.request(0, askSystem)) }()
	answer, said, err := s.mark.answer(s.out, 0)
	system := strings.TrimSpace(answer)
	if err == nil && system == linuxSystem {
		_, err = io.WriteString(shell.In, s.mark.setup())
	}
	if !stop() && err == nil {
		err = late.Err() // it was killed
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = ctx.Err()
	case err != nil && late.Err() != nil:
		err = noShell(said, finding.NewFault(model.ShellSilent, "within_s", shell.Patience.Seconds()))
	case err != nil:
		err = s.explain(said, err)
	case system != linuxSystem:
		err = finding.NewFault(model.NotLinux, "system", clean(system, maxWords))
	}
	if err != nil {
		_ = shell.Close() // what came first tells more
		return nil, err
	}
	return s, nil
}

// explain says in one line why a shell ended before it answered.
func (s *session) explain(said string, err error) error {
	switch {
	case !errors.Is(err, io.EOF) && !s.shell.ends(closeGrace):
		return noShell(said, err)
	case !s.shell.ends(endPatience):
		return noShell(said, finding.NewFault(model.ShellClosed))
	}
	complaint := s.shell.Complaint()
	if why := sshFault(complaint); why.Code != "" {
		return &finding.Fault{Reason: why}
	}
	return noShell(cmp.Or(said, lastLine(complaint)), finding.NewFault(model.ShellEnded, "text", s.shell.Status()))
}

// momentPatience is how long an answer about a moment may take.
func (s *session) momentPatience() time.Duration {
	if s == nil {
		return patience
	}
	return cmp.Or(s.shell.MomentPatience, patience)
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
		return owed, finding.NewFault(model.RouterSilent, "within_s", within.Seconds())
	}
}

func (s *session) ask(what string) (r reply, err error) {
	s.number++
	r.sent = time.Now()
	if _, err = io.WriteString(s.shell.In, s.mark.request(s.number, what)); err == nil {
		r.body, _, err = s.mark.answer(s.out, s.number)
		r.came = time.Now()
	}
	if err == nil || errors.Is(err, errLong) {
		return r, err
	}
	if !s.shell.ends(closeGrace) { // its last words come before its end
		s.shell.Kill()
		s.shell.ends(closeGrace)
	}
	return r, (&finding.Fault{Reason: model.Reason{Code: model.RouterClosed,
		Of: model.Reasons{s.lastWords()}}}).From(errClosed)
}

var errClosed error = finding.NewFault(model.RouterClosed)

// lastWords are why the connection is gone.
func (s *session) lastWords() model.Reason {
	if last := lastLine(s.shell.Complaint()); last != "" {
		return model.NewReason(model.SSHSays, "said", strings.TrimSuffix(last, "."))
	}
	if s.shell.ends(0) {
		return model.NewReason(model.ShellGone, "text", s.shell.Status())
	}
	return model.Reason{Code: model.ShellStays}
}
