package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"pelt/live"
	"pelt/render/plain"
)

const (
	messageEvery = 100 * time.Millisecond // to one browser
	mostEvents   = 5000                   // in a message
	writeTime    = 10 * time.Second       // a browser that takes longer is let go
	beatEvery    = 15 * time.Second       // proxies and browsers end connections that are silent
)

// message is what a browser gets: events, and how the test stands after them.
type message struct {
	Events []shown `json:"events"`
	Now    now     `json:"now"`
}

// shown is an event with what the page would have to work out.
type shown struct {
	live.Event
	Lost map[string]uint64 `json:"lost,omitempty"` // packets by flow, of an account
}

// now is how a test stands, in words.
type now struct {
	Verdict string   `json:"verdict"`
	Status  []string `json:"status"` // of the trial that runs
	Losses  string   `json:"losses"` // of the trial that runs, or ran last
}

// feed sends events to one browser.
type feed struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	now  live.Now
	sent uint64 // number of the last event
	wait []shown
}

func (f *feed) take(e live.Event) {
	f.now.Take(e)
	if e.ID <= f.sent {
		return
	}
	s := shown{Event: e}
	switch {
	case e.Next != nil:
		next := *e.Next
		next.Flows = nil // the page shows sums
		s.Next = &next
	case e.Sample != nil && f.now.Sum == nil: // of one receiver of many
		return
	case e.Sample != nil:
		s.Sample = f.now.Sum
	case e.Account != nil:
		s.Account, s.Lost = f.now.Account, map[string]uint64{}
		for _, flow := range f.now.Account.Flows {
			s.Lost[flow.Name] = flow.Lost()
		}
	}
	f.wait = append(f.wait, s)
}

// flush sends a message of the events that wait; there may be more of them.
func (f *feed) flush() error {
	m := message{Events: f.wait[:min(len(f.wait), mostEvents)],
		Now: now{Verdict: plain.Glue(f.now.Verdict()), Losses: plain.Glue(f.now.Losses())}}
	if f.now.Next != nil {
		status := f.now
		status.Account = nil // stands below
		for _, field := range status.Status(f.now.Time) {
			m.Now.Status = append(m.Now.Status, plain.Glue(field.Text))
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode events: %w", err)
	}
	f.sent = m.Events[len(m.Events)-1].ID
	if f.wait = f.wait[len(m.Events):]; len(f.wait) == 0 {
		f.wait = nil
	}
	return f.write(fmt.Sprintf("id: %d\ndata: %s\n\n", f.sent, text))
}

func (f *feed) write(text string) error {
	if err := f.rc.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := f.w.Write([]byte(text)); err != nil {
		return err
	}
	return f.rc.Flush()
}

// events sends what has happened in a test, and what happens, as server-sent events.
func (s *Server) events(w http.ResponseWriter, r *http.Request, t *Test) {
	sent, _ := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64) // else from the beginning
	past, reader := t.Stream.Read()                                     // all of them, to know how the test stands
	defer reader.Close()
	f := feed{w: w, rc: http.NewResponseController(w), sent: sent}
	f.now.Language = of(r)
	if len(past) > 0 && past[len(past)-1].ID < sent { // of another stream
		f.sent = 0
	}
	for _, e := range past {
		f.take(e)
	}
	if f.now.Done != nil && len(f.wait) == 0 {
		w.WriteHeader(http.StatusNoContent) // a browser does not ask again
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if err := f.write("retry: 2000\n\n"); err == nil {
		f.follow(r, reader)
	}
}

// finish sends what has come by now: a test and its server end within a tick, and the page is to know how.
func (f *feed) finish(reader *live.Reader) {
	for more := true; more; {
		var e live.Event
		select {
		case e, more = <-reader.C:
			if more {
				f.take(e)
			}
		default:
			more = false
		}
	}
	for len(f.wait) > 0 && f.flush() == nil {
	}
}

// follow sends events until the last, or until the browser is gone or too slow.
func (f *feed) follow(r *http.Request, reader *live.Reader) {
	tick, beat := time.NewTicker(messageEvery), time.NewTicker(beatEvery)
	defer tick.Stop()
	defer beat.Stop()
	for open := true; open || len(f.wait) > 0; {
		var err error
		select {
		case <-r.Context().Done():
			f.finish(reader)
			return
		case e, more := <-reader.C:
			if open = more; open {
				f.take(e)
				continue
			}
			reader.C = nil
		case <-tick.C:
			if len(f.wait) > 0 {
				err = f.flush()
			}
		case <-beat.C:
			err = f.write(":\n\n")
		}
		if err != nil {
			return
		}
	}
	if reader.Slow() {
		_ = f.write("event: slow\ndata: this page fell behind and was let go; it goes on in a moment\n\n")
	}
}
