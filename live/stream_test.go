package live

import (
	"fmt"
	"testing"
)

// numbers are those of the events that a reader gets, those that came before first.
func numbers(past []Event, r *Reader) (list []uint64) {
	for _, e := range past {
		list = append(list, e.ID)
	}
	for e := range r.C {
		list = append(list, e.ID)
	}
	return list
}

func TestLateReaderGetsWhatWasBefore(t *testing.T) {
	s := &Stream{}
	s.Publish(Event{Started: &Started{Run: "a"}})
	s.Publish(Event{Note: "one"})
	past, r := s.Read(0)
	s.Publish(Event{Note: "two"})
	s.Publish(Event{Done: &Done{}})
	s.Publish(Event{Note: "after the end"})
	if got := numbers(past, r); len(got) != 4 || got[0] != 1 || got[3] != 4 {
		t.Errorf("events %v, want 1 to 4", got)
	}
	past, r = s.Read(2)
	if got := numbers(past, r); len(got) != 2 || got[0] != 3 {
		t.Errorf("events after 2: %v, want 3 and 4", got)
	}
}

func TestStreamForgetsAllButTheFirst(t *testing.T) {
	s := &Stream{}
	s.Publish(Event{Started: &Started{Run: "a"}})
	for range 5 * keptEvents {
		s.Publish(Event{Sample: &Sample{}})
	}
	if cap(s.kept) > 4*keptEvents {
		t.Errorf("%d events kept", cap(s.kept))
	}
	past, r := s.Read(0)
	r.Close()
	if len(past) != keptEvents+1 || past[0].Started == nil || past[keptEvents].ID != s.last {
		t.Errorf("%d events, the first %+v, the last %d of %d", len(past), past[0], past[len(past)-1].ID, s.last)
	}
}

func TestAppendKeepsNumbers(t *testing.T) {
	s := &Stream{}
	for _, id := range []uint64{1, 2, 2, 1, 7} {
		s.Append(Event{ID: id, Note: "n"})
	}
	s.Publish(Event{Done: &Done{}})
	s.Append(Event{ID: 9, Note: "after the end"})
	if got := numbers(s.Read(0)); fmt.Sprint(got) != "[1 2 7 8]" {
		t.Errorf("events %v, want 1, 2, 7 and 8", got)
	}
}

func TestSlowReaderIsLetGo(t *testing.T) {
	s := &Stream{}
	_, slow := s.Read(0)
	past, quick := s.Read(0)
	got := make(chan int)
	go func() { got <- len(numbers(past, quick)) }()
	for range mostBehind {
		s.Publish(Event{Note: "n"})
	}
	if slow.Slow() {
		t.Error("let go too early")
	}
	s.Publish(Event{Note: "one more"})
	if !slow.Slow() {
		t.Error("not let go")
	}
	quick.Close()
	<-got
	slow.Close()
}
