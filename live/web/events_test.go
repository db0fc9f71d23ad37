package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/live"
	"pelt/model"
)

// watched is a server that shows a stream.
func watched(t *testing.T, s *live.Stream) (*Server, *Test, *httptest.Server) {
	t.Helper()
	test := Watch([]string{"curve", "lab:direct"}, s, func() {})
	server := serverOf(t, Options{Watch: test})
	h := httptest.NewServer(server)
	t.Cleanup(h.Close)
	return server, test, h
}

// open asks for events, after one if that is not "".
func open(t *testing.T, s *Server, h *httptest.Server, test *Test, after string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+"/test/"+test.ID+"/events", nil)
	testenv.Must(t, err)
	r.AddCookie(&http.Cookie{Name: cookie(&http.Request{Host: r.URL.Host}), Value: s.Token})
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	answer, err := http.DefaultClient.Do(r)
	testenv.Must(t, err)
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// messages reads what comes until the answer ends: the events and their numbers, how the test stands at last, and all
// lines but data.
func messages(t *testing.T, answer *http.Response) (events []shown, ids []uint64, last now, rest string) {
	t.Helper()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: {")
		if !ok {
			rest += lines.Text() + "\n"
			continue
		}
		var m message
		testenv.Must(t, json.Unmarshal([]byte("{"+data), &m))
		for _, e := range m.Events {
			events, ids = append(events, e), append(ids, e.ID)
		}
		last = m.Now
	}
	return events, ids, last, rest
}

func TestEvents(t *testing.T) {
	stream := &live.Stream{}
	s, test, h := watched(t, stream)
	stream.Publish(live.Event{Started: &live.Started{Run: "r"}})
	stream.Publish(live.Event{Next: &live.Next{Number: 1, Trials: 3, MeasuredSeconds: 2}})
	stream.Publish(live.Event{Account: &live.Account{Flows: []model.FlowSoFar{{Name: "up", Protocol: model.UDP,
		From: "a", To: "b", Attempted: 9, Received: 7}}}})
	whole, resumed, confused := open(t, s, h, test, ""), open(t, s, h, test, "2"), open(t, s, h, test, "77")
	stream.Publish(live.Event{Trial: &live.Trial{Number: 1, Text: "64 B"}})
	stream.Publish(live.Event{Findings: &[]model.Finding{{Level: "answer", Code: "latency.none"}}})
	stream.Publish(live.Event{Done: &live.Done{Run: "r"}})
	_, ids, last, rest := messages(t, whole)
	if fmt.Sprint(ids) != "[1 2 3 4 5 6]" || last.Status != nil ||
		last.Verdict != "No rate without loss was found, so no load was measured." ||
		last.Losses != "9 sent, lost: 2 not yet explained" || !strings.Contains(rest, "id: 6\n") {
		t.Errorf("from the beginning: %v, then %+v, and %q", ids, last, rest)
	}
	for name, answer := range map[string]*http.Response{"[3 4 5 6]": resumed, "[1 2 3 4 5 6]": confused} {
		if _, ids, again, _ := messages(t, answer); fmt.Sprint(ids) != name || fmt.Sprint(again) != fmt.Sprint(last) {
			t.Errorf("got %v, want %s; then %+v", ids, name, again)
		}
	}
	if again := open(t, s, h, test, "6"); again.StatusCode != http.StatusNoContent {
		t.Errorf("after the end: %s", again.Status)
	}
}

// A page gets the sums of a star's receivers, not a line for each.
func TestStarIsSummed(t *testing.T) {
	stream := &live.Stream{}
	s, test, h := watched(t, stream)
	next := live.Next{Number: 1, Trials: 1, MeasuredSeconds: 9}
	account := live.Account{}
	for i := range 100 {
		one := live.Ends{Name: fmt.Sprintf("up/%d", i+1), Protocol: model.UDP, From: "sender",
			To: fmt.Sprintf("receiver-%d", i+1)}
		next.Flows = append(next.Flows, one)
		account.Flows = append(account.Flows,
			model.FlowSoFar{Name: one.Name, Protocol: one.Protocol, From: one.From, To: one.To, Attempted: 10,
				Received: 9})
	}
	stream.Publish(live.Event{Next: &next})
	for _, metric := range []string{"send_pps", "receive_pps"} {
		for _, f := range next.Flows {
			stream.Publish(live.Event{Sample: &live.Sample{Metric: metric, Flow: f.Name, AtS: 1, Value: 5}})
		}
	}
	stream.Publish(live.Event{Account: &account})
	stream.Publish(live.Event{Done: &live.Done{}})
	var got []string
	events, _, _, _ := messages(t, open(t, s, h, test, ""))
	for _, e := range events {
		if e.Sample != nil {
			got = append(got, fmt.Sprint(e.Sample.Metric, " ", e.Sample.Flow, " ", e.Sample.Value))
		}
		if e.Account != nil {
			got = append(got, fmt.Sprint(len(e.Account.Flows), " ", e.Lost))
		}
	}
	if want := []string{"send_pps up 500", "receive_pps up 500", "1 map[up:100]"}; !slices.Equal(got, want) {
		t.Errorf("the page got %q, want %q", got, want)
	}
}

// The last event reaches a page also where the server ends right after the test.
func TestEndOfServerTellsLast(t *testing.T) {
	stream := &live.Stream{}
	test := Watch(nil, stream, func() {})
	s := serverOf(t, Options{Watch: test})
	ctx, cancel := context.WithCancel(t.Context())
	h := httptest.NewUnstartedServer(s)
	h.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	h.Start()
	t.Cleanup(h.Close)
	answer := open(t, s, h, test, "")
	stream.Publish(live.Event{Started: &live.Started{}})
	stream.Publish(live.Event{Done: &live.Done{}})
	cancel()
	if _, ids, _, _ := messages(t, answer); fmt.Sprint(ids) != "[1 2]" {
		t.Errorf("the page got %v, want 1 and 2", ids)
	}
}

// No more than ten messages a second, whatever the test tells.
func TestEventsAreJoined(t *testing.T) {
	stream := &live.Stream{}
	s, test, h := watched(t, stream)
	answer, began := open(t, s, h, test, ""), time.Now()
	go func() {
		for range 60 {
			stream.Publish(live.Event{Note: "n"})
			time.Sleep(5 * time.Millisecond)
		}
		stream.Publish(live.Event{Done: &live.Done{}})
	}()
	_, ids, _, rest := messages(t, answer)
	// One tick may have waited for a server that stood still, one comes at once.
	if n, most := strings.Count(rest, "id: "), int(time.Since(began)/messageEvery)+2; len(ids) != 61 || n > most {
		t.Errorf("%d events in %d messages, want 61 in %d at most", len(ids), n, most)
	}
}

// narrow has connections that are waited for without end; the first takes little at once.
type narrow struct {
	net.Listener
	others bool
}

func (l *narrow) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil && !l.others {
		l.others, err = true, conn.(*net.TCPConn).SetWriteBuffer(4096)
	}
	return patient{conn}, err
}

type patient struct{ net.Conn }

func (patient) SetWriteDeadline(time.Time) error { return nil }

// A browser that does not read is let go and told; another one misses nothing, and neither does the first when it
// comes again.
func TestSlowBrowser(t *testing.T) {
	stream := &live.Stream{}
	test := Watch(nil, stream, func() {})
	s := serverOf(t, Options{Watch: test})
	h := httptest.NewUnstartedServer(s)
	h.Listener = &narrow{Listener: h.Listener}
	h.Start()
	t.Cleanup(h.Close)
	slow, quick := open(t, s, h, test, ""), open(t, s, h, test, "")
	const events, each = 3000, 1000
	text := strings.Repeat("long ", 200) // fills the buffers of the slow one's connection
	lines, heard := bufio.NewScanner(quick.Body), 0
	lines.Buffer(nil, 8<<20)
	for heard < events && !t.Failed() {
		for range each {
			stream.Publish(live.Event{Note: text})
		}
		for want := heard + each; heard < want && lines.Scan(); { // the quick one keeps up
			heard += strings.Count(lines.Text(), text)
		}
		if lines.Err() != nil {
			t.Errorf("the quick browser got %d events: %v", heard, lines.Err())
		}
	}
	stream.Publish(live.Event{Done: &live.Done{}})
	_, first, _, rest := messages(t, slow)
	if !strings.Contains(rest, "event: slow") || len(first) == 0 || len(first) > events {
		t.Fatalf("the slow browser got %d events, then %q", len(first), rest[max(0, len(rest)-200):])
	}
	last := first[len(first)-1]
	_, again, _, _ := messages(t, open(t, s, h, test, fmt.Sprint(last)))
	if again[0] != last+1 || !slices.IsSorted(again) || again[len(again)-1] != events+1 {
		t.Errorf("after %d it got %d to %d", last, again[0], again[len(again)-1])
	}
}
