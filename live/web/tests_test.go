package web

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/live"
	"pelt/words"
)

// asChild makes this test binary behave as the command that a server starts.
const asChild = "PELT_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	os.Exit(fakeChild(os.Args[1]))
}

func fakeChild(command string) int {
	enc := json.NewEncoder(os.Stdout)
	interrupts := make(chan os.Signal, 9)
	signal.Notify(interrupts, os.Interrupt)
	fmt.Fprintln(os.Stderr, "some talk")
	switch command {
	case "wrong":
		fmt.Fprintln(os.Stderr, "pelt: target: want HOST")
		fmt.Fprintln(os.Stderr, "bye")
		return 2
	case "noise":
		fmt.Println("no events")
		return 0
	}
	_ = enc.Encode(live.Event{ID: 1, Started: &live.Started{Run: "r",
		Text: fmt.Sprint(os.Args[1:], os.Getenv("PELT_CODE"), os.Getenv(words.EventsVariable))}})
	switch command {
	case "wait":
		<-interrupts
	case "deaf":
		time.Sleep(time.Hour)
	case "crash":
		os.Stderr.WriteString("panic: oh")
		return 2
	}
	_ = enc.Encode(live.Event{ID: 2, Done: &live.Done{Run: "r", Complete: command == "finish"}})
	return 0
}

func fakeTests(t *testing.T) *tests {
	t.Helper()
	t.Setenv(asChild, "1")
	program, err := os.Executable()
	testenv.Must(t, err)
	list := &tests{program: program, stopTime: stopTime}
	t.Cleanup(list.close)
	return list
}

// all are the events of a test until it ends.
func all(t *Test) (list []live.Event) {
	list, r := t.Stream.Read()
	defer r.Close()
	for e := range r.C {
		if list = append(list, e); e.Done != nil && !t.Over() {
			list = append(list, live.Event{Note: "told of its end before it had ended"})
		}
	}
	return list
}

func TestChild(t *testing.T) {
	list := fakeTests(t)
	for command, want := range map[string]string{
		"finish": "",
		"wait":   "",
		"deaf":   "要求停止 2s 后仍未结束，已被强制结束；已测到的已保存",
		"wrong":  "target: want HOST",
		"crash":  "panic: oh",
		"noise":  "无法读取它的事件：invalid character 'o' in literal null (expecting 'u')",
	} {
		if list.stopTime = testenv.Patience; command == "deaf" {
			list.stopTime = 2 * time.Second
		}
		one, err := list.start([]string{command, "lab:direct"}, "otter-17", words.Chinese, nil)
		testenv.Must(t, err)
		events, r := one.Stream.Read()
		for command != "wrong" && command != "noise" && len(events) == 0 { // it has begun
			events = append(events, <-r.C)
		}
		r.Close()
		if command == "wait" || command == "deaf" {
			if _, err := list.start([]string{"finish"}, "", words.English, nil); err == nil ||
				!strings.Contains(err.Error(), "pelt "+command+" lab:direct runs already") {
				t.Errorf("a second test beside the first: %v", err)
			}
			one.Stop()
			one.Stop()
		}
		events = all(one)
		<-one.over
		if done := events[len(events)-1].Done; done == nil || done.Error != want {
			t.Errorf("%s ended with %+v, want %q", command, done, want)
		}
		if e := events[0]; e.Started != nil &&
			e.Started.Text != fmt.Sprintf("[%s lab:direct --json-lines -]otter-17zh-CN", command) {
			t.Errorf("%s was called so: %s", command, e.Started.Text)
		}
	}
	if len(list.list) != mostTests {
		t.Errorf("%d tests are kept, want %d", len(list.list), mostTests)
	}
}

func TestEndOfServerStopsTest(t *testing.T) {
	list := fakeTests(t)
	one, err := list.start([]string{"wait"}, "", words.English, map[string][]string{})
	testenv.Must(t, err)
	_, r := one.Stream.Read()
	<-r.C
	r.Close()
	list.close()
	if !one.Over() {
		t.Error("it runs still")
	}
	if _, err := list.start([]string{"finish"}, "", words.English, nil); err == nil {
		t.Error("a test was started after the end")
	}
}
