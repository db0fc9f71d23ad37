package live

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pelt/model"
	"pelt/render/plain"
	"pelt/test/golden"
	"pelt/words"
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
		next.Flows = append(next.Flows, Ends{Name: fmt.Sprintf("up/%d", i), Protocol: model.UDP, From: model.Sender,
			To: fmt.Sprintf("receiver-%s%d", name, i)})
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
		"up, to 100 receivers: 10.0 kpps sent, 5.05 kpps received  (least 1 pps: receiver-1)",
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
	n.Language = words.Chinese
	if path := n.Paths()[0]; path.Language != words.Chinese || path.Nodes[0] != "发送端" {
		t.Errorf("the path is not Chinese: %+v", path)
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

// TestStatus: each line of the file is a trial of 20 s: the second at which it is looked at, its flows, and since which
// second something is not heard any more. Below stands its line of progress. An end whose samples stop is not shown by
// its last figures, until nobody measures any more.
func TestStatus(t *testing.T) {
	golden.Table(t, "testdata/status.txt", func(question string) string {
		words := strings.Fields(question)
		seconds, err := strconv.Atoi(words[0])
		if err != nil {
			t.Fatal(err)
		}
		next, last := Next{Number: 1, Trials: 2, MeasuredSeconds: 20}, map[string]int{}
		for _, word := range words[1:] {
			name, value, silent := strings.Cut(word, "=")
			way, number, many := strings.Cut(name, "/")
			f := Ends{Name: name, Protocol: model.UDP, From: model.Sender, To: model.Receiver}
			if many {
				f.To = "receiver-" + number
			}
			if way == "down" {
				f.From, f.To, f.Protocol = f.To, f.From, model.TCP
			}
			switch {
			case silent:
				last[name], _ = strconv.Atoi(value)
			case name == "until-sent":
				next.UntilSent = true
			default:
				next.Flows = append(next.Flows, f)
			}
		}
		begin := time.Unix(1000, 0)
		n := &Now{}
		n.Take(Event{ID: 1, Time: begin, Next: &next})
		for second := 1; second <= seconds; second++ {
			for _, f := range next.Flows {
				for _, metric := range []string{"send_pps", "receive_pps"} {
					if end, stops := last[metric+":"+f.Name]; stops && second > end {
						continue
					}
					n.Take(Event{ID: n.Last + 1, Time: begin.Add(time.Duration(second) * time.Second),
						Sample: &Sample{Metric: metric, Flow: f.Name, AtS: float64(second), Value: 100}})
				}
			}
		}
		return fitting(n.Status(begin.Add(time.Duration(seconds)*time.Second)), mostLine)
	})
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

// TestSilentPeer: of an end that tells nothing while a trial runs nothing is said, also not that it is not heard.
func TestSilentPeer(t *testing.T) {
	n, at := &Now{}, time.Unix(1000, 0)
	n.Take(Event{ID: 1, Time: at, Next: &Next{Number: 1, Trials: 1, MeasuredSeconds: 20, Flows: []Ends{
		{Name: "down", Protocol: model.UDP, From: "receiver", To: "sender", Silent: "receiver"}}}})
	for id := range uint64(10) {
		at = at.Add(time.Second)
		n.Take(Event{ID: id + 2, Time: at, Sample: &Sample{Metric: "receive_pps", Flow: "down", AtS: float64(id + 1), Value: 300}})
	}
	if told := n.status(n.flows[0], at); !slices.Equal(told, []string{"down: 300 pps received"}) {
		t.Errorf("status %q", told)
	}
	if quiet := n.quiet(at); len(quiet) > 0 {
		t.Errorf("not heard: %v", quiet)
	}
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
			Flows: []Ends{{Name: "up", Protocol: model.UDP, From: "sender", To: "receiver"}}}})
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
