// Package screen shows a run that goes on as a full screen of a terminal.
package screen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"

	"pelt/live"
)

const (
	redraw  = time.Second / 4  // how often the screen is drawn at most, but for keys
	keyWait = time.Second / 10 // after which whoever waits for keys looks up
)

// Sequences of xterm, which other terminals know, too.
const (
	enter   = "\x1b[?1049h\x1b[?25l" // the other screen, without a cursor
	leave   = "\x1b[?2026l\x1b[?25h\x1b[?1049l"
	erase   = "\x1b[2J"
	row     = "\x1b[%d;1H\x1b[2K%s" // is emptied before it is written
	atOnce  = "\x1b[?2026h%s\x1b[?2026l"
	escape  = 0x1b
	control = 0x1f // what a letter is together with the key Ctrl
)

// Screen is a terminal.
type Screen struct {
	In, Out *os.File
	Color   bool
	Stop    func() // ends the run
}

// Show draws a run until it has ended, ctx is done or the user leaves, and leaves the terminal as it was. The fold now
// then has all events that were taken from the reader. Events are taken whether or not the terminal takes the drawing.
func (s Screen) Show(ctx context.Context, now *live.Now, past []live.Event, r *live.Reader) error {
	v := &viewer{now: now, page: Page{Width: 80, Height: 24, Color: s.Color}, stop: s.Stop}
	for _, e := range past {
		now.Take(e)
	}
	defer Remember(s.In, s.Out)()
	_, _ = term.MakeRaw(s.In.Fd()) // what is no terminal has no keys
	understand(s.Out)
	left, over, pressed := make(chan struct{}), make(chan struct{}), make(chan byte)
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-left:
				return
			case e, more := <-r.C:
				if !more {
					close(over)
					return
				}
				v.take(e)
			}
		}
	})
	// Nobody waits for this: some of what a console of Windows has to read is no letter, and is never read.
	go s.readKeys(s.In.Fd(), left, pressed)
	err := s.draw(ctx, v, over, pressed)
	close(left)
	reading.Wait()
	if err != nil {
		return fmt.Errorf("the screen ended: %w", err)
	}
	return nil
}

// draw draws until something ends the screen.
func (s Screen) draw(ctx context.Context, v *viewer, over <-chan struct{}, pressed <-chan byte) error {
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for text := enter; ; {
		if width, height, err := term.GetSize(s.Out.Fd()); err == nil && width > 0 && height > 0 {
			v.page.Width, v.page.Height = width, height
		}
		if text += v.draw(time.Now()); text != "" {
			if _, err := fmt.Fprintf(s.Out, atOnce, text); err != nil {
				return err
			}
		}
		text = ""
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		case key := <-pressed:
			if v.press(key) {
				return nil
			}
		case <-tick.C:
		}
	}
}

// readKeys tells which keys are pressed, until the screen is left.
func (s Screen) readKeys(fd uintptr, left <-chan struct{}, pressed chan<- byte) {
	b := make([]byte, 64)
	for {
		select {
		case <-left:
			return
		default:
		}
		if !ready(fd, keyWait) {
			continue
		}
		n, err := s.In.Read(b)
		switch {
		case errors.Is(err, io.EOF): // to a console of Windows this is Ctrl-Z, and more keys follow
			time.Sleep(keyWait)
		case err != nil:
			return
		}
		for _, key := range letters(b[:n]) {
			select {
			case <-left:
				return
			case pressed <- key:
			}
		}
	}
}

// letters are those of what was typed: behind an escape stands the name of another key.
func letters(typed []byte) []byte {
	typed, _, _ = bytes.Cut(typed, []byte{escape})
	return typed
}

// Remember notes how a terminal is. back makes it so again, also after a program that drew on it was killed.
func Remember(in, out *os.File) (back func()) {
	state, err := term.GetState(in.Fd())
	return func() {
		if err == nil && term.Restore(in.Fd(), state) == nil {
			_, _ = io.WriteString(out, leave)
		}
	}
}

// viewer is what the screen shows.
type viewer struct {
	mu  sync.Mutex
	now *live.Now

	page  Page
	stop  func()
	drawn drawing
	lines []string // that are on the screen
}

// drawing is what decides whether a screen is drawn again.
type drawing struct {
	page   Page
	event  uint64
	second int64
}

func (v *viewer) take(e live.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now.Take(e)
}

// press does what a key stands for, and reports whether the screen is left.
func (v *viewer) press(key byte) (left bool) {
	switch key {
	case 'q':
		return true
	case 's', 'c' & control:
		v.stop()
		return true
	case '?':
		v.page.Keys = !v.page.Keys
	}
	return false
}

// draw returns what changes the screen to how the run is now.
func (v *viewer) draw(at time.Time) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := drawing{v.page, v.now.Last, at.Unix()}
	if next == v.drawn {
		return ""
	}
	var b strings.Builder
	if next.page.Width != v.drawn.page.Width || next.page.Height != v.drawn.page.Height {
		b.WriteString(erase)
		v.lines = make([]string, v.page.Height)
	}
	lines := Draw(v.now, at, v.page)
	for i, text := range lines {
		if text != v.lines[i] {
			fmt.Fprintf(&b, row, i+1, text)
		}
	}
	v.drawn, v.lines = next, lines
	return b.String()
}
