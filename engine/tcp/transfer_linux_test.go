package tcp

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/engine/tcpinfo"
	"pelt/internal/testenv"
	"pelt/model"
)

func transferOf(streams int, bytes uint64, change func(*model.Flow)) model.Flow {
	f := flow(streams, 128<<10, true)
	f.Bytes, f.InfoSeconds = bytes, 0.02
	if change != nil {
		change(&f)
	}
	return f
}

func TestTransfer(t *testing.T) {
	const bytes = 50_000_001 // no multiple of a write, nor of streams
	for _, c := range []struct {
		name    string
		streams int
		listens bool
		change  func(*model.Flow)
	}{
		{"one stream", 1, false, nil},
		{"sender listens", 1, true, nil},
		{"four streams", 4, false, nil},
		{"HTTP", 1, false, func(f *model.Flow) { f.HTTP = true }},
		{"HTTP, sender listens, three streams", 3, true, func(f *model.Flow) { f.HTTP = true }},
		{"a mix of controls", 2, false, func(f *model.Flow) { f.Control = "reno+cubic" }},
		{"a mix, sender listens", 2, true, func(f *model.Flow) { f.Control = "reno+cubic" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := transferOf(c.streams, bytes, c.change)
			if f.Control != "" {
				testenv.Root(t) // a host may give cubic to root only
			}
			p := newPair(t, enginetest.Here{}, "127.0.0.1", c.listens, f, timing(0, time.Minute, time.Second))
			p.Connect()
			begun := time.Now()
			s, r := p.play()
			took := time.Since(begun).Seconds()
			p.Close()
			checkTransfer(t, f, s, r, took)
		})
	}
}

// The end of a transfer is seen within a tenth of a second.
func TestClockTransferEnds(t *testing.T) {
	testenv.Clock(t)
	f := transferOf(1, 50_000_000, nil)
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, f, timing(0, 20*time.Second, time.Second))
	p.Connect()
	s, _ := p.play()
	p.Close()
	if s.TCP.Completion == nil || endedLate(s) > 0.1 {
		t.Errorf("measured %.3g s, completion %+v", float64(s.DurationNanos)/1e9, s.TCP.Completion)
	}
}

// endedLate is how many seconds after the last byte the measured part was over.
func endedLate(s engine.SendReport) float64 {
	return float64(s.DurationNanos)/1e9 - s.TCP.Completion.Seconds
}

func checkTransfer(t *testing.T, f model.Flow, s engine.SendReport, r engine.ReceiveReport, took float64) {
	t.Helper()
	done := s.TCP.Completion
	if done == nil || !done.Done || done.Bytes != f.Bytes || done.By != model.ByAcknowledged ||
		!(done.Seconds > 0 && done.Seconds <= took) {
		t.Fatalf("completion %+v of %d B in a run of %.3g s", done, f.Bytes, took)
	}
	if r.Tally.Bytes != f.Bytes {
		t.Errorf("read %d B, want %d", r.Tally.Bytes, f.Bytes)
	}
	if late := endedLate(s); late < -0.1 || late > took {
		t.Errorf("measured %.3g s, done after %.3g s, in a run of %.3g s", float64(s.DurationNanos)/1e9, done.Seconds,
			took)
	}
	// One clock: the last byte was read after the first was written. The kernel may
	// acknowledge it before that.
	if read := float64(r.Tally.LastNanos-s.BeginNanos) / 1e9; !f.HTTP && (read <= 0 || read > took) {
		t.Errorf("the last byte was read %.6f s after the first was written, in a run of %.6f s", read, took)
	}
	if answer := r.TCP.Completion; f.HTTP != (answer != nil) {
		t.Errorf("the receiver's completion %+v, HTTP %v", answer, f.HTTP)
	} else if f.HTTP && (answer.By != model.ByAnswer || !answer.Done || answer.Seconds <= 0 || answer.Seconds > took) {
		t.Errorf("an answer %+v in a run of %.3g s", answer, took)
	}
	if f.Streams > 1 {
		var sent uint64
		for i, x := range s.TCP.PerStream {
			sent += x.SentBytes
			if want := f.StreamControl(i); want != "" && x.Control != want {
				t.Errorf("stream %d is under %s, want %s", i, x.Control, want)
			}
		}
		if sent < f.Bytes {
			t.Errorf("streams sent %d B, want %d or a little more: %+v", sent, f.Bytes, s.TCP.PerStream)
		}
	}
	checkReadings(t, f, s, took)
}

func checkReadings(t *testing.T, f model.Flow, s engine.SendReport, took float64) {
	t.Helper()
	metrics := map[string]int{}
	for _, x := range s.Series {
		metrics[x.Metric]++
		if x.StepSeconds != f.InfoSeconds || len(x.Values) == 0 || float64(len(x.Values)-1)*x.StepSeconds > took {
			t.Errorf("%s: %d values of %v s in a run of %.3g s", x.Metric, len(x.Values), x.StepSeconds, took)
		}
		if (x.Stream != nil) != (f.Streams > 1) {
			t.Errorf("%s: stream %v of %d", x.Metric, x.Stream, f.Streams)
		}
		switch x.Metric {
		case model.SeriesAcked, model.SeriesRetransmits, model.SeriesBusy:
			if !slices.IsSorted(x.Values) {
				t.Errorf("%s falls: %v", x.Metric, x.Values)
			}
		case tcpinfo.Metric(tcpinfo.Window):
			if slices.Min(x.Values) < 1 {
				t.Errorf("a window of %v segments", slices.Min(x.Values))
			}
		}
	}
	if metrics[model.SeriesRTT] != f.Streams || metrics[tcpinfo.Metric(tcpinfo.Delivery)] != f.Streams {
		t.Errorf("series %v", metrics)
	}
}

// A transfer that the time cuts says when, and is no error.
func TestTransferCutByTime(t *testing.T) {
	t.Parallel()
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, transferOf(2, model.MaxBytes, nil),
		timing(0, 300*time.Millisecond, time.Second))
	p.Connect()
	s, _ := p.play()
	c := s.TCP.Completion
	if c == nil || c.Done || c.Seconds < 0.29 || c.Seconds > testenv.Patience.Seconds() {
		t.Errorf("completion %+v; want one cut after 0.3 s", c)
	}
}

func TestClockStreamsBeginOneAfterTheOther(t *testing.T) {
	testenv.Clock(t)
	f := flow(3, 128<<10, true)
	f.StaggerSeconds, f.InfoSeconds = 0.1, 0.01
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, f, timing(0, 500*time.Millisecond, time.Second))
	p.Connect()
	s, _ := p.play()
	p.Close()
	for i, x := range s.TCP.PerStream {
		// It counts from the first one's beginning, which may be late, too.
		if want := 0.1 * float64(i); math.Abs(x.StartSeconds-want) > 0.09 {
			t.Errorf("stream %d began after %.3f s, want %.1f", i, x.StartSeconds, want)
		}
		if x.GoodputBPS < 1e6 {
			t.Errorf("stream %d carried %.0f bit/s while all ran", i, x.GoodputBPS)
		}
	}
	for _, x := range s.Series {
		if x.Metric == model.SeriesAcked && *x.Stream == 2 {
			if first := slices.IndexFunc(x.Values, func(v float64) bool { return v > 0 }); first < 19 {
				t.Errorf("the third stream sent before its turn: reading %d of %v", first, x.Values)
			}
		}
	}
}

func TestStopEndsTransfers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*model.Flow){
		"plain": nil, "HTTP": func(f *model.Flow) { f.HTTP = true }, "before its turn": func(f *model.Flow) { f.StaggerSeconds = 60 },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, enginetest.Here{}, "127.0.0.1", false, transferOf(2, model.MaxBytes, change),
				timing(0, time.Minute, time.Second))
			p.Connect()
			p.start(p.receiver, p.sender)
			time.Sleep(100 * time.Millisecond)
			p.stop(p.sender, p.receiver)
			if r := p.sender.Account(); r.Send.TCP.Completion.Done {
				t.Errorf("completion %+v", r.Send.TCP.Completion)
			}
			p.Close()
		})
	}
}

// Streams that begin one after the other are timed from the first request to the last answer.
func TestAnswersOneAfterTheOther(t *testing.T) {
	const s = time.Second
	for answered, want := range map[time.Duration]float64{0: 0, 9 * s: 8, 4 * s: 4} {
		e := &end{order: engine.Order{Flow: model.Flow{HTTP: true}},
			streams: []*stream{{asked: s, answered: 5 * s}, {asked: 2 * s, answered: answered}}}
		if c := e.answered(); (c == nil) != (want == 0) || c != nil && c.Seconds != want {
			t.Errorf("the second answer came at %v: completion %+v, want %v s", answered, c, want)
		}
	}
}

// halfPair is one end of a flow of a stream, and the other side's connection.
func halfPair(t *testing.T, role engine.Role, f model.Flow) (*end, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	defer l.Close()
	other, err := net.Dial("tcp", l.Addr().String())
	testenv.Must(t, err)
	own, err := l.Accept()
	testenv.Must(t, err)
	t.Cleanup(func() { own.Close(); other.Close() })
	e := New(Config{}).newEnd(enginetest.Here{},
		engine.Order{Flow: f, Timing: timing(0, time.Minute, time.Second), Role: role,
			Key: make([]byte, engine.KeyBytes), CPU: -1})
	e.take(0, own.(*net.TCPConn))
	return e, other
}

// A receiver that asks for nothing has got nothing.
func TestUnaskedAnswerIsNotDone(t *testing.T) {
	e, other := halfPair(t, engine.Send, transferOf(1, 1000, func(f *model.Flow) { f.HTTP = true }))
	ended := make(chan error)
	go func() { ended <- e.transfer(e.streams[0]) }()
	if _, err := io.ReadFull(other, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	close(e.over) // the time is over
	e.interrupt()
	if err := <-ended; err != nil || e.transferred() {
		t.Errorf("%v, transferred %v", err, e.transferred())
	}
}

func TestAnswersOfOthersAreRefused(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: "
	for answer, want := range map[string]string{
		"HTTP/1.1 302 Found\r\nLocation: http://pelt/\r\nContent-Length: 0\r\n\r\n" + ok +
			"4\r\n\r\nhere": "status 302",
		ok + "5\r\n\r\nthere": "is of 5 B; want 4",
		ok + "0\r\n\r\n":      "is of 0 B; want 4",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhere": "is of -1 B; want 4",
		ok + "4\r\n\r\nhe":   "unexpected EOF",
		ok + "4\r\n\r\nhere": "",
	} {
		e, other := halfPair(t, engine.Receive, transferOf(1, 4, func(f *model.Flow) { f.HTTP = true }))
		if _, err := other.Write([]byte{goByte}); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = http.ReadRequest(bufio.NewReader(other))
			_, _ = other.Write([]byte(answer))
			_ = other.(*net.TCPConn).CloseWrite()
		}()
		err := e.askHTTP(e.streams[0], make([]byte, 100))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) ||
			(e.answered() != nil) != (want == "") {
			t.Errorf("%q: %v, completion %+v; want %q", answer, err, e.answered(), want)
		}
	}
}

// What streams did before the measured part is not in their goodput.
func TestGoodputOfStreamsLeavesOutTheWarmup(t *testing.T) {
	e := New(Config{}).newEnd(enginetest.Here{},
		engine.Order{Flow: transferOf(2, 0, nil), Timing: timing(2*time.Second, 2*time.Second, 0), Role: engine.Send,
			Key: make([]byte, engine.KeyBytes)})
	e.streams = []*stream{{}, {number: 1}}
	e.watching = &readings{e: e, step: time.Second, rows: make([][]tcpinfo.Info, 2)}
	for _, acked := range []uint64{0, 10, 20, 1020, 2020} {
		e.watching.add(func(int) (i tcpinfo.Info) { i.Figure[tcpinfo.Acked] = acked; return i })
	}
	for i, s := range e.perStream() {
		if s.GoodputBPS != 8000 {
			t.Errorf("stream %d: %v bit/s, want 8000", i, s.GoodputBPS)
		}
	}
	if got := e.watching.between(0, 4*time.Second, 0); got != 0 {
		t.Errorf("from the last reading on: %v bit/s", got)
	}
}

// What was read too late for the first moment stands for it, not zeros.
func TestFirstReadingIsLate(t *testing.T) {
	e, _ := halfPair(t, engine.Send, transferOf(1, 1000, nil))
	r := &readings{e: e, step: time.Millisecond, rows: make([][]tcpinfo.Info, 1)}
	if n := r.catchUp(0, 3*time.Millisecond); n != 3 || len(r.rows[0]) != 3 ||
		r.rows[0][0].Figure[tcpinfo.Window] == 0 || r.missed != 3 {
		t.Errorf("%d readings, %d missed: %+v", n, r.missed, r.rows[0])
	}
}

// A process that stood still for long does not make up for it without bound.
func TestReadingsOfALongPause(t *testing.T) {
	r := &readings{step: time.Millisecond, rows: make([][]tcpinfo.Info, 2)}
	r.add(func(int) (i tcpinfo.Info) { return i })
	if n := r.catchUp(1, time.Hour); n != mostReadings/2 || len(r.rows[0]) != n || r.missed == 0 {
		t.Errorf("%d readings, %d missed", n, r.missed)
	}
}

// A connection that the peer has reset says so, where its queue would never be empty.
func TestBrokenConnectionIsSeen(t *testing.T) {
	e, peer := halfPair(t, engine.Send, transferOf(1, 1000, nil))
	raw := e.streams[0].raw
	if err := broken(raw); err != nil {
		t.Errorf("a good connection: %v", err)
	}
	peer.(*net.TCPConn).SetLinger(0)
	peer.Close()
	var seen error
	testenv.Await(t, "the reset", func() bool { seen = broken(raw); return seen != nil })
	if !errors.Is(seen, syscall.ECONNRESET) {
		t.Errorf("reset by the peer, and says %v", seen)
	}
}

// TestLoaded: a stranger's order makes the kernel load no module.
func TestLoaded(t *testing.T) {
	var refused *engine.Refusal
	if err := loaded([]string{"", "reno"}); err != nil {
		t.Error(err)
	}
	if err := loaded([]string{"reno", "not-loaded"}); !errors.As(err, &refused) {
		t.Errorf("got %v, want a refusal", err)
	}
}
