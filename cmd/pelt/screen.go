package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"pelt/engine"
	"pelt/model"
	"pelt/run"
	"pelt/unit"
	"pelt/view"
)

// screen tells on stderr how a run goes on: one live line on a terminal, a plain line
// every so often elsewhere, and a line per finished trial.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	live  bool          // redraw one line
	every time.Duration // between plain lines; 0: none
	width int
	doc   *model.Document
	notes []string // to print once the run begins
	trial *run.TrialStarted
	began time.Time
	told  time.Time         // of the last plain line
	ends  map[string][]seen // the last samples of each flow and role
	total int
	ended int             // trials
	made  map[string]bool // of them; one that runs again counts once
	soFar string          // of a long trial
}

type seen struct {
	at      time.Time
	packets float64
}

// newScreen writes plain lines if w is no terminal, or if every says how often.
func newScreen(w io.Writer, every time.Duration) *screen {
	s := &screen{w: w, width: 80, every: every, made: map[string]bool{}}
	f, ok := w.(*os.File)
	s.live = ok && isTerminal(f) && every == 0
	if s.live {
		s.width, _, _ = terminal(f)
	} else if every == 0 {
		s.every = time.Second
	}
	return s
}

func (s *screen) event(e run.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Note != "":
		s.line(e.Note)
	case e.Document != nil:
		s.line(heading(*e.Document))
		for _, note := range s.notes {
			s.line(note)
		}
		s.doc, s.trial = e.Document, nil
	case e.Started != nil:
		if s.trial == nil {
			s.ended = e.Started.Number - 1 // of a run that goes on
		}
		s.trial, s.began, s.ends, s.total = e.Started, time.Now(), map[string][]seen{}, e.Started.Total
		s.soFar, s.told = "", s.began
		s.status(s.began)
	case e.Progress != nil:
		if s.trial != nil && e.Progress.Number == s.trial.Number { // of several the latest
			s.sample(*e.Progress)
			s.status(time.Now())
		}
	case e.SoFar != nil:
		if s.trial != nil && e.SoFar.Number == s.trial.Number {
			s.soFar = soFarText(e.SoFar.Checkpoint)
		}
	case e.Done != nil:
		if key := fmt.Sprintf("%s #%d", e.Done.Cell.Key(), e.Done.Repeat); !s.made[key] {
			s.made[key] = true
			s.ended++
		}
		s.line(fmt.Sprintf("%*s  %s", len(s.of(s.total)), s.of(s.ended), view.TrialLine(s.doc, e.Done)))
	}
}

// of is the number of a trial, of how many if that is known.
func (s *screen) of(number int) string {
	if s.total == 0 {
		return fmt.Sprint(number)
	}
	return fmt.Sprintf("%d/%d", number, s.total)
}

func heading(d model.Document) string {
	var ends []string
	for _, h := range d.Host {
		ends = append(ends, fmt.Sprintf("%s %s", h.Node, h.Name))
	}
	if d.Lab != nil {
		ends = []string{view.Way(d.Lab.Nodes)}
	}
	return fmt.Sprintf("%s %s: %s", d.Plan.Command, d.Plan.Target, strings.Join(ends, ", "))
}

func (s *screen) sample(p run.TrialProgress) {
	if p.Sample.Counts != nil {
		return
	}
	key := p.Sample.Flow + " " + string(p.Sample.Role)
	list := append(s.ends[key], seen{time.Now(), float64(p.Sample.Packets)})
	s.ends[key] = list[max(0, len(list)-2):]
}

// rate is what an end counted between its last two samples, in packets a second.
func (s *screen) rate(flow string, role engine.Role) (pps float64, ok bool) {
	list := s.ends[flow+" "+string(role)]
	if len(list) < 2 || list[1].packets < list[0].packets || !list[1].at.After(list[0].at) {
		return 0, false
	}
	return (list[1].packets - list[0].packets) / list[1].at.Sub(list[0].at).Seconds(), true
}

// status redraws the live line, or writes a plain one where it is time for one.
func (s *screen) status(now time.Time) {
	if s.trial == nil {
		return
	}
	whole := s.trial.Trial.Timing.Warmup() + s.trial.Trial.Timing.Measure()
	if !s.live && (now.Sub(s.told) < s.every || now.Sub(s.began) > whole) {
		return
	}
	text := strings.Join(s.fields(now), "  ")
	if s.live {
		fmt.Fprintf(s.w, "\r\x1b[K%s", text)
		return
	}
	s.told = s.told.Add(now.Sub(s.told).Truncate(s.every))
	s.line(text)
}

// fields are the parts of the status. Those that do not fit on a terminal are left out.
func (s *screen) fields(now time.Time) []string {
	t := s.trial.Trial
	whole := t.Timing.Warmup() + t.Timing.Measure()
	all := []string{s.of(s.trial.Number),
		fmt.Sprintf("%.0f of %.0f s", min(now.Sub(s.began), whole).Seconds(), whole.Seconds())}
	for _, f := range t.Flows {
		sent, sends := s.rate(f.Name, engine.Send)
		got, gets := s.rate(f.Name, engine.Receive)
		if sends && gets {
			all = append(all, fmt.Sprintf("%s: %s sent, %s received", f.Name, unit.FormatPPS(sent), unit.FormatPPS(got)))
		}
	}
	if name := view.Setting(t); name != "" {
		all = append(all, name)
	}
	if s.soFar != "" {
		all = append(all, s.soFar)
	}
	if !s.live {
		return all
	}
	var out []string
	room := s.width - 1
	for _, field := range all {
		if n := len([]rune(field)) + 2; n <= room+2 {
			out, room = append(out, field), room-n
		}
	}
	return out
}

// soFarText tells a long trial's losses by now.
func soFarText(c model.Checkpoint) string {
	var parts []string
	for _, f := range c.Flows {
		text := fmt.Sprintf("%s: %s sent", f.Name, unit.FormatCount(f.Attempted))
		rest := f.Lost()
		for _, l := range f.Lines {
			n := min(l.Packets, rest)
			rest -= n
			text += fmt.Sprintf(", %s lost at %s (%s)", unit.FormatCount(n), l.Layer, l.Cause)
		}
		switch {
		case f.Lost() == 0:
			text += ", none lost"
		case rest > 0:
			text += fmt.Sprintf(", %s lost and not named yet", unit.FormatCount(rest))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// line prints a lasting line above the live one.
func (s *screen) line(text string) {
	if s.live {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
	fmt.Fprintln(s.w, text)
}

func (s *screen) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
	s.trial = nil
}
