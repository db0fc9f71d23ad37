package live

import (
	"fmt"
	"testing"

	"pelt/model"
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
	past, r := s.Read()
	s.Publish(Event{Note: "two"})
	s.Publish(Event{Done: &Done{}})
	s.Publish(Event{Note: "after the end"})
	if got := numbers(past, r); len(got) != 4 || got[0] != 1 || got[3] != 4 {
		t.Errorf("events %v, want 1 to 4", got)
	}
}

// Of a long trial a late reader gets the newest samples, and what tells how the run stands.
func TestStreamForgets(t *testing.T) {
	s := &Stream{}
	s.Publish(Event{Started: &Started{Run: "a"}})
	s.Publish(Event{Findings: &[]model.Finding{}})
	s.Publish(Event{Next: &Next{Number: 1}})
	s.Publish(Event{Trial: &Trial{Number: 1}})
	s.Publish(Event{Findings: &[]model.Finding{{Level: "answer"}}})
	s.Publish(Event{Next: &Next{Number: 2}})
	for range 5 * keptEvents {
		s.Publish(Event{Sample: &Sample{}})
	}
	if cap(s.kept) > 4*keptEvents {
		t.Errorf("%d events kept", cap(s.kept))
	}
	past, r := s.Read()
	r.Close()
	if len(past) != keptEvents+3 || past[0].ID != 1 || past[1].ID != 5 || past[2].ID != 6 ||
		past[keptEvents+2].ID != s.last {
		t.Errorf("%d events, the first %+v, the last %d of %d", len(past), past[:3], past[len(past)-1].ID, s.last)
	}
	s.Publish(Event{Trial: &Trial{Number: 2}})
	for range keptEvents {
		s.Publish(Event{Note: "n"})
	}
	if past, r = s.Read(); len(past) != keptEvents+2 || past[1].Findings == nil {
		t.Errorf("after the trial: %d events, the first %+v", len(past), past[:3])
	}
	r.Close()
}

func TestAppendKeepsNumbers(t *testing.T) {
	s := &Stream{}
	for _, id := range []uint64{1, 2, 2, 1, 7} {
		s.Append(Event{ID: id, Note: "n"})
	}
	s.Publish(Event{Done: &Done{}})
	s.Append(Event{ID: 9, Note: "after the end"})
	if got := numbers(s.Read()); fmt.Sprint(got) != "[1 2 7 8]" {
		t.Errorf("events %v, want 1, 2, 7 and 8", got)
	}
}

func TestSlowReaderIsLetGo(t *testing.T) {
	s := &Stream{}
	_, slow := s.Read()
	past, quick := s.Read()
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
