// Package screen shows a run that goes on as a full screen of a terminal.
package screen

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"pelt/live"
)

// redraw is how often the screen is drawn at most.
const redraw = time.Second / 4

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
	p := tea.NewProgram(v, tea.WithContext(ctx), tea.WithInput(s.In), tea.WithOutput(s.Out), tea.WithoutSignalHandler(),
		tea.WithFPS(int(time.Second/redraw)))
	left := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-left:
				return
			case e, more := <-r.C:
				if !more {
					p.Quit()
					return
				}
				v.take(e)
			}
		}
	})
	_, err := p.Run()
	close(left)
	reading.Wait()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the screen ended: %w", err)
	}
	return nil
}

// Remember notes how a terminal is. back makes it so again after a program that drew on it was killed.
func Remember(in, out *os.File) (back func()) {
	state, err := term.GetState(in.Fd())
	return func() {
		if err == nil && term.Restore(in.Fd(), state) == nil {
			fmt.Fprint(out, ansi.ResetModifyOtherKeys, ansi.PopKittyKeyboard(1), ansi.ResetModeBracketedPaste,
				ansi.ResetModeSynchronizedOutput, ansi.ResetModeAltScreenSaveCursor, ansi.SetModeTextCursorEnable)
		}
	}
}

// viewer is the model of bubbletea. Its fields but for now belong to bubbletea's goroutine.
type viewer struct {
	mu  sync.Mutex
	now *live.Now

	page    Page
	stop    func()
	content string
	drawn   drawing
}

// drawing is what decides whether a screen is drawn again.
type drawing struct {
	page   Page
	event  uint64
	second int64
}

type tick time.Time

func (v *viewer) take(e live.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now.Take(e)
}

func (v *viewer) Init() tea.Cmd { return tea.Tick(0, func(t time.Time) tea.Msg { return tick(t) }) }

// Update handles a key, a new size, or the time to draw.
func (v *viewer) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tick:
		v.draw(time.Time(m))
		return v, tea.Tick(redraw, func(t time.Time) tea.Msg { return tick(t) })
	case tea.WindowSizeMsg:
		v.page.Width, v.page.Height = m.Width, m.Height
	case tea.KeyPressMsg:
		switch m.String() {
		case "q":
			return v, tea.Quit
		case "s", "ctrl+c":
			v.stop()
			return v, tea.Quit
		case "?":
			v.page.Keys = !v.page.Keys
		}
	}
	return v, nil
}

func (v *viewer) draw(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := drawing{v.page, v.now.Last, at.Unix()}
	if next == v.drawn {
		return
	}
	v.drawn, v.content = next, strings.Join(Draw(v.now, at, v.page), "\n")
}

// View returns what was drawn last.
func (v *viewer) View() tea.View {
	out := tea.NewView(v.content)
	out.AltScreen = true
	return out
}
