package screen

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/live"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		key        byte
		shows      string
		left, stop bool
	}{
		{'q', "", true, false},
		{'s', "", true, true},
		{3, "", true, true}, // Ctrl-C
		{'?', "with progress lines", false, false},
		{26, "So far", false, false}, // Ctrl-Z
		{'x', "So far", false, false},
	} {
		stopped := false
		v := &viewer{now: &live.Now{}, page: Page{Width: 80, Height: 24}, stop: func() { stopped = true }}
		left := v.press(c.key)
		if text := v.draw(time.Now()); left != c.left || stopped != c.stop || !strings.Contains(text, c.shows) {
			t.Errorf("%q: left %v, stopped %v, shows %q", c.key, left, stopped, text)
		}
		if v.press('?'); c.key == '?' && !strings.Contains(v.draw(time.Now()), "So far") {
			t.Error("? twice does not show the run again")
		}
	}
	for typed, want := range map[string]string{"?q": "?q", "\x1b[A": "", "?\x1bs": "?"} { // an arrow, and Alt
		if got := string(letters([]byte(typed))); got != want {
			t.Errorf("typed %q: keys %q, want %q", typed, got, want)
		}
	}
}

// TestKeysGoOn: keys behind an end of the input count. A console of Windows takes Ctrl-Z for an end.
func TestKeysGoOn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys")
	typed, err := os.Create(name)
	testenv.Must(t, err)
	defer typed.Close()
	in, err := os.Open(name)
	testenv.Must(t, err)
	defer in.Close()
	left, pressed, over := make(chan struct{}), make(chan byte), make(chan struct{})
	go func() {
		defer close(over)
		Screen{In: in}.readKeys(in.Fd(), left, pressed)
	}()
	for _, key := range []byte("x?q") {
		time.Sleep(2 * time.Millisecond) // long enough to find the end
		if _, err := typed.Write([]byte{key}); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-pressed:
			if got != key {
				t.Errorf("got %q, want %q", got, key)
			}
		case <-time.After(testenv.Patience):
			t.Fatalf("%q is not heard", key)
		}
	}
	close(left)
	<-over
}

// Only what has changed is written to the terminal, and all of it when that has another size.
func TestWhatIsDrawn(t *testing.T) {
	v := &viewer{now: &live.Now{}, page: Page{Width: 80, Height: 24}}
	rows := func(text string) int { return strings.Count(text, "\x1b[2K") }
	at := time.Now()
	if text := v.draw(at); !strings.HasPrefix(text, erase) || rows(text) == 0 || rows(text) > 24 {
		t.Errorf("at first %q", text)
	}
	if text := v.draw(at); text != "" {
		t.Errorf("again %q", text)
	}
	for i := range 1000 {
		v.take(live.Event{ID: uint64(i + 1), Note: fmt.Sprint("note ", i)})
	}
	if text := v.draw(at); rows(text) == 0 || rows(text) > 12 || !strings.Contains(text, "note 999") ||
		strings.Contains(text, "So far") {
		t.Errorf("after 1000 notes %q", text)
	}
	v.page.Width = 60
	if text := v.draw(at); !strings.HasPrefix(text, erase) || !strings.Contains(text, "So far") {
		t.Errorf("with another size %q", text)
	}
}

// A terminal that takes nothing keeps no event waiting, and the end of the run ends the screen.
func TestSlowTerminal(t *testing.T) {
	in, feed, err := os.Pipe()
	testenv.Must(t, err)
	defer in.Close()
	defer feed.Close()
	taken, out, err := os.Pipe()
	testenv.Must(t, err)
	defer out.Close()
	_ = out.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	for err == nil {
		_, err = out.Write(make([]byte, 1<<12))
	}
	_ = out.SetWriteDeadline(time.Time{})
	stream, now := &live.Stream{}, &live.Now{}
	past, r := stream.Read()
	done := make(chan error)
	go func() { done <- Screen{In: in, Out: out}.Show(context.Background(), now, past, r) }()
	for range 20 {
		for range 500 { // more than a reader may be behind
			stream.Publish(live.Event{Note: strings.Repeat("x", 50)})
		}
		for deadline := time.Now().Add(testenv.Patience); len(r.C) > 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
	if r.Slow() {
		t.Error("the screen fell behind")
	}
	stream.Publish(live.Event{Done: &live.Done{}})
	select {
	case <-done:
		t.Error("the terminal took the drawing")
	case <-time.After(50 * time.Millisecond):
	}
	go func() { // the terminal wakes
		b := make([]byte, 1<<16)
		for {
			if _, err := taken.Read(b); err != nil {
				return
			}
		}
	}()
	if err := <-done; err != nil || now.Done == nil {
		t.Errorf("%v, the end seen: %v", err, now.Done != nil)
	}
	taken.Close()
}
