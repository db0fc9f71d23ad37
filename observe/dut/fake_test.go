package dut

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a router without a kernel: it takes the setup for read and answers
// requests with samples of its own clock. It runs in the time of a synctest bubble.
type fake struct {
	t    *testing.T
	born time.Time

	mu     sync.Mutex
	boot   string
	booted time.Time // its uptime counts from here
	// how long its answer takes to what is asked so long after it was made; nil is at once
	slow    func(since time.Duration) time.Duration
	part    map[string]string                        // files that stand for what it would say
	facts   string                                   // sections with @@ for the marker
	moment  map[string]string                        // momentTexts
	system  string                                   // as uname -s has it
	rest    float64                                  // its uptime from which no packet passes
	twice   bool                                     // it says all twice
	deaf    bool                                     // it names its system and does nothing more
	greets  string                                   // stands for the greeting and its system
	refuse  error                                    // a new connection's fate
	hangs   bool                                     // a new connection answers nothing
	cost    float64                                  // of one core, that it says the watch takes
	busy    func(up float64) (softirq, idle float64) // ticks by its uptime
	shells  []*Shell
	starts  int
	asked   []string // requests, in order
	pending int      // unanswered
	most    int      // ... at any time
	cut     func(why string)
}

func newFake(t *testing.T) *fake {
	now := time.Now()
	return &fake{t: t, born: now, booted: now.Add(-1000 * time.Second), boot: "boot-1", system: "Linux", rest: 1013.3,
		part: map[string]string{},
		busy: func(up float64) (float64, float64) { return 75 * up, 25 * up }}
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// start is the Start of this router.
func (f *fake) start(context.Context) (*Shell, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts++
	if f.refuse != nil {
		return nil, f.refuse
	}
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	ended := make(chan struct{})
	var once sync.Once
	complaint := ""
	end := func(why string) {
		once.Do(func() {
			complaint = why
			_ = outWrite.Close()
			_ = inRead.Close()
			close(ended)
		})
	}
	f.cut = end
	s := &Shell{
		In: in, Out: out, Ended: ended, Kill: func() { end("killed") }, Patience: 30 * time.Second,
		Complaint: func() string { <-ended; return complaint }, Status: func() string { return "exit status 255" },
	}
	f.shells = append(f.shells, s)
	hangs := f.hangs
	requests := make(chan string, 100)
	go func() {
		f.answer(requests, outWrite, ended)
	}()
	go func() {
		f.listen(inRead, outWrite, requests, hangs)
		close(requests)
		end("")
	}()
	return s, nil
}

var requestLine = regexp.MustCompile(`^echo '(@@[0-9a-f]+ )B (\d+)'; (\w+) `)

// listen takes the setup and the requests, whether it answers or not.
func (f *fake) listen(in io.Reader, out io.Writer, requests chan<- string, hangs bool) {
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		request, deaf := requestLine.FindStringSubmatch(line), false
		f.set(func() { deaf = f.deaf })
		switch {
		case hangs:
		case f.greets != "":
			_, _ = io.WriteString(out, f.greets)
			return
		case request != nil && request[3] == "uname":
			fmt.Fprintf(out, "Welcome to the router\n\n%sB 0\n%s\n\n%[1]sE 0\n", request[1], f.system)
		case deaf:
		case request != nil:
			f.set(func() { f.pending++; f.most = max(f.most, f.pending) })
			requests <- strings.Join(request[1:], " ")
		}
	}
}

func (f *fake) answer(requests <-chan string, out io.Writer, ended <-chan struct{}) {
	for request := range requests {
		word := strings.Fields(request)
		mark, number, what := word[0], word[1], word[2]
		f.mu.Lock()
		f.asked = append(f.asked, what)
		wait := time.Duration(0)
		if f.slow != nil {
			wait = f.slow(time.Since(f.born))
		}
		body := f.sample()
		switch what {
		case askFacts:
			body = strings.ReplaceAll(f.facts, "@@", mark)
		case askMoment:
			for _, text := range momentTexts {
				body += divider + "\n" + f.moment[text.name]
			}
		}
		f.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-ended:
		}
		f.set(func() { f.pending-- })
		said := mark + " B " + number + "\n" + body + "\n" + mark + " E " + number + "\n"
		if f.twice {
			said += said
		}
		if _, err := io.WriteString(out, said); err != nil {
			return
		}
	}
}

// sample is what it would print now; mu is held.
func (f *fake) sample() string {
	up := time.Since(f.booted).Seconds()
	softirq, idle := f.busy(up)
	packets := min(up, f.rest) * 1000
	core := fmt.Sprintf("0 0 0 %.0f 0 0 %.0f 0", idle, softirq)
	part := map[string]string{
		"/proc/uptime":                    fmt.Sprintf("%.2f 1.00\n", up),
		"/proc/stat":                      fmt.Sprintf("cpu %s\ncpu0 %s\nbtime %d\n", core, core, f.born.Unix()),
		"/proc/net/dev":                   fmt.Sprintf("eth0: 0 %.0f 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", packets),
		"/proc/sys/kernel/random/boot_id": f.boot + "\n",
		"/proc/$$/stat":                   fmt.Sprintf("7 (sh) S 1 1 1 0 -1 0 0 0 0 0 %.0f 0 0 0 20\n", up*100*f.cost),
	}
	for i, text := range f.part {
		part[i] = text
	}
	return written(part)
}

// open opens it with samples so far apart; the test closes it.
func (f *fake) open(period time.Duration) *Router {
	f.t.Helper()
	r := &Router{node: "router", source: "ssh://fake", start: f.start, period: period}
	if err := r.open(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	return r
}

var errRefused = errors.New("ssh: connect to host fake port 22: Connection refused")
