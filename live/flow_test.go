package live

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pelt/model"
	"pelt/render/plain"
)

// star folds the begin of a trial with so many receivers, and a sample of each end: receiver i gets i packets a second.
func star(receivers int, name string) (n *Now, at time.Time) {
	n, at = &Now{}, time.Unix(1000, 0)
	take := func(e Event) {
		e.ID, e.Time = n.Last+1, at
		n.Take(e)
	}
	next := Next{Number: 3, Trials: 12, MeasuredSeconds: 6, LeftSeconds: 20,
		Setting: strings.Repeat("a long setting ", 9)}
	for i := 1; i <= receivers; i++ {
		next.Flows = append(next.Flows, Ends{fmt.Sprintf("up/%d", i), model.UDP, model.Sender,
			fmt.Sprintf("receiver-%s%d", name, i)})
	}
	take(Event{Next: &next})
	at = at.Add(2 * time.Second)
	account := Account{ElapsedS: 2}
	for i, f := range next.Flows {
		take(Event{Sample: &Sample{Metric: "send_pps", Flow: f.Name, AtS: 2, Value: 100}})
		take(Event{Sample: &Sample{Metric: "receive_pps", Flow: f.Name, AtS: 2, Value: float64(i + 1)}})
		line := func(layer, host, cause string) model.Line {
			return model.Line{Layer: layer, Host: host, Cause: cause, Packets: 10}
		}
		account.Flows = append(account.Flows, model.FlowSoFar{Name: f.Name, Protocol: model.UDP, From: f.From, To: f.To,
			Attempted: 200, Received: 150, Lines: []model.Line{line(model.LayerReceiverBuffer, f.To, "SOCKET_RCVBUFF"),
				line(model.LayerNetwork, "link switch-"+f.To, model.CauseLinkQueue),
				line(model.LayerNetwork, "link switch-"+f.To, "link-loss"), line(model.LayerSenderQdisc, model.Sender,
					"QDISC_DROP")}})
	}
	take(Event{Account: &account})
	return n, at
}

func TestStarIsSummed(t *testing.T) {
	n, at := star(100, "")
	got := fitting(n.Status(at), 1000)
	for _, want := range []string{"3/12  2 of 6 s",
		"up to 100 receivers: 10.0 kpps sent, 5.05 kpps received  (least 1 pps: receiver-1)",
		"20 000 sent, lost: ", "and 2 more causes"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
	if len(n.Series) != 2 || n.Series[0].Value != 10_000 || n.Series[1].Flow != "up" || n.Series[1].At != "receivers" {
		t.Errorf("series %+v", n.Series)
	}
	if paths := n.Paths(); len(paths) != 1 || len(paths[0].Losses) != 5 || paths[0].Losses[0].Packets != 1000 {
		t.Errorf("paths %+v", paths)
	}
}

// TestProgressFits: no line of progress is longer than 200 columns, nor than its terminal.
func TestProgressFits(t *testing.T) {
	for _, c := range []struct {
		receivers int
		name      string
	}{{1, ""}, {100, ""}, {100, strings.Repeat("日本", 50)}, {2000, "host.of.a.very.long.name.example.org-"}} {
		n, at := star(c.receivers, c.name)
		for _, room := range []int{20, 79, mostLine} {
			line := fitting(n.Status(at), room)
			if plain.Width(line) > room || !strings.HasPrefix(line, "3/12") {
				t.Errorf("%d receivers, %d columns: %d: %s", c.receivers, room, plain.Width(line), line)
			}
			if room >= 79 && (!strings.Contains(line, " received") || !strings.Contains(line, "left")) {
				t.Errorf("no rate, or no time, in %d columns: %s", room, line)
			}
		}
	}
}

// TestLog: without a terminal there is one line a trial, at most 200 columns wide.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, out := &Stream{}, &writes{}
		past, r := stream.Read()
		done := make(chan bool)
		go func() {
			(&Plain{W: out}).Read(past, r)
			close(done)
		}()
		stream.Publish(Event{Next: &Next{Number: 1, Trials: 1, MeasuredSeconds: 10}})
		for i := range 10 {
			time.Sleep(time.Second)
			stream.Publish(Event{Sample: &Sample{Metric: "send_pps", Flow: "up", AtS: float64(i), Value: 1}})
			stream.Publish(Event{Sample: &Sample{Metric: "receive_pps", Flow: "up", AtS: float64(i), Value: 1}})
		}
		stream.Publish(Event{Trial: &Trial{Number: 1, Trials: 1, Text: strings.Repeat("long ", 90)}})
		stream.Publish(Event{Done: &Done{}})
		<-done
		if len(out.list) != 1 || plain.Width(out.list[0]) > mostLine+1 {
			t.Errorf("%d lines: %q", len(out.list), out.list)
		}
	})
}

func TestElapsed(t *testing.T) {
	for want, next := range map[string]Next{"3 of 6 s": {WarmupSeconds: 1, MeasuredSeconds: 5},
		"0 of 0.35 s": {WarmupSeconds: 0.1, MeasuredSeconds: 0.25},
		"2 of 2 s":    {MeasuredSeconds: 2}, "3 s": {MeasuredSeconds: 60, UntilSent: true}} {
		n := Now{Next: &next, Began: time.Unix(0, 0)}
		if got := n.Elapsed(time.Unix(3, 0)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNotHeard: an end whose samples stop is not shown by its last figures, until nobody measures any more.
func TestNotHeard(t *testing.T) {
	up := Ends{"up", model.UDP, model.Sender, model.Receiver}
	for _, c := range []struct {
		name    string // "all is sent": the trial ends then
		flows   []Ends
		silent  map[string]int // metric and flow: its last sample, in s
		at      float64
		want    string
		without string
	}{
		{"both heard", []Ends{up}, nil, 8, "up: 100 pps sent, 100 pps received", "not heard"},
		{"2 s are no silence", []Ends{up}, map[string]int{"receive_pps up": 6}, 8,
			"up: 100 pps sent, 100 pps received", "not heard"},
		{"the receiver", []Ends{up}, map[string]int{"receive_pps up": 4}, 8,
			"up: 100 pps sent, receiver not heard for 4 s", "pps received"},
		{"from the begin on", []Ends{up}, map[string]int{"receive_pps up": 0}, 5,
			"up: 100 pps sent, receiver not heard for 4 s", "pps received"},
		{"both", []Ends{up}, map[string]int{"receive_pps up": 4, "send_pps up": 4}, 8,
			"up: sender not heard for 4 s, receiver not heard for 4 s", "pps"},
		{"after the end", []Ends{up}, map[string]int{"receive_pps up": 20, "send_pps up": 20}, 25, "100 pps received",
			"not heard"},
		{"after the end, one a second before", []Ends{up}, map[string]int{"receive_pps up": 18, "send_pps up": 19},
			22, "100 pps received", "not heard"},
		{"all is sent", []Ends{up}, map[string]int{"receive_pps up": 4, "send_pps up": 4}, 9,
			"1/2  9 s  up: 100 pps sent", "not heard"},
		{"one of two", []Ends{{"up/1", model.UDP, "sender", "receiver-a"}, {"up/2", model.UDP, "sender", "receiver-b"}},
			map[string]int{"receive_pps up/2": 4}, 8,
			"up to 2 receivers: 200 pps sent, 100 pps received  (1 not heard for 4 s: receiver-b)  (least 100 pps: receiver-a)", "least 0"},
		{"all of two", []Ends{{"up/1", model.UDP, "sender", "receiver-a"}, {"up/2", model.UDP, "sender", "receiver-b"}},
			map[string]int{"receive_pps up/1": 5, "receive_pps up/2": 4}, 9,
			"up to 2 receivers: 200 pps sent, receivers not heard for 4 s", "least"},
		{"from many", []Ends{{"down/1", model.TCP, "receiver-a", "sender"},
			{"down/2", model.TCP, "receiver-b", "sender"}}, nil, 8,
			"down from 2 receivers: 200 bit/s sent, 200 bit/s received  (least 100 bit/s: receiver-a)", "pps"},
	} {
		begin := time.Unix(1000, 0)
		n := &Now{}
		n.Take(Event{ID: 1, Time: begin, Next: &Next{Number: 1, Trials: 2, MeasuredSeconds: 20, Flows: c.flows,
			UntilSent: c.name == "all is sent"}})
		for second := 1; second <= int(c.at); second++ {
			for _, f := range c.flows {
				for _, metric := range []string{"send_pps", "receive_pps"} {
					if last, stops := c.silent[metric+" "+f.Name]; stops && second > last {
						continue
					}
					n.Take(Event{ID: n.Last + 1, Time: begin.Add(time.Duration(second) * time.Second),
						Sample: &Sample{Metric: metric, Flow: f.Name, AtS: float64(second), Value: 100}})
				}
			}
		}
		got := fitting(n.Status(begin.Add(time.Duration(c.at*float64(time.Second)))), mostLine)
		if !strings.Contains(got, c.want) || strings.Contains(got, c.without) {
			t.Errorf("%s: %q, want %q and no %q", c.name, got, c.want, c.without)
		}
	}
}

// writes keeps what is written at once. It is safe for concurrent use.
type writes struct {
	mu   sync.Mutex
	list []string
}

func (w *writes) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, string(b))
	return len(b), nil
}

func (w *writes) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// TestRedraws: a terminal is drawn four times a second at most, however many samples come, and goes on without any.
func TestRedraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, out := &Stream{}, &writes{}
		past, r := stream.Read()
		done := make(chan bool)
		go func() {
			(&Plain{W: out, Redraw: true, Width: 80}).Read(past, r)
			close(done)
		}()
		stream.Publish(Event{Next: &Next{Number: 1, Trials: 1, MeasuredSeconds: 20,
			Flows: []Ends{{"up", model.UDP, "sender", "receiver"}}}})
		for i := range 1000 { // five seconds
			time.Sleep(5 * time.Millisecond)
			for _, metric := range []string{"send_pps", "receive_pps"} {
				stream.Publish(Event{Sample: &Sample{Metric: metric, Flow: "up", AtS: float64(i) / 200,
					Value: float64(i)}})
			}
		}
		synctest.Wait()
		if n := len(out.all()); n < 15 || n > 21 {
			t.Errorf("drawn %d times in 5 s", n)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		drawn := out.all()
		if last := drawn[len(drawn)-1]; !strings.Contains(last,
			"sender not heard for 4 s, receiver not heard for 4 s") {
			t.Errorf("after 4 s of silence: %q", last)
		}
		for _, metric := range []string{"send_pps", "receive_pps"} {
			stream.Publish(Event{Sample: &Sample{Metric: metric, Flow: "up", AtS: 9, Value: 1}})
		}
		time.Sleep(time.Second)
		stream.Publish(Event{Done: &Done{}})
		<-done
		told := strings.Join(out.all(), "")
		for _, want := range []string{"1/1  up: receiver not heard for 3 s\n", "1/1  up: sender not heard for 3 s\n",
			"1/1  up: receiver heard again after 4 s\n"} {
			if strings.Count(told, want) != 1 {
				t.Errorf("%q was not told once", want)
			}
		}
	})
}
