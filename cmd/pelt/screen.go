package main

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"pelt/internal/outfile"
	"pelt/live"
	fullscreen "pelt/live/screen"
	"pelt/model"
	"pelt/words"
)

// screen tells on stderr how a run goes on.
type screen struct {
	live.Feed
	readers sync.WaitGroup
	failed  error // to write the lines of JSON
	full    bool  // begins as a full screen
}

// newScreen writes a line for each trial, and one live line on a terminal, or one as often as was asked. A full screen
// takes their place where one is asked for and can be had, until its user leaves it; stop ends the run.
func (f *commonFlags) newScreen(c *cobra.Command, stop func()) *screen {
	every, full := f.progress, f.live
	s := &screen{Feed: live.Feed{Stream: &live.Stream{}}}
	lines := &live.Plain{W: c.ErrOrStderr(), Width: 80, Every: every, Brief: f.brief, Told: f.told}
	lines.Now.Language = spoken()
	s.Language = lines.Now.Language
	if f.lines != "" { // which programs read
		s.Language, _ = words.Parse(os.Getenv(words.EventsVariable))
	}
	out, isFile := lines.W.(*os.File)
	onTerminal := isFile && isTerminal(out)
	colour := false
	if onTerminal {
		lines.Width, _, colour = terminal(out)
		lines.Resize = func() int { columns, _, _ := terminal(out); return columns }
	}
	lines.Redraw = onTerminal && every == 0
	if full && (!onTerminal || !isTerminal(os.Stdin)) {
		full = false
		s.Before = append(s.Before, spoken().Say(
			"--live: standard input and standard error are no terminal, so lines tell of the test"))
	}
	if s.full = full; !full {
		s.read(lines.Read)
		return s
	}
	s.read(func(past []live.Event, r *live.Reader) {
		err := fullscreen.Screen{In: os.Stdin, Out: out, Color: colour, Stop: stop}.Show(c.Context(), &lines.Now,
			past, r)
		f.live = lines.Now.Done != nil // the next run of this command is shown likewise
		lines.GoOn(err)
		lines.Read(nil, r)
	})
	return s
}

// read shows the events by a function that ends with the last of them.
func (s *screen) read(show func(past []live.Event, r *live.Reader)) {
	past, r := s.Stream.Read()
	s.readers.Go(func() {
		defer r.Close()
		show(past, r)
	})
}

// writeLines writes the events to a file, "-" for standard output, "" for none.
func (s *screen) writeLines(c *cobra.Command, path string) error {
	if path == "" {
		return nil
	}
	out, done := c.OutOrStdout(), func() error { return nil }
	if path != "-" {
		f, err := outfile.Create(path)
		if err != nil {
			return fmt.Errorf("--json-lines: %s: %w", path, outfile.Cause(err))
		}
		out, done = f, f.Close
	}
	s.read(func(past []live.Event, r *live.Reader) {
		s.failed = errors.Join(live.WriteLines(out, past, r), done())
	})
	return nil
}

// end tells how the run ended, and waits until that is shown. Its error is of the lines of JSON.
func (s *screen) end(doc model.Document, err error) error {
	s.End(doc, err)
	s.readers.Wait()
	return s.failed
}
