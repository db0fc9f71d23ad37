package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"pelt/live"
	"pelt/model"
)

// screen tells on stderr how a run goes on.
type screen struct {
	live.Feed
	readers sync.WaitGroup
	failed  error // to write the lines of JSON
}

// newScreen writes lines, one each time that every says; 0: one live line on a terminal, or one a second.
func newScreen(w io.Writer, every time.Duration) *screen {
	s := &screen{Feed: live.Feed{Stream: &live.Stream{}}}
	lines := &live.Plain{W: w, Width: 80, Every: every}
	if f, ok := w.(*os.File); ok && isTerminal(f) && every == 0 {
		lines.Redraw = true
		lines.Width, _, _ = terminal(f)
	} else if every == 0 {
		lines.Every = time.Second
	}
	s.read(lines.Read)
	return s
}

// read shows the events by a function that ends with the last of them.
func (s *screen) read(show func(past []live.Event, r *live.Reader)) {
	past, r := s.Stream.Read(0)
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
		f, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("--json-lines: %w", err)
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
