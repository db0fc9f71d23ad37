package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"pelt/engine"
	"pelt/model"
	"pelt/report"
	"pelt/run"
	"pelt/unit"
)

// screen tells on stderr how a run goes on: one live line on a terminal, a
// plain line per finished trial elsewhere.
type screen struct {
	mu      sync.Mutex
	w       io.Writer
	live    bool
	width   int
	trial   *run.TrialStarted
	began   time.Time
	rates   map[string]rateNow // by flow and role
	total   int
	ended   int             // trials
	made    map[string]bool // of them; one that runs again counts once
	soFar   string          // of a long trial
	minutes int             // ... that a line told of
}

type rateNow struct {
	at      time.Time
	packets uint64
	pps     float64
}

func newScreen(w io.Writer) *screen {
	s := &screen{w: w, width: 80, made: map[string]bool{}}
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		s.live = true
		s.width, _ = terminal(f)
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
		s.trial = nil
	case e.Started != nil:
		if s.trial == nil {
			s.ended = e.Started.Number - 1 // of a run that goes on
		}
		s.trial, s.began, s.rates, s.total = e.Started, time.Now(), map[string]rateNow{}, e.Started.Total
		s.soFar, s.minutes = "", 0
		s.status()
	case e.Progress != nil:
		if s.trial != nil && e.Progress.Number == s.trial.Number { // of several the latest
			s.sample(*e.Progress)
			s.status()
		}
	case e.SoFar != nil:
		if s.trial != nil && e.SoFar.Number == s.trial.Number {
			s.soFar = soFarText(e.SoFar.Checkpoint)
			if minutes := int(e.SoFar.Checkpoint.ElapsedS / 60); !s.live && minutes > s.minutes {
				s.minutes = minutes
				s.line(fmt.Sprintf("%v  %s", time.Duration(minutes)*time.Minute, s.soFar))
			}
		}
	case e.Done != nil:
		if key := fmt.Sprintf("%s #%d", e.Done.Cell.Key(), e.Done.Repeat); !s.made[key] {
			s.made[key] = true
			s.ended++
		}
		s.line(fmt.Sprintf("%*d/%d  %s", len(fmt.Sprint(s.total)), s.ended, s.total, report.Line(*e.Done)))
	}
}

func heading(d model.Document) string {
	var ends []string
	for _, h := range d.Host {
		ends = append(ends, fmt.Sprintf("%s %s", h.Node, h.Name))
	}
	text := fmt.Sprintf("%s %s: %s", d.Plan.Command, d.Plan.Target, strings.Join(ends, ", "))
	if d.Lab != nil {
		text = fmt.Sprintf("%s %s: %s", d.Plan.Command, d.Plan.Target, report.Way(d.Lab.Nodes))
	}
	return text
}

func (s *screen) sample(p run.TrialProgress) {
	key := p.Sample.Flow + " " + string(p.Sample.Role)
	now, last := time.Now(), s.rates[key]
	next := rateNow{at: now, packets: p.Sample.Packets, pps: last.pps}
	if d := now.Sub(last.at).Seconds(); !last.at.IsZero() && d > 0 && p.Sample.Packets >= last.packets {
		next.pps = float64(p.Sample.Packets-last.packets) / d
	}
	s.rates[key] = next
}

// status redraws the live line.
func (s *screen) status() {
	if !s.live || s.trial == nil {
		return
	}
	t := s.trial.Trial
	whole := t.Timing.Warmup() + t.Timing.Measure()
	text := fmt.Sprintf("%d/%d  %s  %.0f of %.0f s", s.trial.Number, s.total, cellText(t.Cell), min(time.Since(s.began), whole).Seconds(), whole.Seconds())
	for _, f := range t.Flows {
		sent, got := s.rates[f.Name+" "+string(engine.Send)], s.rates[f.Name+" "+string(engine.Receive)]
		if sent.pps > 0 || got.pps > 0 {
			text += fmt.Sprintf("  %s: sends %s, arrives %s", f.Name, unit.FormatPPS(sent.pps), unit.FormatPPS(got.pps))
		}
	}
	if s.soFar != "" {
		text += "  " + s.soFar
	}
	if r := []rune(text); len(r) > s.width-1 {
		text = string(r[:s.width-1])
	}
	fmt.Fprintf(s.w, "\r\x1b[K%s", text)
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

// cellText names the settings of a trial for people.
func cellText(c model.Cell) string {
	var parts []string
	for _, knob := range slices.Sorted(maps.Keys(c)) {
		switch v := c[knob]; knob {
		case "payload_bytes":
			parts = append(parts, v.String()+" B")
		case "frame_bytes":
			parts = append(parts, v.String()+" B frames")
		case "direction":
			parts = append(parts, v.String())
		default:
			parts = append(parts, strings.ReplaceAll(knob, "_", " ")+" "+v.String())
		}
	}
	return strings.Join(parts, ", ")
}

// line prints a lasting line above the live one.
func (s *screen) line(text string) {
	if s.live {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
	fmt.Fprintln(s.w, text)
}

// done clears the live line.
func (s *screen) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
	s.trial = nil
}
